package board

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// line is a line that has the name of a button.
type line struct {
	chip   place
	offset uint32
	user   string // who uses it already, or ""
	used   bool
}

// wanted is how the configuration names a line: "NAME" or "NAME@PLACE".
type wanted struct{ key, name, at string }

func want(key, value string) wanted {
	name, at, _ := strings.Cut(value, "@")
	return wanted{key, name, at}
}

// findLines finds each wanted line. All must be on one chip: its one queue is what keeps the edges of both buttons in order.
func (h host) findLines(wants []wanted) ([]line, error) {
	chips, err := places(h.root, "sys/bus/gpio/devices", "gpiochip")
	if err != nil {
		return nil, fmt.Errorf("board: gpio chips: %w", err)
	}
	if len(chips) == 0 {
		return nil, errors.New("board: this machine has no gpio chip, so there are no buttons; on a PC use assentsim")
	}
	found := make([][]line, len(wants))
	var closed []error // chips that cannot be looked at
	for _, chip := range chips {
		if err := h.searchChip(chip, wants, found); err != nil {
			closed = append(closed, fmt.Errorf("gpio chip %q: %w", chip.path, err))
		}
	}
	lines := make([]line, len(wants))
	var errs []error
	for i, w := range wants {
		l, err := w.pick(found[i])
		if err != nil && len(found[i]) == 0 && len(closed) > 0 {
			err = fmt.Errorf("%w (not searched: %w)", err, errors.Join(closed...))
		}
		lines[i] = l
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for _, l := range lines[1:] {
		if l.chip != lines[0].chip {
			return nil, fmt.Errorf("board: the buttons are on two gpio chips (%s); wire both to one", list([]place{lines[0].chip, l.chip}))
		}
		if l.offset == lines[0].offset {
			return nil, errors.New("board: panel.approve and panel.deny name one and the same line; give each button its own")
		}
	}
	return lines, nil
}

// pick demands exactly one line, and that nobody uses it.
func (w wanted) pick(found []line) (line, error) {
	switch {
	case len(found) == 0 && w.at != "":
		return line{}, fmt.Errorf("board: no gpio line %q at %q; set %s to the name of the button's line", w.name, w.at, w.key)
	case len(found) == 0:
		return line{}, fmt.Errorf("board: no gpio line is named %q; set %s to the name of the button's line, or name the line in the device tree (gpio-line-names)", w.name, w.key)
	case len(found) > 1:
		var chips []place
		for _, l := range found {
			chips = append(chips, l.chip)
		}
		return line{}, fmt.Errorf("board: %d gpio lines are named %q, on %s; set %s to %q with one of these places after an @", len(found), w.name, list(slices.Compact(chips)), w.key, w.name)
	case found[0].used:
		return line{}, fmt.Errorf("board: gpio line %q is %w by %q; stop that program or driver, or set %s to another line", w.name, ErrInUse, found[0].user, w.key)
	}
	return found[0], nil
}

// searchChip appends the lines of one chip that are wanted.
func (h host) searchChip(chip place, wants []wanted, found [][]line) error {
	f, err := h.openChip(chip)
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := h.chipLines(f)
	if err != nil {
		return err
	}
	for offset := range n {
		info, err := h.lineInfo(f, offset)
		if err != nil {
			return err
		}
		name := text(info.Name)
		for i, w := range wants {
			if name == w.name && chip.at(w.at) {
				found[i] = append(found[i], line{chip, offset, text(info.Consumer), info.Flags&flagUsed != 0})
			}
		}
	}
	return nil
}

func (h host) openChip(chip place) (*os.File, error) {
	return os.OpenFile(filepath.Join(h.root, "dev", fmt.Sprintf("gpiochip%d", chip.number)), os.O_RDWR|unix.O_CLOEXEC, 0)
}
