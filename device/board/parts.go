package board

import "slices"

// part is what differs between display controllers. Both are written in page addressing mode, the only one that both have.
type part struct {
	offset byte   // first of the 128 RAM columns that are wired to the glass
	power  []byte // what may be sent only while the display is off
	setup  []byte // what may be sent again at any time
}

// Commands that both controllers have (SSD1306 rev 1.1 section 9, SH1106 v2.3 "commands").
const (
	columnLow   = 0x00 // 00–0f: column address, lower nibble
	columnHigh  = 0x10 // 10–1f: column address, higher nibble
	setContrast = 0x81
	segments    = 0xa0 // a0, a1: segment remap
	displayOff  = 0xae
	displayOn   = 0xaf
	pageAddress = 0xb0 // b0–b7
	scan        = 0xc0 // c0, c8: COM scan direction
	nothing     = 0xe3
)

// parts returns the controller of that name.
func parts(name string) (part, bool) {
	switch name {
	case "ssd1306":
		return ssd1306(), true
	case "sh1106":
		return sh1106(), true
	}
	return part{}, false
}

// ssd1306 is Solomon Systech's controller: 128 columns. The order is that of the application note's flow chart (software
// configuration); sections are those of the data sheet, revision 1.1.
func ssd1306() part {
	return part{setup: []byte{
		0xd5, 0x80, // 10.1.16 clock: oscillator 8, divided by 1
		0xa8, 0x3f, // 10.1.11 multiplex ratio: 64 rows
		0xd3, 0x00, // 10.1.15 display offset: none
		0x40,       // 10.1.6 start line 0
		0x8d, 0x14, // application note: charge pump on, since modules have no supply of 7 V or more
		0x20, 0x02, // 10.1.3 page addressing mode
		0xda, 0x12, // 10.1.18 COM pins: alternative, not crossed
		0xd9, 0xf1, // 10.1.17 precharge: 1 and 15 clocks, which the charge pump needs
		0xdb, 0x20, // 10.1.19 deselect level: 0.77 × Vcc
		0x2e, // 10.2.3 no scrolling
		0xa4, // 10.1.9 show RAM
		0xa6, // 10.1.10 not inverse: 1 is lit
	}}
}

// sh1106 is Sino Wealth's controller: 132 columns, of which the glass has those from 2 to 129. It has neither a horizontal
// addressing mode nor scrolling. Numbers are those of the commands in the data sheet, version 2.3.
func sh1106() part {
	power := []byte{0xad, 0x8b} // 10 DC-DC converter on
	return part{offset: 2, power: power, setup: []byte{
		0xd5, 0x80, // 15 clock: oscillator +15 %, divided by 1
		0xa8, 0x3f, // 9 multiplex ratio: 64 rows
		0xd3, 0x00, // 14 display offset: none
		0x40,       // 4 start line 0
		0x32,       // 3 pump voltage 8.0 V
		0xda, 0x12, // 17 COM pads: alternative
		0xd9, 0x22, // 16 precharge and discharge: 2 clocks each
		0xdb, 0x35, // 18 deselect level: 0.77 × Vref
		0xa4, // 7 show RAM
		0xa6, // 8 not reverse: 1 is lit
	}}
}

// begin is the whole sequence before the first picture. It leaves the display off, so that nobody sees what RAM holds after
// power-on.
func (p part) begin(rotate bool, contrast byte) []byte {
	return slices.Concat([]byte{displayOff}, p.power, p.state(rotate, contrast))
}

// state is all that decides how RAM is shown, and where in it data goes. Any of it may have been turned by noise since, so it
// comes before every whole picture: remapped segments take effect as data is written (SSD1306 section 10.1.8). It begins with
// something to swallow for a command that noise made of another, and that still waits for an argument. Modules are built so that
// remapped segments and a reversed scan are upright.
func (p part) state(rotate bool, contrast byte) []byte {
	seq := append([]byte{nothing}, p.setup...)
	if rotate {
		seq = append(seq, segments, scan)
	} else {
		seq = append(seq, segments|0x01, scan|0x08)
	}
	return append(seq, setContrast, contrast)
}
