package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"assent.home.arpa/appliance/expand"
	"assent.home.arpa/image/card"
	"assent.home.arpa/image/slots"
)

// bootDisk is the disk that the box was started from: the first process names it, so that no other disk can pose as it.
const bootDisk = "/dev/assent/disk"

// startedSlot is where the first process notes which slot the root is in.
const startedSlot = "/run/assent-boot/slot"

// expandRole gives the data partition the rest of the card.
func expandRole(_ context.Context, e env) error {
	if len(e.args) != 0 {
		return usageError("expand takes nothing but -config")
	}
	grown, err := expand.Card(bootDisk)
	var small *card.SmallError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("expand: there is no %s: this was not started from a card of Assent", bootDisk)
	case errors.As(err, &small):
		return fmt.Errorf("expand: the card is smaller than its partitions: write the image to a larger one: %w", err)
	case err != nil:
		return fmt.Errorf("expand: %w", err)
	case grown:
		e.log.Info("the partition table was written: the data partition has the rest of the card")
	}
	return nil
}

// goodRole gives the slot that started its tries back, and makes it the first to be tried.
func goodRole(_ context.Context, e env) error {
	if len(e.args) != 0 {
		return usageError("good takes nothing but -config")
	}
	text, err := os.ReadFile(startedSlot)
	if err != nil {
		return fmt.Errorf("good: which slot started is not known: %w", err)
	}
	started := slots.Slot(strings.ToUpper(strings.TrimSpace(string(text))))
	if started != slots.A && started != slots.B {
		return fmt.Errorf("good: %.20q is no slot", text)
	}
	disk, err := os.OpenFile(bootDisk, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("good: %w", err)
	}
	defer disk.Close()
	changed, err := slots.Confirm(disk, started)
	if err != nil {
		return fmt.Errorf("good: %w", err)
	}
	if changed {
		e.log.Info("this start was a good one", "slot", string(started))
	}
	return nil
}
