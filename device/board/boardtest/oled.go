package boardtest

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/physic"

	"assent.home.arpa/device"
)

// ErrNAK is what a bus says when nobody acknowledges.
var ErrNAK = errors.New("boardtest: no acknowledgement")

// OLEDAddress is where the display answers.
const OLEDAddress = 0x3c

// status bit: the display is off (SSD1306 table 9-2, SH1106 command 21).
const displayIsOff = 0x40

// OLED is a bus with one display controller on it. It refuses what the controller's data sheet does not have.
type OLED struct {
	columns int          // of RAM
	offset  int          // first column that is wired to the glass
	args    map[byte]int // commands that take arguments, and how many
	bare    func(byte) bool

	mu     sync.Mutex // guards all below
	ram    [8][132]byte
	page   int
	column int
	set    map[byte]byte // last argument of each command
	cmd    byte          // waits for wants arguments
	wants  int
	on     bool
	remap  bool               // segments
	flip   bool               // scan
	start  int                // line
	invert bool               // 0 is lit
	all    bool               // everything is lit
	scroll bool               // the picture moves
	mute   bool               // refuses status reads
	noise  func(write []byte) // turns bits of what comes
	fail   int                // transactions until the bus fails for good; below 0: never
	writes int
	bytes  int
	closed bool
}

var _ i2c.BusCloser = (*OLED)(nil)

// NewSSD1306 returns a display by Solomon Systech, as it is after power-on.
func NewSSD1306() *OLED {
	o := &OLED{
		columns: 128, fail: -1,
		args: map[byte]int{
			0x20: 1, 0x21: 2, 0x22: 2, 0x26: 6, 0x27: 6, 0x29: 5, 0x2a: 5, 0x81: 1, 0x8d: 1, 0xa3: 2, 0xa8: 1, 0xd3: 1, 0xd5: 1, 0xd9: 1,
			0xda: 1, 0xdb: 1,
		},
		bare: func(c byte) bool { return c == 0xe3 },
	}
	o.PowerCycle()
	return o
}

// NewSH1106 returns a display by Sino Wealth, as it is after power-on.
func NewSH1106() *OLED {
	o := &OLED{
		columns: 132, offset: 2, fail: -1,
		args: map[byte]int{0x81: 1, 0xa8: 1, 0xad: 1, 0xd3: 1, 0xd5: 1, 0xd9: 1, 0xda: 1, 0xdb: 1},
		bare: func(c byte) bool { return c == 0xe3 || c&0xfc == 0x30 },
	}
	o.PowerCycle()
	return o
}

// PowerCycle takes the supply away and gives it back: registers are reset, the display is off, RAM holds noise.
func (o *OLED) PowerCycle() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for p := range o.ram {
		for c := range o.ram[p] {
			o.ram[p][c] = byte(p*37+c*101) ^ 0x5a
		}
	}
	o.page, o.column, o.wants, o.on, o.remap, o.flip = 0, 0, 0, false, false, false
	o.start, o.invert, o.all, o.scroll = 0, false, false, false
	o.set = map[byte]byte{0x20: 0x02, 0x81: 0x7f, 0xa8: 0x3f, 0xad: 0x8a, 0xda: 0x12}
}

// FailAfter lets n more transactions through, and none after that, until Heal.
func (o *OLED) FailAfter(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fail = n
}

// Heal ends FailAfter.
func (o *OLED) Heal() { o.FailAfter(-1) }

// Mute makes the controller refuse status reads, as some copies do.
func (o *OLED) Mute() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mute = true
}

// Noise lets turn change bits of each write, control byte included, before the controller has it. It acknowledges all the same,
// and does with what it does not know what controllers do: nothing. Nil ends it.
func (o *OLED) Noise(turn func(write []byte)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.noise = turn
}

// Traffic is how many bytes, addresses included, went over the bus since it was last asked, and in how many transactions.
func (o *OLED) Traffic() (bytes, transactions int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	bytes, transactions = o.bytes, o.writes
	o.bytes, o.writes = 0, 0
	return bytes, transactions
}

// Glass is what somebody sees who looks at the box the right way up; with the module mounted upside down if flipped. It is
// false while the display is off, or not supplied.
func (o *OLED) Glass(flipped bool) (device.Frame, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var f device.Frame
	pump := o.set[0x8d] == 0x14 || o.set[0xad] == 0x8b
	if !o.on || !pump || o.set[0xa8] != 0x3f || o.set[0xd3] != 0 || o.set[0xda] != 0x12 {
		return f, false
	}
	for y := range device.Height {
		for x := range device.Width {
			c, r := x, y
			if o.remap == flipped {
				c = device.Width - 1 - x
			}
			if o.flip == flipped {
				r = device.Height - 1 - y
			}
			r = (r + o.start) % device.Height
			if o.scroll {
				c = (c + 1) % device.Width
			}
			f.Set(x, y, o.all || o.ram[r/8][c+o.offset]>>(r%8)&1 == 1 != o.invert)
		}
	}
	return f, true
}

