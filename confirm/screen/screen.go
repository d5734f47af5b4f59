// Package screen turns text into the pictures that a person approves, and back.
//
// Everything that leaves the box is shown word for word on a 128×64 panel first, so what this package draws is what was
// approved. It is pure: text in, [device.Frame] out; no clock, no device, no state.
//
// # The rules
//
//   - Text must be in Unicode NFC (UAX #15). What cannot be drawn faithfully is an [UndisplayableError]; nothing is ever
//     stripped, replaced or cut. The table of rules in table.go decides for each code point.
//   - Every accepted code point can be read back from the pixels: [Decode] is the inverse of [Pages] for literal text.
//     Two texts therefore never give one picture.
//   - Line feeds, tabs and every space that is not one plain gap inside a row are drawn as visible marks.
//   - A run in another script than Latin begins with an inverse tag (CYR, GRE; LAT on the way back), also at the top of
//     each page. A letter that has the glyph of an earlier letter (in font.Ranges) of another script is drawn as it is in a
//     word of its own script, after the tag; in a word of several scripts it is a box with its number, U+0430. So is every
//     code point that has the glyph of an earlier one which may stand in the same run.
//   - A name that somebody else chose, of a phone, stands in rows of its own. Each begins with a mark that no text can draw, so that
//     nobody takes one for the product's words.
//
// TEXT.md beside this file is the table of what happens to which text, with examples that the tests try.
//
// # The page
//
// RAM page 0 (rows 0–7) is an inverse header in a low face: what the page is, a warning sign if the card is tainted,
// and the page number. Only the product's own words appear there, so no literal text can imitate it. RAM pages 1–6 hold
// three text rows of sixteen half-width columns, or one of eight twice as large, which the header marks with X2, or with the
// script that the page begins in if that is not Latin. RAM page 7 is a strip that the pages leave dark: [DrawReading] puts the
// time, the hint and the bar there, and [Digest] leaves it out.
package screen

import (
	"crypto/sha256"
	"time"

	"assent.home.arpa/device"
)

// Card is one request as the person at the box reads it. Every field is checked like the text: a phone's name or a
// source's name can deceive just as well.
type Card struct {
	// Title is the consequence in the product's words: "Search Wikipedia for".
	Title string
	// Text is the literal text, word for word. It may be empty.
	Text string
	// Destination is the registrable domain or the host, drawn large on a page of its own; empty if nothing leaves.
	Destination string
	// Note says whether it can be undone, and the method and size: "GET, 0 bytes sent beyond the text".
	Note string
	// Phone is the name of the phone that asked, which is set apart from the product's words.
	Phone string
	// Taint is the banner "written after reading <source>", or empty.
	Taint string
	// Large sets the pages in letters twice as large, for people who do not see well.
	Large bool
}

// Page is one picture of a card, with its number and the count of pages drawn on it.
type Page struct {
	Frame device.Frame
	// CodePoints is how many code points the page shows; it sets how long the page must stay on the glass.
	CodePoints int
}

// Idle is what the panel shows while nothing waits.
type Idle struct {
	// Today counts the approvals since midnight.
	Today int
	// HeadCode is the short code of the audit's head, to compare with an exported audit.
	HeadCode string
	// Phones counts the paired phones; with none the screen says how to pair one.
	Phones int
	// Frozen says that a panic press has frozen what needs a press.
	Frozen bool
	// Scripted says that the model is a scripted one, which must never pass unnoticed.
	Scripted bool
	// Shift moves the picture against burn-in: any number, usually the minutes since boot.
	Shift int
	// Note is one more line, such as "clock is unset".
	Note string
	// Hint says what to do about the note: "EXPORT IT". Both are then in the small face, at most 20 characters each, and
	// stand before the words on how to pair.
	Hint string
	// Large draws all of it in the rows of text, or twice as large.
	Large bool
}

// Waiting announces the front request before anybody has tapped. Nothing on it can be approved.
type Waiting struct {
	Phone, Title, Destination string
	Pages                     int
	Left                      time.Duration
	// Queue counts the requests behind this one.
	Queue int
	// Large shows one of them at a time, twice as high.
	Large bool
}

// digestContext separates this digest from every other SHA-256 in the product. Change it with any change of what a
// page looks like.
const digestContext = "assent/screen/v3"

// strip is where the overlay begins in a frame: the last RAM page (SSD1306 datasheet section 8.7).
const strip = device.Width * (device.Height/8 - 1)

// Digest is the SHA-256 over "assent/screen/v3" and the pages' bitmaps in order, 896 bytes each: RAM pages 0–6, without
// the strip in which time and hold are drawn.
func Digest(pages []Page) [32]byte {
	h := sha256.New()
	h.Write([]byte(digestContext))
	for i := range pages {
		h.Write(pages[i].Frame[:strip])
	}
	return [32]byte(h.Sum(nil))
}
