package main

import (
	"errors"
	"fmt"
	"image/png"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
	"assent.home.arpa/image/hil/report"
)

// pixel is how large a pixel of the glass is in a picture.
const pixel = 4

// verdict collects what a guest says and compares it with what is stated in cases.go.
type verdict struct {
	pictures string // folder
	out      io.Writer

	headed bool // the table of cases
	shots  int
	done   map[string]bool // cases and figures that were reported
	wrong  []string
	end    *report.End
}

// line takes one line of the console.
func (v *verdict) line(console string) {
	l, ok, err := report.Parse(console)
	switch {
	case err != nil:
		v.fault("the console has a line that cannot be relied on: %.80q", console)
	case !ok:
	case l.Note != "":
		fmt.Fprintln(v.out, "#", l.Note)
	case l.Case != nil:
		v.judgeCase(*l.Case)
	case l.Figure != nil:
		v.judgeFigure(*l.Figure)
	case l.Glass != nil:
		v.picture(*l.Glass)
	case l.End != nil:
		v.end = l.End
	}
}

func (v *verdict) fault(format string, args ...any) {
	v.wrong = append(v.wrong, fmt.Sprintf(format, args...))
}

// first notes that something was reported, and reports whether it was for the first time.
func (v *verdict) first(name string) bool {
	if v.done[name] {
		v.fault("%s was reported twice", name)
		return false
	}
	if v.done == nil {
		v.done = map[string]bool{}
	}
	v.done[name] = true
	return true
}

func (v *verdict) judgeCase(c report.Case) {
	want, known := stated()[c.Name]
	before := len(v.wrong)
	switch {
	case !known:
		v.fault("%s: no outcome is stated for this case", c.Name)
	case !v.first(c.Name):
	case c.Outcome != want.outcome:
		v.fault("%s: ended as %q instead of %q", c.Name, c.Outcome, want.outcome)
	case c.Receipts != want.receipts:
		v.fault("%s: %d receipts instead of %d", c.Name, c.Receipts, want.receipts)
	}
	for _, p := range c.Problems {
		v.fault("%s: %s", c.Name, p)
	}
	word := "ok"
	if len(v.wrong) > before {
		word = "FAIL"
	}
	expected := "nothing is stated"
	if known {
		expected = want.String()
	}
	v.row(word, c.Name, expected, outcome{c.Outcome, c.Receipts}.String(), fmt.Sprintf("%5.1f s", float64(c.Millis)/1000))
}

// row prints one row of the table of cases, under its heads.
func (v *verdict) row(word, name, expected, happened, took string) {
	const row = "%-4s %-35s %-26s %-26s %s\n"
	if !v.headed {
		v.headed = true
		fmt.Fprintf(v.out, row, "", "case", "expected", "happened", "   time")
	}
	fmt.Fprintf(v.out, row, word, name, expected, happened, took)
}

func (v *verdict) judgeFigure(f report.Figure) {
	limit, known := limits()[f.Name]
	if !known {
		v.fault("%s: no limit is stated for this figure", f.Name)
		return
	}
	v.first(f.Name)
	text := "-"
	if limit > 0 {
		text = fmt.Sprintf("<=%g", limit)
		if !(f.Value <= limit) { // also what is no number
			v.fault("%s is %.3f, the limit is %g", f.Name, f.Value, limit)
		}
	}
	fmt.Fprintf(v.out, "%s %.3f %s %s\n", f.Name, f.Value, f.Unit, text)
}

// picture stores what the glass showed.
func (v *verdict) picture(g report.Glass) {
	if len(g.Frame) != len(device.Frame{}) {
		v.fault("a picture of %q has %d bytes", g.Name, len(g.Frame))
		return
	}
	v.shots++
	name := fmt.Sprintf("%02d-%s.png", v.shots, strings.Map(fileRune, g.Name))
	f, err := os.Create(filepath.Join(v.pictures, name))
	if err == nil {
		err = errors.Join(png.Encode(f, screen.Image(device.Frame(g.Frame), pixel)), f.Close())
	}
	if err != nil {
		v.fault("a picture could not be stored: %v", err)
	}
}

// fileRune keeps names of pictures to what every file system takes.
func fileRune(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
		return r
	}
	return '-'
}

// judge says what is wrong, after the last line.
func (v *verdict) judge() error {
	if v.end == nil {
		v.fault("the guest did not come to its end")
	} else {
		v.complete()
	}
	if len(v.wrong) > 0 {
		return fmt.Errorf("%d things are not as they should be:\n  %s", len(v.wrong), strings.Join(v.wrong, "\n  "))
	}
	fmt.Fprintf(v.out, "%d cases on Linux %s, all as stated\n", v.end.Cases, v.end.Kernel)
	return nil
}

// complete demands that everything stated was reported.
func (v *verdict) complete() {
	for _, name := range append(slices.Sorted(maps.Keys(stated())), slices.Sorted(maps.Keys(limits()))...) {
		if !v.done[name] {
			v.fault("%s: nothing was reported", name)
		}
	}
	if v.end.Cases != len(stated()) {
		v.fault("the guest ran %d cases, and %d outcomes are stated", v.end.Cases, len(stated()))
	}
}
