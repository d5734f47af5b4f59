// Package report is what the guest of the hardware test tells its host: one line of the serial console for each thing.
//
// A line is a mark, the CRC-32 of what follows in hex, and a JSON object. The console is shared with the kernel, which may
// write into the middle of a line; the sum tells such a line from a sound one.
package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
)

// mark begins every line of a guest.
const mark = "assent-hil "

// maxLine bounds a line. The longest carries a picture of 1024 bytes in base64.
const maxLine = 16 << 10

// ErrLine says that a line begins like a guest's and cannot be relied on.
var ErrLine = errors.New("report: damaged line")

// Line is one thing that a guest says. Exactly one field is set.
type Line struct {
	Note   string  `json:"note,omitempty"` // for people
	Case   *Case   `json:"case,omitempty"`
	Figure *Figure `json:"figure,omitempty"`
	Glass  *Glass  `json:"glass,omitempty"`
	End    *End    `json:"end,omitempty"`
}

// Case is what became of one case.
type Case struct {
	Name     string   `json:"name"`
	Outcome  string   `json:"outcome"`  // of the case's first request, as confirm.Outcome says it; of a cable, what is on it
	Receipts int      `json:"receipts"` // that could be spent
	Problems []string `json:"problems"` // what else was not as it should be
	Millis   int64    `json:"millis"`
}

// Figure is one measurement.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// Glass is what somebody would have seen.
type Glass struct {
	Name  string `json:"name"`
	Frame []byte `json:"frame"` // a device.Frame
}

// End is the last line: the guest did all it had to.
type End struct {
	Kernel string `json:"kernel"` // release
	Cases  int    `json:"cases"`
}

// Write writes one line in one call.
func Write(out io.Writer, l Line) error {
	if err := l.check(); err != nil {
		return err
	}
	body, err := json.Marshal(l)
	if err != nil {
		return err
	}
	line := fmt.Appendf(nil, "%s%08x %s\n", mark, crc32.ChecksumIEEE(body), body)
	if len(line) > maxLine {
		return fmt.Errorf("report: a line of %d bytes, at most %d", len(line), maxLine)
	}
	_, err = out.Write(line)
	return err
}

// Parse reads one line of a console. A line that is not a guest's is not an error: ok is false.
func Parse(console string) (l Line, ok bool, err error) {
	_, rest, ok := strings.Cut(console, mark)
	if !ok {
		return Line{}, false, nil
	}
	rest = strings.TrimRight(rest, "\r\n")
	sum, body, found := strings.Cut(rest, " ")
	if !found || len(rest) > maxLine || sum != fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(body))) {
		return Line{}, true, ErrLine
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(body)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		return Line{}, true, fmt.Errorf("%w: %v", ErrLine, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Line{}, true, fmt.Errorf("%w: something follows the object", ErrLine)
	}
	return l, true, l.check()
}

func (l Line) check() error {
	n := 0
	for _, set := range []bool{l.Note != "", l.Case != nil, l.Figure != nil, l.Glass != nil, l.End != nil} {
		if set {
			n++
		}
	}
	if n != 1 {
		return fmt.Errorf("%w: it says %d things", ErrLine, n)
	}
	return nil
}
