package policy_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/policy"
)

// TestOnlyLocalReadOnlyNeedsNoPress walks every combination, those that do not exist included (A19).
func TestOnlyLocalReadOnlyNeedsNoPress(t *testing.T) {
	type key struct {
		e capabilities.Effect
		n capabilities.Network
		c capabilities.Class
	}
	automatic := map[key]bool{}
	for _, n := range []capabilities.Network{capabilities.NetworkNone, capabilities.NetworkFeed} {
		for _, c := range []capabilities.Class{capabilities.ClassNone, capabilities.ClassFiles, capabilities.ClassLocal} {
			automatic[key{capabilities.Read, n, c}] = true
		}
	}
	for e := range 256 {
		for n := range 8 {
			for c := range 8 {
				k := key{capabilities.Effect(e), capabilities.Network(n), capabilities.Class(c)}
				got := policy.NeedsPress(capabilities.Spec{Effect: k.e, Network: k.n, Class: k.c})
				if got == automatic[k] {
					t.Fatalf("effect %d network %d class %d: needs a press = %v", e, n, c, got)
				}
			}
		}
	}
}

func local() capabilities.Spec {
	return capabilities.Spec{
		Name: "system.health", Version: 1, Effect: capabilities.Read, Network: capabilities.NetworkNone,
		Privacy: capabilities.PrivacyBox, Class: capabilities.ClassNone, Bounds: capabilities.Bounds{PerTurn: 2},
	}
}

func web() capabilities.Spec {
	return capabilities.Spec{
		Name: "web.search", Version: 1, Effect: capabilities.Read, Network: capabilities.NetworkInternet,
		Privacy: capabilities.PrivacyPersonal, Class: capabilities.ClassNet, Bounds: capabilities.Bounds{PerTurn: 2},
	}
}

func fine() policy.Facts {
	return policy.Facts{Live: true, Role: policy.Adult, Proposals: 1, MaxProposals: 6, Calls: 1, TLS: true}
}

func TestDecide(t *testing.T) {
	with := func(change func(*policy.Facts)) policy.Facts { f := fine(); change(&f); return f }
	personal := local()
	personal.Privacy = capabilities.PrivacyHousehold
	refuse := func(r policy.Rule, c capabilities.Code) policy.Verdict { return policy.Verdict{Rule: r, Code: c} }
	tests := []struct {
		event string
		spec  capabilities.Spec
		facts policy.Facts
		want  policy.Verdict
	}{
		{"local read", local(), fine(), policy.Verdict{Allow: true, Rule: policy.RuleAutomatic}},
		{"web search", web(), fine(), policy.Verdict{Allow: true, NeedsPress: true, Rule: policy.RulePress}},
		{"no facts", local(), policy.Facts{}, refuse(policy.RuleLiveAsk, capabilities.CodeNoAsk)},
		{"no ask", local(), with(func(f *policy.Facts) { f.Live = false }), refuse(policy.RuleLiveAsk, capabilities.CodeNoAsk)},
		{"no role", local(), with(func(f *policy.Facts) { f.Role = 0 }), refuse(policy.RuleRole, capabilities.CodeNotAllowed)},
		{"a role that does not exist", local(), with(func(f *policy.Facts) { f.Role = 9 }), refuse(policy.RuleRole, capabilities.CodeNotAllowed)},
		{"guest searches", web(), with(func(f *policy.Facts) { f.Role = policy.Guest }), refuse(policy.RuleRole, capabilities.CodeNotAllowed)},
		{"guest asks of the household", personal, with(func(f *policy.Facts) { f.Role = policy.Guest }), refuse(policy.RuleRole, capabilities.CodeNotAllowed)},
		{"guest asks of the box", local(), with(func(f *policy.Facts) { f.Role = policy.Guest }), policy.Verdict{Allow: true, Rule: policy.RuleAutomatic}},
		{"sixth proposal", local(), with(func(f *policy.Facts) { f.Proposals = 6 }), policy.Verdict{Allow: true, Rule: policy.RuleAutomatic}},
		{"seventh proposal", local(), with(func(f *policy.Facts) { f.Proposals = 7 }), refuse(policy.RuleTurnCap, capabilities.CodeBudget)},
		{"third local call of two", local(), with(func(f *policy.Facts) { f.Calls = 3 }), refuse(policy.RuleCallCap, capabilities.CodeBudget)},
		{"third search of two", web(), with(func(f *policy.Facts) { f.Calls = 3 }), refuse(policy.RuleCallCap, capabilities.CodeBudget)},
		{"frozen search", web(), with(func(f *policy.Facts) { f.Frozen = true }), refuse(policy.RuleFrozen, capabilities.CodeFrozen)},
		{"frozen local", local(), with(func(f *policy.Facts) { f.Frozen = true }), policy.Verdict{Allow: true, Rule: policy.RuleAutomatic}},
		{"denied before", web(), with(func(f *policy.Facts) { f.DeniedInTurn = true }), refuse(policy.RuleDeniedInTurn, capabilities.CodeDeniedInTurn)},
		{"cooling down", web(), with(func(f *policy.Facts) { f.CoolDown = time.Second }), policy.Verdict{Rule: policy.RuleCoolDown, Code: capabilities.CodeCoolDown, RetryIn: time.Second}},
		{"cooling down, local", local(), with(func(f *policy.Facts) { f.CoolDown = time.Second }), policy.Verdict{Allow: true, Rule: policy.RuleAutomatic}},
		{"TLS in 1970", web(), with(func(f *policy.Facts) { f.ClockUnset = true }), refuse(policy.RuleClock, capabilities.CodeClockUnset)},
		{"no TLS in 1970", web(), with(func(f *policy.Facts) { f.ClockUnset, f.TLS = true, false }), policy.Verdict{Allow: true, NeedsPress: true, Rule: policy.RulePress}},
	}
	for _, tt := range tests {
		if got := policy.Decide(tt.spec, tt.facts); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.event, got, tt.want)
		}
	}
}

