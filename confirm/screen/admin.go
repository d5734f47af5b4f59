package screen

import (
	"fmt"
	"time"

	"rsc.io/qr"

	"assent.home.arpa/device"
)

// DrawAdmin is the prompt for a change of the box itself. It is inverse, so that nobody takes it for a request, and asks
// for both buttons. Title and text must fit on the one picture: three rows, or three besides the title if the small
// face can draw it. What does not fit or cannot be drawn is an *UndisplayableError, as nothing is cut.
func DrawAdmin(title, text string, left time.Duration, hold float64) (device.Frame, error) {
	var f device.Frame
	for _, field := range []struct{ name, text string }{{"title", title}, {"text", text}} {
		if err := Check(field.text); err != nil {
			return f, fmt.Errorf("%s: %w", field.name, err)
		}
	}
	rows := flow{face: plainFace(), paged: true}
	if fitsSmall(title, smallColumns) {
		header(&f, title, "")
	} else {
		header(&f, "CHANGE OF THE BOX", "")
		rows.paragraph(title)
	}
	rows.paragraph(text)
	for i, row := range rows.set() {
		if i == textRows {
			return device.Frame{}, fmt.Errorf("text: %w", &UndisplayableError{Offset: len(text), Reason: TooLong})
		}
		drawRow(&f, row, 0, textTop+i*line, 1, 1)
	}
	footer(&f, "HOLD BOTH 3 S", left, hold)
	f.Invert()
	return f, nil
}

// DrawPairing shows the code and the address that a new phone needs. Every five seconds it changes between the address
// as text and as a QR code (ISO/IEC 18004), where the address is short enough for one that a camera can read. The code is of
// digits and spaces.
func DrawPairing(code, address string, left time.Duration) device.Frame {
	if left/(5*time.Second)%2 == 1 {
		if f, ok := pairingQR(code, address, left); ok {
			return f
		}
	}
	var f device.Frame
	rows, top := pairingRows(address), textTop
	if len(rows) < textRows {
		header(&f, "PAIR A PHONE", "")
		centred(&f, code, textTop+1, 1, 1)
		top += line
	} else {
		header(&f, "PAIR, CODE:", code)
	}
	for i, row := range rows {
		drawRow(&f, row, 0, top+i*line, 1, 1)
	}
	footer(&f, "OPEN, TYPE CODE", left, 0)
	return f
}

// pairingRows sets an address in two rows, or in three if it is long; one that is longer still ends in a mark, as half an
// address would look like a whole one.
func pairingRows(address string) [][]cell {
	f := flow{face: plainFace(), lenient: true}
	f.paragraph(address)
	rows := f.set()
	if len(rows) <= textRows {
		return rows
	}
	last := rows[textRows-1]
	for columnsOf(last) >= columns {
		last = last[:len(last)-1]
	}
	rows[textRows-1] = append(last, cell{allMarks().more, reserved})
	return rows[:textRows]
}

// pairingQR draws the QR code on the left, dark on lit as cameras expect, and the code beside it. It fails if two
// pixels a module and a quiet zone do not fit.
func pairingQR(code, address string, left time.Duration) (device.Frame, bool) {
	const pitch, quiet = 2, 3
	var f device.Frame
	symbol, err := qr.Encode(address, qr.L)
	if err != nil || symbol.Size*pitch+2*quiet > device.Height {
		return f, false
	}
	margin := (device.Height - symbol.Size*pitch) / 2
	for y := range device.Height {
		for x := range device.Height {
			black := x >= margin && y >= margin && symbol.Black((x-margin)/pitch, (y-margin)/pitch)
			f.Set(x, y, !black)
		}
	}
	lit := func(x, y int) { f.Set(x, y, true) }
	const beside = device.Height + 2
	small("PAIR", beside, 1, lit)
	time := clockFace(left)
	small(time, device.Width-smallSize(time), 1, lit)
	row := shorten(code, (device.Width-device.Height)/column)
	drawRow(&f, row, device.Height+(device.Width-device.Height-columnsOf(row)*column)/2, line, 1, 2)
	small("SCAN, THEN", beside, device.Height-2*headerHeight-1, lit)
	small("TYPE CODE", beside, device.Height-headerHeight, lit)
	return f, true
}
