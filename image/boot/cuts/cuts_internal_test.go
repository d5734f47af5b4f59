package cuts

import (
	"bytes"
	"testing"

	"assent.home.arpa/image/hil/report"
)

// TestWhatAMachineSaysIsCounted takes the lines of a machine that found one fault.
func TestWhatAMachineSaysIsCounted(t *testing.T) {
	var r Result
	ended := false
	for _, l := range []report.Line{
		{Note: "it began"},
		{Case: &report.Case{Name: "cut 3", Outcome: "bad", Problems: []string{"a record is gone"}}},
		{Figure: &report.Figure{Name: "image/replay_points_ok", Value: 119, Unit: "starts"}},
		{End: &report.End{Kernel: "cuts", Cases: 120}},
	} {
		var line bytes.Buffer
		if err := report.Write(&line, l); err != nil {
			t.Fatal(err)
		}
		ended = r.line(line.String())
	}
	if !ended || r.Good != 119 || r.Cuts != 120 || len(r.Faults) != 1 || r.Faults[0] != "cut 3: a record is gone" || len(r.Notes) != 1 {
		t.Errorf("ended %v, %+v", ended, r)
	}
	if r.line("assent-hil 00000000 {}"); len(r.Faults) != 2 {
		t.Error("a damaged line is taken for none")
	}
	if r.line("[    1.0] a line of the kernel's"); len(r.Faults) != 2 {
		t.Error("a line of the kernel's is taken for a fault")
	}
}