// TestNoFactsWaiveThePress: whatever the facts are, what needs a press is never allowed without one.
func TestNoFactsWaiveThePress(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := capabilities.Spec{
			Effect: capabilities.Effect(rapid.Byte().Draw(t, "effect")), Network: capabilities.Network(rapid.Byte().Draw(t, "network")),
			Class: capabilities.Class(rapid.Byte().Draw(t, "class")), Privacy: capabilities.Privacy(rapid.Byte().Draw(t, "privacy")),
			Bounds: capabilities.Bounds{PerTurn: rapid.IntRange(0, 9).Draw(t, "per turn")},
		}
		f := policy.Facts{
			Live: rapid.Bool().Draw(t, "live"), Role: policy.Role(rapid.IntRange(0, 4).Draw(t, "role")),
			Proposals: rapid.IntRange(0, 9).Draw(t, "n"), MaxProposals: rapid.IntRange(0, 9).Draw(t, "max"), Calls: rapid.IntRange(0, 9).Draw(t, "calls"),
			Frozen: rapid.Bool().Draw(t, "frozen"), DeniedInTurn: rapid.Bool().Draw(t, "denied"),
			CoolDown: time.Duration(rapid.Int64Range(0, 5).Draw(t, "cool")), TLS: rapid.Bool().Draw(t, "tls"), ClockUnset: rapid.Bool().Draw(t, "unset"),
		}
		v := policy.Decide(s, f)
		if v.Allow && v.NeedsPress != policy.NeedsPress(s) {
			t.Fatalf("allowed %+v without its press", s)
		}
		if v.Allow && (!f.Live || f.Proposals > f.MaxProposals || f.Calls > s.Bounds.PerTurn || (v.NeedsPress && (f.Frozen || f.DeniedInTurn || f.CoolDown > 0))) {
			t.Fatalf("allowed %+v under %+v", s, f)
		}
		if !v.Allow && v.Code == "" || v.Rule == "" {
			t.Fatalf("no reason: %+v", v)
		}
	})
}

func TestCoolDownGrowsAndAnApprovalResetsIt(t *testing.T) {
	var p policy.Patience
	now := time.Hour
	for _, want := range []time.Duration{30 * time.Second, 2 * time.Minute, 10 * time.Minute, 10 * time.Minute} {
		p = p.Refused(now)
		if got := p.Left(now); got != want {
			t.Fatalf("wait of %v, want %v", got, want)
		}
		if p.Left(now+want-1) != 1 || p.Left(now+want) != 0 {
			t.Fatal("the wait does not end when it should")
		}
		now += want
	}
	p = p.Approved()
	if p.Left(now) != 0 || p.Refused(now).Left(now) != 30*time.Second {
		t.Fatal("an approval did not reset the wait")
	}
}

func TestWhatComesToNothingIsFreeThreeTimes(t *testing.T) {
	var p policy.Patience
	now := time.Hour
	waste := func(want time.Duration) {
		t.Helper()
		if p = p.Wasted(now); p.Left(now) != want {
			t.Fatalf("wait of %v, want %v", p.Left(now), want)
		}
		now += p.Left(now)
	}
	for range 3 {
		waste(0)
		now += 9 * time.Minute
	}
	for _, want := range []time.Duration{30 * time.Second, 2 * time.Minute, 10 * time.Minute, 10 * time.Minute} {
		waste(want)
		now += 10*time.Minute - 1 // the end of a wait is not yet quiet
	}
	now++
	for range 3 {
		waste(0)
	}
	waste(10 * time.Minute) // refusals are forgotten by an approval alone
	p = p.Approved()
	waste(0)
	if p = p.Refused(now); p.Left(now) != 30*time.Second {
		t.Fatalf("a denial after one that was free waits %v", p.Left(now))
	}
}

// TestRebootBeginsTheWaitAnew: the times of another boot say nothing, least of all that a wait is over.
func TestRebootBeginsTheWaitAnew(t *testing.T) {
	now := time.Hour
	refused := policy.Patience{}.Refused(now).Refused(now)
	if got := refused.Rebooted(time.Second).Left(time.Second); got != 2*time.Minute {
		t.Errorf("after a denial and a boot: %v", got)
	}
	var wasted policy.Patience
	for range 3 {
		wasted = wasted.Wasted(now)
	}
	if wasted = wasted.Rebooted(time.Second); wasted.Left(time.Second) != 0 {
		t.Error("a boot made somebody wait who did not have to")
	}
	if got := wasted.Wasted(10 * time.Minute).Left(10 * time.Minute); got != 30*time.Second {
		t.Errorf("the fourth, of which three were before the boot: %v", got)
	}
	if got := wasted.Wasted(11 * time.Minute).Left(11 * time.Minute); got != 0 {
		t.Errorf("ten quiet minutes after the boot forgive nothing: %v", got)
	}
	if (policy.Patience{}).Rebooted(now) != (policy.Patience{}) {
		t.Error("a boot stained a clean slate")
	}
}

func TestDigestIsStable(t *testing.T) {
	first := policy.Digest()
	if again := policy.Digest(); again != first || first == [32]byte{} {
		t.Fatal("the policy has no stable digest")
	}
}
