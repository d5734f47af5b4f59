package report_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/image/hil/report"
)

func lines() []report.Line {
	return []report.Line{
		{Note: "modules are loaded"},
		{Case: &report.Case{Name: "read and hold", Outcome: "approved", Receipts: 1, Millis: 9000}},
		{Case: &report.Case{Name: "odd", Problems: []string{"a \"quoted\"\nproblem", "and another"}}},
		{Figure: &report.Figure{Name: "panel/page_bytes", Value: 1.0625, Unit: "ratio"}},
		{Glass: &report.Glass{Name: "first", Frame: bytes.Repeat([]byte{0xa5}, 1024)}},
		{End: &report.End{Kernel: "7.2", Cases: 2}},
	}
}

func written(t *testing.T, l report.Line) string {
	t.Helper()
	var out bytes.Buffer
	if err := report.Write(&out, l); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	for _, want := range lines() {
		line := written(t, want)
		if strings.Count(line, "\n") != 1 {
			t.Errorf("%q is not one line", line)
		}
		// A terminal ends lines with two characters, and the kernel may have left half a line before this one.
		for _, console := range []string{line, strings.Replace(line, "\n", "\r\n", 1), "[    1.0] usb 1-1: " + line} {
			got, ok, err := report.Parse(console)
			if !ok || err != nil {
				t.Fatalf("%q: %v, %v", console, ok, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		}
	}
}

func TestOtherLinesAreTheKernels(t *testing.T) {
	for _, console := range []string{"", "\r\n", "[    0.000000] Booting Linux", "assent-hi"} {
		if _, ok, err := report.Parse(console); ok || err != nil {
			t.Errorf("%q: %v, %v", console, ok, err)
		}
	}
}

// TestDamageIsSeen breaks a line at each byte.
func TestDamageIsSeen(t *testing.T) {
	line := written(t, lines()[1])
	line = line[:len(line)-1]
	for i := len("assent-hil "); i < len(line); i++ {
		for _, broken := range []string{
			line[:i], line[:i] + line[i+1:], line[:i] + "[    2.5] usb 1-1: new\n" + line[i:], line[:i] + "~" + line[i+1:],
		} {
			if _, ok, err := report.Parse(broken); !ok || !errors.Is(err, report.ErrLine) {
				t.Fatalf("%q: %v, %v", broken, ok, err)
			}
		}
	}
}

func TestALineSaysOneThing(t *testing.T) {
	for _, l := range []report.Line{{}, {Note: "a", End: &report.End{}}} {
		if err := report.Write(&bytes.Buffer{}, l); !errors.Is(err, report.ErrLine) {
			t.Errorf("%+v: %v", l, err)
		}
	}
	// Sums are right here; what is in the object is not.
	for _, console := range []string{
		`assent-hil feb044ad {"other":1}`, `assent-hil a1cc67cd {"note":"a"}{}`, `assent-hil a3a6bf43 {}`,
	} {
		if _, ok, err := report.Parse(console); !ok || !errors.Is(err, report.ErrLine) {
			t.Errorf("%q: %v, %v", console, ok, err)
		}
	}
	if err := report.Write(&bytes.Buffer{}, report.Line{Note: strings.Repeat("x", 20000)}); err == nil {
		t.Error("a line without bound was written")
	}
}

func FuzzParse(f *testing.F) {
	for _, l := range lines() {
		var out bytes.Buffer
		if err := report.Write(&out, l); err != nil {
			f.Fatal(err)
		}
		f.Add(out.String())
	}
	f.Fuzz(func(t *testing.T, console string) {
		l, ok, err := report.Parse(console)
		if !ok || err != nil {
			return
		}
		again, ok, err := report.Parse(written(t, l))
		if !ok || err != nil {
			t.Fatalf("%+v cannot be written and read: %v", l, err)
		}
		if diff := cmp.Diff(l, again); diff != "" {
			t.Error(diff)
		}
	})
}
