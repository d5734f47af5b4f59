package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"assent.home.arpa/appliance/phone"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/device"
	"assent.home.arpa/image/boot/control"
	"assent.home.arpa/image/boot/cuts"
	"assent.home.arpa/image/boot/fat"
	"assent.home.arpa/image/card"
)

// What is demanded of starts.
const (
	plugs       = 3    // times that the plug is pulled
	maxVersus   = 1.35 // of a start, against the bare system's
	minCuts     = 100
	maxImage    = 360 // MB, compressed
	cutsLimit   = 8 * time.Minute
	bareTarget  = "multi-user.target"
	brokenWords = "this is not a setting"
)

// cutsPart pulls the plug of the audit's own machine, everywhere.
func cutsPart(ctx context.Context, t *test, _ options) error {
	t.cut = true
	t.say("pulling the plug of the audit's own machine")
	r, err := cuts.Run(ctx, t.cache, t.dir, cutsLimit, t.say)
	if err != nil {
		return err
	}
	for _, note := range r.Notes {
		t.say(note)
	}
	for _, fault := range r.Faults {
		t.say("WRONG " + fault)
	}
	if r.Good < r.Cuts || len(r.Faults) > 0 {
		t.step("starts after a cut", fmt.Errorf("%d of %d found something else than they should", r.Cuts-r.Good, r.Cuts))
	}
	t.figure("image/replay_points_ok", float64(r.Good), "starts", minCuts, true)
	return nil
}

// starts switches the box on again and again, each time after its plug was pulled while somebody asked, and each time beside the
// bare system. One of these starts finds settings that cannot be read. The first plug is pulled by the job.
func starts(ctx context.Context, t *test, _ options) error {
	var ours, bare []time.Duration
	good := 0
	for n := t.pulled; n <= plugs; n++ {
		if n == 2 {
			if err := fat.Replace(t.card, card.Boot, "assent.toml", []byte(brokenWords)); err != nil {
				return err
			}
		}
		took, ok, err := t.start(ctx, n)
		if err != nil {
			return err
		}
		ours = append(ours, took)
		if ok {
			good++
		}
		took, err = t.bareStart(ctx, n)
		if err != nil {
			return err
		}
		bare = append(bare, took)
	}
	t.figure("image/power_cuts_ok", float64(good), "cuts", plugs, true)
	slices.Sort(ours)
	slices.Sort(bare)
	t.timing("image/boot_vs_bare", ours[len(ours)/2].Seconds()/bare[len(bare)/2].Seconds(), "ratio", maxVersus)
	return t.compressed()
}

// start switches the box on after n cuts, looks at its record and has somebody ask until the plug is pulled; after the last cut it
// switches itself off instead. It reports how long the start took and whether the record is as it should be after a cut.
func (t *test) start(ctx context.Context, n int) (took time.Duration, ok bool, err error) {
	name := fmt.Sprintf("start-%d", n)
	b, err := t.switchOn(ctx, setup{name: name, card: t.card, bios: t.bios, layer: t.layer})
	if err != nil {
		return 0, false, err
	}
	defer b.pull()
	took, err = b.ready(ctx, roles()...)
	if err != nil {
		return 0, false, fmt.Errorf("%s: %w; the console's last words:\n%s", name, err, b.Last())
	}
	t.say(fmt.Sprintf("%s: ready %.1f s after the kernel's start", name, took.Seconds()))
	if n > 0 {
		v, err := b.record(ctx, t.known)
		ok = t.step(fmt.Sprintf("after cut %d the record is %s with %d records and all %d seals and %d calls that phones know of", n, v.Status, v.Records, len(t.known.Seals), len(t.known.Done)), err)
	}
	if n == 2 {
		t.step("settings that cannot be read are told, and the last good ones are in force", t.noticed(ctx, b))
	}
	t.journal(ctx, b, name)
	if n == plugs {
		t.step("the box switches itself off in order", b.off(ctx))
	} else {
		t.step("somebody asked until the plug was pulled", t.work(ctx, b, []string{"Hall", "Garden", "Attic"}[n]))
	}
	return took, ok, nil
}

// bareStart starts the same card's system with none of Assent in it.
func (t *test) bareStart(ctx context.Context, n int) (time.Duration, error) {
	scratch := filepath.Join(t.dir, "bare.disk")
	if err := copySparse(t.card, scratch); err != nil {
		return 0, err
	}
	defer os.Remove(scratch)
	b, err := t.switchOn(ctx, setup{name: fmt.Sprintf("bare-%d", n), card: scratch, bios: t.bios, layer: t.layer, bare: true})
	if err != nil {
		return 0, err
	}
	defer b.pull()
	took, err := b.ready(ctx, bareTarget)
	t.journal(ctx, b, fmt.Sprintf("bare-%d", n))
	t.say(fmt.Sprintf("bare-%d: ready %.1f s after the kernel's start", n, took.Seconds()))
	return took, err
}

