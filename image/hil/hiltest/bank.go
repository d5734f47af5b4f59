package hiltest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// simulator is where gpio-sim is told what to make.
const simulator = "/sys/kernel/config/gpio-sim"

// Bank is a GPIO chip whose lines are contacts to ground.
type Bank struct {
	dir   string
	lines int
	place string // of the chip's device: "gpio-sim.0"
	chip  string // "gpiochip1"
}

// NewBank makes a chip with lines of those names, all open; an empty name is a line without one. name tells banks apart.
func NewBank(name string, lines ...string) (_ *Bank, err error) {
	b := &Bank{dir: filepath.Join(simulator, name), lines: len(lines)}
	bank := filepath.Join(b.dir, "bank")
	write := func(value string, path ...string) {
		if err == nil {
			err = os.WriteFile(filepath.Join(path...), []byte(value), 0)
		}
	}
	err = os.MkdirAll(bank, 0o755)
	write(fmt.Sprint(len(lines)), bank, "num_lines")
	for i, line := range lines {
		if line == "" {
			continue
		}
		dir := filepath.Join(bank, fmt.Sprintf("line%d", i))
		if err == nil {
			err = os.Mkdir(dir, 0o755)
		}
		write(line, dir, "name")
	}
	write("1", b.dir, "live")
	if err == nil {
		b.place, err = contents(b.dir, "dev_name")
	}
	if err == nil {
		b.chip, err = contents(bank, "chip_name")
	}
	if err == nil {
		err = eventually(5*time.Second, func() error {
			_, err := os.Stat(filepath.Join("/dev", b.chip))
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("hiltest: gpio bank %s: %w", name, errors.Join(err, b.Remove()))
	}
	for i := range lines {
		if err := b.Open(i); err != nil {
			return nil, errors.Join(err, b.Remove())
		}
	}
	return b, nil
}

// Place is where the chip sits below /sys/devices/platform.
func (b *Bank) Place() string { return b.place }

// Device is the chip's device file.
func (b *Bank) Device() string { return filepath.Join("/dev", b.chip) }

// Close closes the contact of a line: it is pulled to ground.
func (b *Bank) Close(line int) error { return b.pull(line, "pull-down") }

// Open opens the contact of a line.
func (b *Bank) Open(line int) error { return b.pull(line, "pull-up") }

func (b *Bank) pull(line int, to string) error {
	return os.WriteFile(b.control(line, "pull"), []byte(to), 0)
}

// High reports whether a line is high, whoever drives it.
func (b *Bank) High(line int) (bool, error) {
	value, err := contents(b.control(line, "value"))
	return value == "1", err
}

// control is one of the files by which a line is moved and watched.
func (b *Bank) control(line int, name string) string {
	return filepath.Join("/sys/devices/platform", b.place, b.chip, fmt.Sprintf("sim_gpio%d", line), name)
}

// Remove takes the chip away, whoever uses it.
func (b *Bank) Remove() error {
	if err := os.WriteFile(filepath.Join(b.dir, "live"), []byte("0"), 0); err != nil {
		return err
	}
	for i := range b.lines {
		err := os.Remove(filepath.Join(b.dir, "bank", fmt.Sprintf("line%d", i)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // lines without a name have no folder
			return err
		}
	}
	return errors.Join(os.Remove(filepath.Join(b.dir, "bank")), os.Remove(b.dir))
}
