package executor_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/capabilities/executor"
	"assent.home.arpa/confirm"
)

// TestAuditNamesThePanelsStepsAsThePanelDoes: the two know the same numbers, and the same words for them.
func TestAuditNamesThePanelsStepsAsThePanelDoes(t *testing.T) {
	for n := uint8(1); n <= uint8(audit.PanelBulletin); n++ {
		if panel, log := confirm.State(n), audit.PanelState(n); panel.String() != log.String() {
			t.Errorf("state %d is %q to the panel and %q to the audit", n, panel, log)
		}
	}
	for n := uint8(1); n <= uint8(confirm.CauseReread); n++ {
		if panel, log := confirm.Cause(n), audit.PanelCause(n); panel.String() != log.String() {
			t.Errorf("cause %d is %q to the panel and %q to the audit", n, panel, log)
		}
	}
}

// TestStepsOfACourse: each step arrives whole, and so does the number of those that are missing.
func TestStepsOfACourse(t *testing.T) {
	steps, leftOut := executor.Steps(confirm.Course{
		Steps: []confirm.Step{
			{Mono: time.Second, State: confirm.StateReading, Cause: confirm.CauseDrawn, Page: 300},
			{Mono: 2 * time.Second, State: confirm.StateResult, Cause: confirm.CauseApproved},
		},
		LeftOut: 1 << 20,
	})
	want := []audit.PanelStep{{At: time.Second, State: 4, Cause: audit.PanelDrawn, Page: 300}, {At: 2 * time.Second, State: 8, Cause: 18}}
	if diff := cmp.Diff(want, steps); diff != "" || leftOut != math.MaxUint16 {
		t.Errorf("%d left out, %s", leftOut, diff)
	}
}

// TestBoundsOfACourseAreTheFormats: what the panel keeps is what a record holds.
func TestBoundsOfACourseAreTheFormats(t *testing.T) {
	if confirm.MaxSteps != audit.MaxSteps || confirm.StepsFirst != audit.StepsFirst || confirm.MaxPresses != audit.MaxPresses {
		t.Error("the panel keeps more or less than a record holds")
	}
}
