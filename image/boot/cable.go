package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"assent.home.arpa/appliance/cable"
	"assent.home.arpa/appliance/finger"
	"assent.home.arpa/appliance/phone"
	"assent.home.arpa/device"
	"assent.home.arpa/image/boot/layer"
)

// loopedCable is a controller whose cable leads back to the box itself. No image has it.
const loopedCable = "dummy_hcd"

// Where the PC mounts the disk that it finds: the box is the PC, too.
const pcMount = "/run/assent-pc"

const (
	cableGaze  = 4 * time.Minute // for the copy
	panicHold  = 6 * time.Second
	cableStart = 2 * time.Minute
)

// cablePart starts a new card in a box that has a controller, has the owner ask for the record over the cable, and reads it there.
func cablePart(ctx context.Context, t *test, _ options) error {
	scratch := filepath.Join(t.dir, "cable.disk")
	defer os.Remove(scratch)
	if err := t.flash(ctx, scratch); err != nil {
		return err
	}
	if err := t.exchange(scratch); err != nil {
		return err
	}
	dir := filepath.Join(t.dir, "cable-layer")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	disk, err := layer.Make(ctx, t.cache, dir, []layer.Program{{Name: "agent", Package: "./image/boot/agent"}}, t.say, loopedCable)
	if err != nil {
		return err
	}
	b, err := t.switchOn(ctx, setup{name: "cable", card: scratch, bios: t.bios, layer: disk})
	if err != nil {
		return err
	}
	defer b.pull()
	defer t.journal(context.WithoutCancel(ctx), b, "cable")
	if _, err := b.ready(ctx, append(roles(), "assent-gadget-setup.service", "assent-cable.service")...); !t.step("where there is a controller, the exporter at the cable runs", err) {
		return nil
	}
	t.step("no kernel module can be loaded any more", b.sealed(ctx))
	t.step("the box would be one disk that cannot be written, and is attached to nothing", b.described(ctx))
	p, err := t.pair(ctx, b, "Anna")
	if err != nil {
		return err
	}
	if !t.step("the record is read over the cable after the owner's word and a press", t.overCable(ctx, b, p)) {
		return nil
	}
	t.step("a panic takes it off the cable", b.taken(ctx))
	return nil
}

// described looks at what the kernel was told.
func (b *box) described(ctx context.Context) error {
	const lun = cable.Dir + "/functions/mass_storage.0/lun.0/"
	files, err := b.agent.Read(ctx, cable.Dir+"/UDC", lun+"ro", lun+"removable", lun+"file", cable.Gadgets+"/*/UDC", cable.Dir+"/functions/*/lun.0/ro")
	if err != nil {
		return err
	}
	if len(files) != 4 || files[lun+"ro"] != "1" || files[lun+"removable"] != "1" || files[lun+"file"] != "" || files[cable.Dir+"/UDC"] != "" {
		return fmt.Errorf("the kernel was told %q", files)
	}
	return nil
}

// overCable asks as the owner, agrees at the box, and mounts what then is at the other end of the cable.
func (t *test) overCable(ctx context.Context, b *box, p *phones) error {
	pin := p.who.Pin
	client, err := phone.Dial(ctx, b.address, pin.TLS())
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := client.Hello(ctx, p.who, "", 0); err != nil {
		return err
	}
	if _, err := client.Cable(ctx, p.who); err != nil {
		return err
	}
	time.Sleep(refuseWatch) // for the idle screen to say what to do
	t.picture(b, "cable")
	if err := b.agent.Hold(finger.BothHold, device.Approve, device.Deny); err != nil {
		return err
	}
	if _, err := b.finger.See(ctx, promptGaze, "whether to show the record", finger.Inverted); err != nil {
		return err
	}
	t.picture(b, "cable-prompt")
	if err := b.described(ctx); err != nil {
		return fmt.Errorf("before the press: %w", err)
	}
	if err := b.finger.Read(ctx); err != nil {
		return err
	}
	if err := b.agent.Hold(finger.BothHold, device.Approve, device.Deny); err != nil {
		return err
	}
	if err := b.until(ctx, cableGaze, "nothing is on the cable", func(ctx context.Context) error {
		files, err := b.agent.Read(ctx, cable.Dir+"/UDC", "/sys/block/sd*/size")
		if err == nil && (!strings.HasPrefix(files[cable.Dir+"/UDC"], "dummy_udc") || len(files) < 2) {
			err = fmt.Errorf("there is %q", files)
		}
		return err
	}); err != nil {
		return err
	}
	time.Sleep(refuseWatch)
	t.picture(b, "cable-shown")
	return b.readDisk(ctx)
}

// readDisk looks at the disk as a PC does: the copy is there, and cannot be changed.
func (b *box) readDisk(ctx context.Context) error {
	if _, err := b.agent.Run(ctx, "systemd-tmpfiles", "--create", "--inline", "d "+pcMount+" 0700 root root"); err != nil {
		return err
	}
	if err := b.until(ctx, cableStart, "the disk cannot be mounted", func(ctx context.Context) error {
		_, err := b.agent.Run(ctx, "mount", "-t", "vfat", "-o", "ro", "/dev/sda", pcMount)
		return err
	}); err != nil {
		return err
	}
	files, err := b.agent.Read(ctx, pcMount+"/*", pcMount+"/*/*", "/sys/block/sda/ro")
	if err != nil {
		return err
	}
	found := 0
	for name := range files {
		for _, want := range []string{"/README.txt", "/SHA256SUMS", "/view", "/log"} {
			if strings.Contains(name, pcMount+"/AUDIT-") && strings.HasSuffix(name, want) {
				found++
			}
		}
	}
	if found != 4 || files["/sys/block/sda/ro"] != "1" {
		return fmt.Errorf("on the disk are %q", sorted(files))
	}
	if _, err := b.agent.Run(ctx, "umount", pcMount); err != nil {
		return err
	}
	// -w: or else mount falls back to reading.
	if _, err := b.agent.Run(ctx, "mount", "-t", "vfat", "-w", "/dev/sda", pcMount); err == nil {
		return errors.New("the PC can mount it to write to it")
	}
	return nil
}

// taken holds deny until everything stops, and demands that nothing is left on the cable or on the card.
func (b *box) taken(ctx context.Context) error {
	if err := b.agent.Hold(panicHold, device.Deny); err != nil {
		return err
	}
	if err := b.until(ctx, time.Minute, "the record stays on the cable", b.described); err != nil {
		return err
	}
	left, err := b.agent.Read(ctx, "/var/lib/assent/export/*", "/sys/block/sd*/size")
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("there is still %v", sorted(left))
	}
	return err
}
