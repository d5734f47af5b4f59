package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/capabilities"
)

// place is where file systems are mounted, logDir where the log is in them.
const (
	place  = "/mnt"
	logDir = place + "/audit"
)

// asTheBox is how the box mounts the audit's partition.
const asTheBox = unix.MS_NOATIME | unix.MS_NODEV | unix.MS_NOSUID | unix.MS_NOEXEC

func mount(device string) error {
	if err := unix.Mount(device, place, "ext4", asTheBox, "data=ordered"); err != nil {
		return fmt.Errorf("mounting %s: %w", device, err)
	}
	return nil
}

// restart does what the box does when the power comes back: it mounts the disk and opens the log. Then it judges what is there by
// what was known outside when the power went.
func restart(device string, told known) (err error) {
	if err := mount(device); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Unmount(place, 0)) }()
	o := audittest.Options(clocktest.New(), nil)
	o.Dir, o.Quota = logDir, quota
	l, err := audit.Open(context.Background(), o)
	if err != nil {
		return fmt.Errorf("the log cannot be opened: %w", err)
	}
	first := l.Head()
	if err := l.Close(); err != nil {
		return err
	}
	return judge(told, first)
}

// judge verifies the log, and demands of it everything that was acknowledged.
func judge(told known, first audit.Head) error {
	intents := map[audit.Seq]bool{}
	effects := map[audit.Seq]capabilities.Status{}
	o := audit.VerifyOptions{AllSeals: true, Anchors: [][]byte{first.Seal}, Visit: func(e audit.Entered) error {
		switch p := e.Payload.(type) {
		case *audit.IntentRecord:
			intents[e.Seq] = true
		case *audit.EffectRecord:
			effects[p.Intent] = p.Status
		}
		return nil
	}}
	if len(told.head.Seal) > 0 {
		o.Anchors = append(o.Anchors, told.head.Seal)
	}
	r, err := audit.Verify(context.Background(), os.DirFS(logDir), o)
	switch {
	case err != nil:
		return err
	case r.Status.ExitCode() != 0 || len(r.Open) != 0 || r.Unproven != 0:
		return fmt.Errorf("the log is %s, %v, with %d effects that nobody recorded", r.Status, r.Problem, len(r.Open))
	}
	for _, a := range r.Anchors {
		if a.State != audit.AnchorHeld {
			return fmt.Errorf("record %d was acknowledged, and is %s", a.Seq, a.State)
		}
	}
	for _, i := range told.intents {
		if i < r.First { // pruned, with all that belongs to it
			continue
		}
		s := effects[i]
		if !intents[i] || (s != capabilities.Done && s != capabilities.Unknown) || (told.settled[i] && s != capabilities.Done) {
			return fmt.Errorf("executed on the word of record %d: an intent %v, settled %v, and its effect is %s", i, intents[i], told.settled[i], s)
		}
	}
	return nil
}
