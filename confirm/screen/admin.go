package screen

import (
	"fmt"
	"time"
	"unicode/utf8"

	"rsc.io/qr"

	"assent.home.arpa/device"
)

// MaxAdminPages bounds a prompt for a change of the box: nobody reads more than that to the end.
const MaxAdminPages = 32

// The header of prompts whose title the low face cannot draw, or that have several pages.
const (
	labelChange      = "CHANGE OF THE BOX"
	labelChangeLarge = "CHANGE"
)

// AdminPages draws the prompt for a change of the box itself. It is inverse, so that nobody takes it for a request. The title is
// in the header where that can draw it and one page holds the text; else it stands above the text, and pages are numbered. In
// large letters all of it is on the pages. A name that somebody else chose stands below the text, set apart. An error wraps *UndisplayableError and names the field, or is ErrEmpty; what takes
// more than MaxAdminPages is too long.
func AdminPages(title, text string, large bool, names ...string) ([]Page, error) {
	fields := []struct{ name, text string }{{"title", title}, {"text", text}}
	for _, n := range names {
		fields = append(fields, struct{ name, text string }{"name", n})
	}
	for _, field := range fields {
		if err := Check(field.text); err != nil {
			return nil, fmt.Errorf("%s: %w", field.name, err)
		}
	}
	set := func(size face, label string, paragraphs ...string) []draft {
		f := flow{face: size, paged: true}
		for _, p := range paragraphs {
			f.paragraph(p)
		}
		for _, n := range names {
			f.foreign(n)
		}
		return f.drafts(label)
	}
	drawn := set(plainFace(), title, text)
	switch {
	case large:
		drawn = set(largeFace(), labelChangeLarge, title, text)
	case len(drawn) == 1 && fitsSmall(title, smallColumns):
		drawn[0].page.CodePoints += utf8.RuneCountInString(title)
	default:
		drawn = set(plainFace(), labelChange, title, text)
	}
	if len(drawn) == 0 {
		return nil, ErrEmpty
	}
	if len(drawn) > MaxAdminPages {
		return nil, fmt.Errorf("text: %w", &UndisplayableError{Offset: len(text), Reason: TooLong})
	}
	pages := make([]Page, len(drawn))
	for i, d := range drawn {
		number := ""
		if len(drawn) > 1 {
			number = fmt.Sprintf("%d/%d", i+1, len(drawn))
		}
		header(&d.page.Frame, d.label, number)
		d.page.Frame.Invert()
		pages[i] = d.page
	}
	return pages, nil
}

// DrawAdmin shows a page of a prompt with a hint and the time left, or a filling bar during a hold, in the strip at the bottom.
func DrawAdmin(p Page, hint string, left time.Duration, hold float64) device.Frame {
	f := p.Frame
	f.Invert()
	footer(&f, hint, left, hold)
	f.Invert()
	return f
}

// DrawPairing shows the code and the address that a new phone needs. Every five seconds it changes between the address
// as text and as a QR code (ISO/IEC 18004), where the address is short enough for one that a camera can read. The code is of
// digits and spaces. In large letters the code has a screen of its own among them.
func DrawPairing(code, address string, left time.Duration, large bool) device.Frame {
	turn := int(left / (5 * time.Second))
	if turn%2 == 1 {
		if f, ok := pairingQR(code, address, left); ok {
			return f
		}
	}
	var f device.Frame
	if large && turn%4 == 0 {
		header(&f, "PAIR A PHONE", "")
		tall(&f, code, textTop+line/2)
		footer(&f, "OPEN, TYPE CODE", left, 0)
		return f
	}
	rows, top := clipped(address, columns), textTop
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
