package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"assent.home.arpa/appliance/finger"
	"assent.home.arpa/device"
	"assent.home.arpa/image/boot/fat"
)

// Limits and sizes of the stick.
const (
	stickSize = 64 << 20
	stickGaze = 4 * time.Minute
)

// export puts a stick into the box, has the record copied onto it, pulls it out and checks the copy on this machine.
func (t *test) export(ctx context.Context, b *box) error {
	stick := filepath.Join(t.dir, "stick.disk")
	if err := fat.NewStick(stick, stickSize); err != nil {
		return err
	}
	if err := b.monitor.Do("blockdev-add", map[string]any{
		"node-name": "stick", "driver": "raw", "file": map[string]any{"driver": "file", "filename": stick},
	}); err != nil {
		return err
	}
	if err := b.monitor.Do("device_add", map[string]any{"driver": "usb-storage", "id": "plugged", "bus": "usb.0", "drive": "stick", "removable": true}); err != nil {
		return err
	}
	t.say("a stick is in the box")
	if err := b.until(ctx, time.Minute, "nobody looks at the stick", func(ctx context.Context) error {
		units, err := b.agent.Run(ctx, "systemctl", "list-units", "--plain", "--no-legend", "--no-pager", "--state=running", "assent-stick@*")
		if err == nil && strings.TrimSpace(units) == "" {
			err = errors.New("no exporter runs")
		}
		return err
	}); err != nil {
		return err
	}
	time.Sleep(refuseWatch) // for the idle screen to say what to do
	t.picture(b, "stick")
	if err := t.copyToStick(ctx, b); err != nil {
		return err
	}
	if err := b.monitor.Do("device_del", map[string]any{"id": "plugged"}); err != nil {
		return err
	}
	if err := b.until(ctx, time.Minute, "the stick is in use", func(context.Context) error {
		return b.monitor.Do("blockdev-del", map[string]any{"node-name": "stick"})
	}); err != nil {
		return err
	}
	copied := filepath.Join(t.dir, "stick")
	if err := os.RemoveAll(copied); err != nil {
		return err
	}
	if err := fat.Extract(stick, "", copied); err != nil {
		return err
	}
	return t.verifyCopy(ctx, copied)
}

// copyToStick makes the gesture, reads the prompt, holds both buttons, and waits for the word that the stick may be taken out.
func (t *test) copyToStick(ctx context.Context, b *box) error {
	if err := b.agent.Hold(finger.BothHold, device.Approve, device.Deny); err != nil {
		return err
	}
	if _, err := b.finger.See(ctx, promptGaze, "whether to copy the record", finger.Inverted); err != nil {
		return err
	}
	t.picture(b, "stick-prompt")
	if err := b.finger.Read(ctx); err != nil {
		return err
	}
	if err := b.agent.Hold(finger.BothHold, device.Approve, device.Deny); err != nil {
		return err
	}
	if _, err := b.finger.See(ctx, stickGaze, "that the stick may be pulled out", func(f device.Frame) bool { return reads(f, "Safe to remove") }); err != nil {
		return err
	}
	t.picture(b, "stick-done")
	return b.agent.Hold(shortPress, device.Approve) // read
}

// verifyCopy checks the copy on the stick with the person's tool, and with the other verifier, which shares no line with it.
func (t *test) verifyCopy(ctx context.Context, dir string) error {
	copies, err := filepath.Glob(filepath.Join(dir, "AUDIT-*"))
	if err != nil || len(copies) != 1 {
		return fmt.Errorf("the stick holds %d copies: %w", len(copies), err)
	}
	var report bytes.Buffer
	if err := t.assent(ctx, &report, "audit", "verify", copies[0]); err != nil {
		return err
	}
	t.say("the copy on the stick: " + firstLine(report.String()))
	if t.python == "" {
		return errors.New("there is no python with cryptography for the second verifier; run .ci/setup test")
	}
	out, err := exec.CommandContext(ctx, t.python, "appliance/audit/verify/assent_verify.py", copies[0]).CombinedOutput()
	if err != nil {
		return fmt.Errorf("the second verifier: %w: %.500s", err, out)
	}
	t.say("the second verifier: " + firstLine(string(out)))
	return nil
}

// keyboard plugs in what nobody may type on, and demands that the box takes no notice.
func (t *test) keyboard(ctx context.Context, b *box) error {
	before, err := b.inputs(ctx)
	if err != nil {
		return err
	}
	if err := b.monitor.Do("device_add", map[string]any{"driver": "usb-kbd", "id": "keys", "bus": "usb.0"}); err != nil {
		return err
	}
	defer func() { _ = b.monitor.Do("device_del", map[string]any{"id": "keys"}) }()
	if err := b.until(ctx, time.Minute, "no keyboard waits", func(ctx context.Context) error {
		files, err := b.agent.Read(ctx, "/sys/bus/usb/devices/*/idVendor", "/sys/bus/usb/devices/*/authorized")
		if err != nil {
			return err
		}
		for name, vendor := range files {
			const emulated = "0627"
			if filepath.Base(name) == "idVendor" && vendor == emulated {
				if state := files[filepath.Join(filepath.Dir(name), "authorized")]; state != "0" {
					return fmt.Errorf("it is authorised: %q", state)
				}
				return nil
			}
		}
		return errors.New("the kernel sees none")
	}); err != nil {
		return err
	}
	time.Sleep(5 * time.Second) // whoever would let it in has had the time
	after, err := b.inputs(ctx)
	if err != nil {
		return err
	}
	if len(after) != len(before) {
		return fmt.Errorf("there is an input more: %v", after)
	}
	return nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
