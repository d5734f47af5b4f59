package board

import (
	"errors"
	"fmt"

	"assent.home.arpa/device"
)

// asleep is the bit of the status byte that says that the display is off (SSD1306 table 9-2, SH1106 command 21).
const asleep = 0x40

// runCost is what it costs to begin another run of columns on a page: address, control byte and three commands, address and
// control byte. Two changes that are nearer are sent as one run.
const runCost = 7

// dimmer divides the contrast of a dim display.
const dimmer = 16

// pages of eight rows each.
const pages = device.Height / 8

// oled is a display controller on a bus. Only the goroutine that draws uses it, except for off.
type oled struct {
	bus      *link
	part     part
	rotate   bool
	contrast byte
	deaf     bool // the bus has no acknowledgements

	dim   bool
	known bool         // glass has been acknowledged, and nothing since is in doubt
	glass device.Frame // as last acknowledged, which noise on the bus may belie
	tells bool         // the part answers status reads
}

var _ device.Display = (*oled)(nil)

// Draw implements device.Display. It costs a tenth more than the picture has bytes.
func (o *oled) Draw(f *device.Frame) error { return o.show(f, true) }

// Update implements device.Display. It sends the columns that differ from what was last acknowledged, or everything when that
// is not known: the first time, and after each failure.
func (o *oled) Update(f *device.Frame) error { return o.show(f, false) }

func (o *oled) show(f *device.Frame, whole bool) error {
	err := o.draw(f, whole)
	if err != nil {
		o.bus.drop()
	}
	return err
}

func (o *oled) draw(f *device.Frame, whole bool) error {
	fresh := !o.known
	o.known = false // until all is acknowledged
	switch {
	case fresh:
		if err := o.begin(); err != nil {
			return err
		}
	case whole:
		if err := o.command(o.part.state(o.rotate, o.brightness())...); err != nil {
			return err
		}
	}
	for page := range pages {
		if err := o.sendPage(f, page, fresh || whole); err != nil {
			return err
		}
	}
	if fresh {
		if err := o.wake(); err != nil {
			return err
		}
	}
	if err := o.stillAwake(); err != nil {
		return err
	}
	if whole && !fresh && !o.tells { // nobody would notice that noise turned it off
		if err := o.command(displayOn); err != nil {
			return err
		}
	}
	o.glass, o.known = *f, true
	return nil
}

// ReadsBack implements device.Display: every byte on I2C is acknowledged by the part, on SPI none.
func (o *oled) ReadsBack() bool { return !o.deaf }

// Dim implements device.Display.
func (o *oled) Dim(dim bool) error {
	known := o.known
	o.known, o.dim = false, dim
	if err := o.command(setContrast, o.brightness()); err != nil {
		o.bus.drop()
		return err
	}
	o.known = known
	return nil
}

// off darkens the display. It touches nothing but the bus, so that it may be called while a Draw hangs.
func (o *oled) off() error { return o.command(displayOff) }

func (o *oled) brightness() byte {
	if o.dim {
		return o.contrast / dimmer
	}
	return o.contrast
}

// begin starts the part afresh and leaves it off.
func (o *oled) begin() error {
	return o.command(o.part.begin(o.rotate, o.brightness())...)
}

// wake turns the display on, and finds out whether the part tells its state: some answer status reads, some send noise or
// refuse, and both are fine.
func (o *oled) wake() error {
	before, errBefore := o.bus.status()
	if err := o.command(displayOn); err != nil {
		return err
	}
	after, errAfter := o.bus.status()
	o.tells = errBefore == nil && errAfter == nil && before&asleep != 0 && after&asleep == 0
	return nil
}

// stillAwake finds a part that lost its power and came back between two pictures. It acknowledges everything, yet it is off,
// and what its RAM held is gone.
func (o *oled) stillAwake() error {
	if !o.tells {
		return nil
	}
	switch s, err := o.bus.status(); {
	case err != nil:
		return failed(err)
	case s&asleep != 0:
		return failed(errors.New("it turned itself off; check its supply"))
	}
	return nil
}

// sendPage sends what differs on one page, or all of it.
func (o *oled) sendPage(f *device.Frame, page int, all bool) error {
	first := page * device.Width
	was, is := o.glass[first:first+device.Width], f[first:first+device.Width]
	if all {
		return o.sendRun(page, 0, is)
	}
	for from, to := nextRun(was, is, 0); from < to; from, to = nextRun(was, is, to) {
		if err := o.sendRun(page, from, is[from:to]); err != nil {
			return err
		}
	}
	return nil
}

// nextRun returns the next run of columns worth sending, at or after from; an empty one if there is none.
func nextRun(was, is []byte, from int) (start, end int) {
	for start = from; start < len(is) && was[start] == is[start]; start++ {
	}
	end = start
	for i := start; i < len(is) && i-end <= runCost; i++ {
		if was[i] != is[i] {
			end = i + 1
		}
	}
	return start, end
}

func (o *oled) sendRun(page, column int, data []byte) error {
	at := byte(column) + o.part.offset
	if err := o.command(pageAddress|byte(page), columnLow|at&0x0f, columnHigh|at>>4); err != nil {
		return err
	}
	return o.write(toRAM, data)
}

func (o *oled) command(c ...byte) error { return o.write(toCommand, c) }

func (o *oled) write(what content, data []byte) error {
	if err := o.bus.send(what, data); err != nil {
		return failed(err)
	}
	return nil
}

func failed(err error) error {
	return fmt.Errorf("board: %w: %v", device.ErrBus, err)
}