// compressed measures what people download.
func (t *test) compressed() error {
	info, err := os.Stat(filepath.Join(t.image, imageFile+".xz"))
	if err != nil {
		return err
	}
	t.figure("image/compressed_mb", float64(info.Size())/1e6, "MB", maxImage, false)
	return nil
}

// noticed demands that the glass tells of the broken settings, that the phone page is there, and that a press takes the notice away.
func (t *test) noticed(ctx context.Context, b *box) error {
	if _, err := b.finger.See(ctx, promptGaze, "that the settings cannot be read", func(f device.Frame) bool { return reads(f, "assent.toml") }); err != nil {
		return err
	}
	t.picture(b, "broken-settings")
	if _, err := b.page(ctx); err != nil {
		return err
	}
	for range 6 { // a page each
		if err := b.agent.Hold(shortPress, device.Approve); err != nil {
			return err
		}
		time.Sleep(time.Second)
	}
	if f, _ := b.agent.View(); reads(f, "assent.toml") {
		return errors.New("the notice stays after it was read")
	}
	return nil
}

// work lets a new phone of that name ask and somebody press, and pulls the plug at a random moment of that. What the
// phone hears is noted.
func (t *test) work(ctx context.Context, b *box, name string) error {
	p, err := t.pair(ctx, b, name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	heard := make(chan heard, 64)
	go func() { done <- p.insist(ctx, heard) }()
	after := time.Duration(30000+rand.IntN(30000)) * time.Millisecond // a call takes half a minute here
	t.say(fmt.Sprintf("the plug is pulled in %.1f s", after.Seconds()))
	timer := time.NewTimer(after)
	defer timer.Stop()
	for {
		select {
		case h := <-heard:
			h.add(&t.known)
		case err := <-done:
			return fmt.Errorf("the phone gave up: %w", err)
		case <-timer.C:
			b.Kill() // while everything is under way
			for {
				select {
				case h := <-heard:
					h.add(&t.known)
				default:
					return nil
				}
			}
		}
	}
}

// heard is something that the box acknowledged to a phone.
type heard struct{ seal, done string }

func (h heard) add(k *control.Record) {
	if seal, err := base64.RawURLEncoding.DecodeString(h.seal); err == nil && len(seal) > 0 {
		k.Seals = append(k.Seals, seal)
		k.Seals = k.Seals[max(0, len(k.Seals)-64):] // as many as a verifier takes at once
	}
	if h.done != "" {
		k.Done = append(k.Done, h.done)
	}
}

// insist asks again and again, and presses what is shown, until ctx ends.
func (p *phones) insist(ctx context.Context, out chan<- heard) error {
	pin := p.who.Pin
	client, err := phone.Dial(ctx, p.box.address, pin.TLS())
	if err != nil {
		return err
	}
	defer client.Close()
	w, err := client.Hello(ctx, p.who, "", 0)
	if err != nil {
		return err
	}
	out <- heard{seal: w.Seal}
	if _, err := client.Ask(p.who, phone.NewConversation(), question); err != nil {
		return err
	}
	for {
		f, err := client.Next(ctx)
		if err != nil {
			return err
		}
		switch f.Type {
		case wire.TypePending:
			var w wire.Pending
			if err := f.Decode(&w); err != nil {
				return err
			}
			if !w.Decided {
				go func() { // its errors are those of a plug that is pulled
					_, _ = p.box.finger.Approve(ctx, w.Pages)
				}()
			}
		case wire.TypeRecord:
			var r wire.Record
			if err := f.Decode(&r); err != nil {
				return err
			}
			out <- heard{seal: r.Seal}
		case wire.TypeResult:
			var r wire.Result
			if err := f.Decode(&r); err != nil {
				return err
			}
			if r.Outcome.Status == capabilities.Done.String() {
				out <- heard{done: strings.ReplaceAll(r.Outcome.Invocation, "-", "")}
			}
			if _, err := client.Send(wire.TypeRecord, nil); err != nil {
				return err
			}
		case wire.TypeTurnEnd:
			if _, err := client.Ask(p.who, phone.NewConversation(), question); err != nil {
				return err
			}
		}
	}
}

// shipped starts the image as it is, with the test's disk beside it, and demands that it takes no notice; and that without a panel,
// which it then has not, people still have their page.
func shipped(ctx context.Context, t *test, _ options) error {
	scratch := filepath.Join(t.dir, "shipped.disk")
	if err := t.flash(ctx, scratch); err != nil {
		return err
	}
	defer os.Remove(scratch)
	b, err := t.switchOn(ctx, setup{name: "shipped", card: scratch, bios: t.bios, layer: t.layer, silent: true})
	if err != nil {
		return err
	}
	defer b.pull()
	t.step("without a panel the phone page still comes", b.until(ctx, readyLimit, "the phone page", func(ctx context.Context) error {
		_, err := b.page(ctx)
		return err
	}))
	console, err := os.ReadFile(filepath.Join(t.dir, "shipped.log"))
	if err == nil && strings.Contains(string(console), "agent") {
		err = errors.New("something of the test's disk ran")
	}
	t.step("the shipped image takes no notice of the test's disk", err)
	return nil
}
