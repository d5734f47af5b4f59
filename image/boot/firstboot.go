package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"assent.home.arpa/image/boot/control"
	"assent.home.arpa/image/boot/frames"
	"assent.home.arpa/systemd"
)

// maxMemory is what everything but the model may take, in MB.
const maxMemory = 150

// job is the first start of a new card and everything that people do with the box.
func job(ctx context.Context, t *test, o options) error {
	t.step("the tested card is the image", t.onlyTheKernel())
	b, err := t.switchOn(ctx, setup{name: "first", card: t.card, bios: t.bios, layer: t.layer, capture: true})
	if err != nil {
		return err
	}
	defer b.pull()
	at, err := b.ready(ctx, roles()...)
	if err != nil {
		t.journal(context.WithoutCancel(ctx), b, "first")
		return fmt.Errorf("%w; the console's last words:\n%s", err, b.Last())
	}
	t.say(fmt.Sprintf("guard and gateway are ready %.1f s after the kernel's start", at.Seconds()))
	if err := b.until(ctx, pageLimit, "the phone page", func(ctx context.Context) error {
		page, err := b.page(ctx)
		if err == nil && !strings.Contains(page, "Assent") {
			err = errors.New("it is another page")
		}
		return err
	}); err != nil {
		return err
	}
	t.step("the phone page comes over https", nil)
	t.picture(b, "idle")
	p, err := t.pair(ctx, b, "Kitchen")
	if !t.step("a phone is paired with the code on the glass and both buttons", err) {
		return nil
	}
	t.step("the model that came with the card is imported and loaded", b.until(ctx, modelLimit, "no model", func(ctx context.Context) error {
		_, err := b.agent.Run(ctx, "systemctl", "is-active", "assent-model.service")
		return err
	}))
	asked, err := p.approved(ctx)
	t.step("a question is answered with citations after a hold, and not before", err)
	t.step("a denied request sends nothing", p.denied(ctx))
	t.photograph(ctx, b)
	t.inside(ctx, b)
	t.step("the record is intact", func() error { _, err := b.record(ctx, control.Record{}); return err }())
	t.step("the record is copied onto a stick and verified here", t.export(ctx, b))
	t.step("a keyboard is not let in", t.keyboard(ctx, b))
	t.step("no unit has a way out of what it is for", t.confined(ctx, b))
	t.step("the box was left alone", t.idle(ctx, b, o))
	t.journal(ctx, b, "first")
	if t.step("somebody asked until the plug was pulled", t.work(ctx, b, "Study")) {
		t.pulled = 1
	}
	b.pull()
	pressed := frames.Pressed{To: netip.AddrPortFrom(netip.MustParseAddr(routerIP), uint16(t.searchPort)), After: asked.pressed}
	return t.unlisted(b, pressed)
}

// inside looks at the box from inside.
func (t *test) inside(ctx context.Context, b *box) {
	t.step("everything runs and nothing failed", b.running(ctx))
	t.step("no kernel module can be loaded any more", b.sealed(ctx))
	t.step("the box listens on its page, and for its address and its name alone", b.quietOutside(ctx))
	sum, largest, err := b.memory(ctx)
	if t.step("memory is measured", err) {
		t.say(largest)
		t.figure("image/rss_mb", float64(sum)/1e6, "MB", maxMemory, false)
	}
}

// idle leaves the box alone for a while. The audit's own machine loses its power meanwhile, if everything is tried.
func (t *test) idle(ctx context.Context, b *box, o options) error {
	t.say(fmt.Sprintf("leaving the box alone for %v", o.idle))
	enough := time.After(o.idle)
	var err error
	if o.only == "" {
		err = cutsPart(ctx, t, o)
	}
	select {
	case <-enough:
	case <-b.Done():
	case <-ctx.Done():
	}
	t.picture(b, "idle-later")
	return err
}

// unlisted compares what the box sent with the table of what may leave.
func (t *test) unlisted(b *box, pressed frames.Pressed) error {
	table, err := systemd.Leaves()
	if err != nil {
		return err
	}
	f, err := os.Open(b.frames)
	if err != nil {
		return err
	}
	defer f.Close()
	mac, err := net.ParseMAC(boxMAC)
	if err != nil {
		return err
	}
	r, err := frames.Check(f, table, mac, false, []frames.Pressed{pressed})
	if err != nil {
		return err
	}
	t.say(fmt.Sprintf("the box sent %d frames: by the table %v, after a press %d, others %d", r.Sent, r.Listed, r.Pressed, len(r.Unlisted)))
	for i, what := range r.Unlisted {
		if i < 10 {
			t.say("not in the table: " + what)
		}
	}
	if r.Sent == 0 || r.Pressed == 0 {
		return errors.New("the capture holds no frame of the box, or none of the approved call")
	}
	t.figure("image/unlisted_frames", float64(len(r.Unlisted)), "frames", 0, false)
	return nil
}

// photograph keeps a picture of the phone page, where there is a browser.
func (t *test) photograph(ctx context.Context, b *box) {
	if err := shoot(ctx, b.address, t.dir); err != nil {
		t.say("no picture of the phone page: " + err.Error())
	}
}
