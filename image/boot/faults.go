package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"assent.home.arpa/device"
	"assent.home.arpa/image/card"
)

// faults starts a new card of which the model was damaged on the way, in a house whose network is down.
func faults(ctx context.Context, t *test, _ options) error {
	scratch := filepath.Join(t.dir, "faults.disk")
	defer os.Remove(scratch)
	if err := t.flash(ctx, scratch); err != nil {
		return err
	}
	if err := t.exchange(scratch); err != nil {
		return err
	}
	if err := damage(scratch); err != nil {
		return err
	}
	b, err := t.switchOn(ctx, setup{name: "faults", card: scratch, bios: t.bios, layer: t.layer, offline: true})
	if err != nil {
		return err
	}
	defer b.pull()
	defer t.journal(context.WithoutCancel(ctx), b, "faults")
	_, err = b.ready(ctx, roles()...)
	t.step("without a network guard and gateway are ready", err)
	_, err = b.finger.See(ctx, promptGaze, "that the model is damaged", func(f device.Frame) bool { return reads(f, "model") })
	t.step("a model that was damaged on the way is told on the glass", err)
	t.picture(b, "damaged-model")
	models, err := b.agent.Read(ctx, "/var/lib/assent/models/*")
	if err == nil && len(models) > 0 {
		err = fmt.Errorf("there is %v", sorted(models))
	}
	t.step("a model that was damaged on the way is not taken", err)
	t.step("with neither network nor model nothing has failed", b.running(ctx))
	return nil
}

// damage changes one byte of the model that waits on a card.
func damage(disk string) (err error) {
	f, err := os.OpenFile(disk, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	table, err := card.ReadTable(f)
	if err != nil {
		return err
	}
	data, err := table.Lookup(card.Data)
	if err != nil {
		return err
	}
	partition := io.NewSectionReader(f, data.Start, data.Size)
	size, err := card.FileSystemSize(partition)
	if err != nil {
		return err
	}
	area, err := card.FindArea(partition, data.Size, size)
	if err != nil {
		return err
	}
	at := data.Start + area.Start(data.Size) + area.Length/2
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		return err
	}
	b[0] ^= 1
	_, err = f.WriteAt(b[:], at)
	return err
}