// Contrast is the brightness that was set.
func (o *OLED) Contrast() byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.set[0x81]
}

// Closed reports whether the bus was closed.
func (o *OLED) Closed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed
}

func (o *OLED) String() string { return "boardtest" }

// Open opens the bus, which is open at first. While it is closed it carries nothing.
func (o *OLED) Open() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = false
}

// SetSpeed implements i2c.Bus.
func (o *OLED) SetSpeed(physic.Frequency) error { return nil }

// Close implements i2c.BusCloser.
func (o *OLED) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	return nil
}

// Tx implements i2c.Bus.
func (o *OLED) Tx(addr uint16, w, r []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.writes++
	o.bytes += 1 + len(w) + len(r)
	switch {
	case o.closed:
		return errors.New("boardtest: bus is closed")
	case o.fail == 0 || addr != OLEDAddress:
		return ErrNAK
	case o.fail > 0:
		o.fail--
	}
	if len(r) > 0 {
		return o.read(w, r)
	}
	if len(w) < 2 {
		return fmt.Errorf("boardtest: %d bytes say nothing", len(w))
	}
	if o.noise == nil {
		return o.write(w)
	}
	w = slices.Clone(w)
	o.noise(w)
	_ = o.write(w) // the controller acknowledges what it does not know
	return nil
}

func (o *OLED) write(w []byte) error {
	switch w[0] {
	case 0x00:
		return o.commands(w[1:])
	case 0x40:
		return o.data(w[1:])
	}
	return fmt.Errorf("boardtest: control byte %#x", w[0])
}

func (o *OLED) read(w, r []byte) error {
	if o.mute {
		return ErrNAK
	}
	if len(w) != 0 || len(r) != 1 {
		return errors.New("boardtest: only the status can be read")
	}
	r[0] = 0x03
	if !o.on {
		r[0] |= displayIsOff
	}
	return nil
}

// commands does them all, and says what was wrong with the first that no data sheet has.
func (o *OLED) commands(b []byte) error {
	var wrong error
	for _, c := range b {
		if err := o.command(c); wrong == nil {
			wrong = err
		}
	}
	if wrong == nil && o.wants > 0 {
		wrong = fmt.Errorf("boardtest: command %#x without its argument", o.cmd)
	}
	return wrong
}

func (o *OLED) command(c byte) error {
	n, takes := o.args[c]
	switch {
	case o.wants > 0:
		if o.wants--; o.wants == 0 {
			o.set[o.cmd] = c
		}
	case c == 0xad && o.on:
		return errors.New("boardtest: converter switched while the display is on")
	case takes:
		o.cmd, o.wants = c, n
	case c <= 0x0f:
		o.column = o.column&0xf0 | int(c)
	case c <= 0x1f:
		o.column = o.column&0x0f | int(c&0x0f)<<4
	case c == 0x2e, c == 0x2f:
		if o.columns != device.Width {
			return fmt.Errorf("boardtest: the data sheet has no command %#x", c)
		}
		o.scroll = c == 0x2f
	case c&0xc0 == 0x40:
		o.start = int(c & 0x3f)
	case c == 0xa0, c == 0xa1:
		o.remap = c == 0xa1
	case c == 0xa4, c == 0xa5:
		o.all = c == 0xa5
	case c == 0xa6, c == 0xa7:
		o.invert = c == 0xa7
	case c == 0xae, c == 0xaf:
		o.on = c == 0xaf
	case c&0xf8 == 0xb0:
		o.page = int(c & 7)
	case c == 0xc0, c == 0xc8:
		o.flip = c == 0xc8
	case !o.bare(c):
		return fmt.Errorf("boardtest: the data sheet has no command %#x", c)
	}
	return nil
}

// data writes RAM in page addressing mode: the column wraps, the page stays.
func (o *OLED) data(b []byte) error {
	if o.set[0x20] != 0x02 {
		return errors.New("boardtest: not in page addressing mode")
	}
	for _, v := range b {
		o.ram[o.page][o.column%o.columns] = v
		o.column = (o.column + 1) % o.columns
	}
	return nil
}
