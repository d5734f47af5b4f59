package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"assent.home.arpa/appliance/box"
	"assent.home.arpa/appliance/config"
	"assent.home.arpa/appliance/intake"
	"assent.home.arpa/appliance/notice"
)

// dropped is where people put settings: the boot partition, as the image mounts it.
const dropped = "/boot/assent.toml"

// settingsRole decides which settings are in force, before any role reads them. -config only says where things live.
func settingsRole(_ context.Context, e env) error {
	drop := dropped
	switch len(e.args) {
	case 0:
	case 1:
		drop = e.args[0]
	default:
		return usageError("settings takes at most one file, which people may have dropped")
	}
	store, closer, err := intake.OpenDir(filepath.Join(e.config.Paths.State, "settings"))
	if err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	defer closer.Close()
	published, closer, err := intake.OpenDir(filepath.Join(e.config.Paths.Runtime, "settings"))
	if err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	defer closer.Close()
	s := intake.TakeSettings(config.On(machine()), intake.ReadDrop(drop), store)
	e.log.Info("settings in force", "from", s.Source.String())
	e.tell("settings", s.Problem)
	if err := s.Publish(published); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	return nil
}

// importRole takes a model out of the import area and gives the card's room to the file system of the models.
func importRole(ctx context.Context, e env) error {
	if len(e.args) != 0 {
		return usageError("import takes nothing but -config")
	}
	at := filepath.Join(e.config.Paths.State, "models")
	models, closer, err := intake.OpenDir(at)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	defer closer.Close()
	device, err := intake.Mounted(at).Partition()
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	partition, err := intake.OpenPartition(device)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	defer partition.Close()
	tenth := int64(-1)
	taken, err := intake.Model{
		Partition: partition, Models: models, Grow: intake.Mounted(at).Grow,
		Progress: func(done, total int64) {
			if now := done * 10 / total; now != tenth {
				tenth = now
				e.log.Info("copying a model from the card", "mb", done>>20, "of", total>>20)
			}
		},
	}.Take(ctx)
	switch {
	case ctx.Err() != nil:
		return errors.New("import: interrupted; the model is taken at the next start")
	case err != nil:
		e.tell("model", "The model on the card could not be taken. It is tried again at the next start.")
		return fmt.Errorf("import: %w", err)
	case taken.Area.Name != "" && taken.Problem == "":
		e.log.Info("a model came with the card", "name", taken.Area.Name, "mb", taken.Area.Length>>20)
	}
	e.tell("model", taken.Problem)
	return nil
}

// tell shows a problem on the panel and in the journal, or takes back the one of an earlier run.
func (e env) tell(name, problem string) {
	dir := box.At(e.config.Paths.Runtime).Notices
	if problem == "" {
		if err := notice.Remove(dir, name); err != nil {
			e.log.Error("a notice could not be taken back", "err", err)
		}
		return
	}
	e.log.Warn(problem)
	if err := notice.Write(dir, name, problem); err != nil {
		e.log.Error("the panel cannot show a notice", "err", err)
	}
}

// machine says what the box is made of: the device tree's names for it. A PC has none. It is read below /sys, since a unit that
// sees only processes below /proc has no /proc/device-tree.
func machine() string {
	f, err := os.Open("/sys/firmware/devicetree/base/compatible")
	if err != nil {
		return ""
	}
	defer f.Close()
	names, err := io.ReadAll(io.LimitReader(f, 4<<10))
	if err != nil {
		return ""
	}
	return string(names)
}
