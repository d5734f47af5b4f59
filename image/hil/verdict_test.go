package main

import (
	"bytes"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assent.home.arpa/device"
	"assent.home.arpa/image/hil/report"
)

// console is what a guest says on which everything went as stated, one line each, with the end last.
func console(t *testing.T) []report.Line {
	var lines []report.Line
	for name, limit := range limits() {
		lines = append(lines, report.Line{Figure: &report.Figure{Name: name, Value: limit, Unit: "x"}})
	}
	for name, want := range stated() {
		lines = append(lines, report.Line{Case: &report.Case{Name: name, Outcome: want.outcome, Receipts: want.receipts}})
	}
	return append(lines, report.Line{End: &report.End{Kernel: "7", Cases: len(stated())}})
}

// judged lets a verdict hear a console and returns what it thinks.
func judged(t *testing.T, lines []report.Line) error {
	t.Helper()
	v := &verdict{pictures: t.TempDir(), out: &bytes.Buffer{}}
	for _, l := range lines {
		var out bytes.Buffer
		if err := report.Write(&out, l); err != nil {
			t.Fatal(err)
		}
		v.line("[    1.0] the kernel says something")
		v.line(strings.TrimRight(out.String(), "\n") + "\r")
	}
	return v.judge()
}

func TestAllAsStated(t *testing.T) {
	if err := judged(t, console(t)); err != nil {
		t.Error(err)
	}
}

// TestTableTellsExpectedFromHappened: what is expected comes from cases.go, whatever a guest says.
func TestTableTellsExpectedFromHappened(t *testing.T) {
	var out bytes.Buffer
	v := &verdict{pictures: t.TempDir(), out: &out}
	v.judgeCase(report.Case{Name: "deny", Outcome: "approved", Receipts: 1, Millis: 1200})
	v.judgeCase(report.Case{Name: "read and hold", Outcome: "approved", Receipts: 1})
	v.judgeCase(report.Case{Name: "no such case", Outcome: "denied"})
	const want = `     case                                expected                   happened                      time
FAIL deny                                denied, 0 receipts         approved, 1 receipt          1.2 s
ok   read and hold                       approved, 1 receipt        approved, 1 receipt          0.0 s
FAIL no such case                        nothing is stated          denied, 0 receipts           0.0 s
`
	if got := out.String(); got != want {
		t.Errorf("the table is\n%s", got)
	}
}

// TestWhatIsNotAsStated spoils a good console in one place each.
func TestWhatIsNotAsStated(t *testing.T) {
	set := func(name string, change func(*report.Case)) func([]report.Line) []report.Line {
		return func(lines []report.Line) []report.Line {
			for _, l := range lines {
				if l.Case != nil && l.Case.Name == name {
					change(l.Case)
				}
			}
			return lines
		}
	}
	without := func(name string) func([]report.Line) []report.Line {
		return func(lines []report.Line) []report.Line {
			var kept []report.Line
			for _, l := range lines {
				if (l.Case == nil || l.Case.Name != name) && (l.Figure == nil || l.Figure.Name != name) {
					kept = append(kept, l)
				}
			}
			return kept
		}
	}
	and := func(more ...report.Line) func([]report.Line) []report.Line {
		return func(lines []report.Line) []report.Line { return append(more, lines...) }
	}
	for _, tt := range []struct {
		name  string
		spoil func([]report.Line) []report.Line
		says  string
	}{
		{"another outcome", set("deny", func(c *report.Case) { c.Outcome = "approved" }), `deny: ended as "approved" instead of "denied"`},
		{"one receipt too many", set("read and hold", func(c *report.Case) { c.Receipts = 2 }), "2 receipts instead of 1"},
		{"a receipt where there may be none", set("panic", func(c *report.Case) { c.Receipts = 1 }), "1 receipts instead of 0"},
		{"a problem", set("deny", func(c *report.Case) { c.Problems = []string{"the glass is dark"} }), "deny: the glass is dark"},
		{"a case left out", without("stuck for ever"), "stuck for ever: nothing was reported"},
		{"a figure left out", without("panel/page_bytes"), "panel/page_bytes: nothing was reported"},
		{"a case twice", and(report.Line{Case: &report.Case{Name: "deny", Outcome: "denied"}}), "deny was reported twice"},
		{"an unknown case", and(report.Line{Case: &report.Case{Name: "new"}}), "no outcome is stated"},
		{"an unknown figure", and(report.Line{Figure: &report.Figure{Name: "panel/new"}}), "no limit is stated"},
		{"over the limit", func(lines []report.Line) []report.Line {
			return append([]report.Line{{Figure: &report.Figure{Name: "panel/page_bytes", Value: 1.2}}}, without("panel/page_bytes")(lines)...)
		}, "panel/page_bytes is 1.200, the limit is 1.1"},
		{"no end", func(lines []report.Line) []report.Line { return lines[:len(lines)-1] }, "did not come to its end"},
		{"another number of cases", func(lines []report.Line) []report.Line {
			lines[len(lines)-1].End.Cases--
			return lines
		}, "outcomes are stated"},
		{"a picture of another size", and(report.Line{Glass: &report.Glass{Name: "x", Frame: []byte{1}}}), "has 1 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := judged(t, tt.spoil(console(t)))
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("the verdict is %v", err)
			}
		})
	}
}

func TestADamagedLineIsNoGoodConsole(t *testing.T) {
	v := &verdict{out: &bytes.Buffer{}, end: &report.End{Cases: len(stated())}, done: map[string]bool{}}
	for name := range stated() {
		v.done[name] = true
	}
	for name := range limits() {
		v.done[name] = true
	}
	v.line(`assent-hil 00000000 {"note":"x"}`)
	if err := v.judge(); err == nil || !strings.Contains(err.Error(), "cannot be relied on") {
		t.Errorf("the verdict is %v", err)
	}
}

func TestPictures(t *testing.T) {
	dir := t.TempDir()
	v := &verdict{pictures: dir, out: &bytes.Buffer{}}
	var f device.Frame
	f.Set(3, 2, true)
	v.picture(report.Glass{Name: "../read and hold", Frame: f[:]})
	file, err := os.Open(filepath.Join(dir, "01----read-and-hold.png"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	m, err := png.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	if b := m.Bounds(); b.Dx() != device.Width*pixel || b.Dy() != device.Height*pixel {
		t.Errorf("the picture is %v", b)
	}
	if m.At(3*pixel, 2*pixel) == m.At(0, 0) {
		t.Error("the lit pixel is dark")
	}
}

// TestTheGuestHasNoCaseWithoutAnOutcome keeps the two lists together without a machine: the guest's are in its source.
func TestTheGuestHasNoCaseWithoutAnOutcome(t *testing.T) {
	sources, err := filepath.Glob("guest/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, s := range sources {
		b, err := os.ReadFile(s)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	for name := range stated() {
		if !strings.Contains(all.String(), fmt.Sprintf("{name: %q", name)) {
			t.Errorf("the guest has no case %q", name)
		}
	}
	if n := strings.Count(all.String(), "{name: \""); n != len(stated())+1 { // and the room of the figures
		t.Errorf("the guest names %d cases, %d outcomes are stated", n-1, len(stated()))
	}
}
