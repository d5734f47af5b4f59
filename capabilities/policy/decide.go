package policy

import (
	"crypto/sha256"
	"fmt"
	"time"

	"assent.home.arpa/capabilities"
)

// Rule names what decided. The names are in the audit and are never reused for something else.
type Rule string

// The rules, in the order in which they are applied.
const (
	RuleLiveAsk      Rule = "live-ask"       // a person's signed question is open
	RuleTurnCap      Rule = "turn-cap"       // proposals in one turn, over all capabilities
	RuleRole         Rule = "role"           // what this role may propose
	RuleCallCap      Rule = "capability-cap" // calls of one capability in one turn
	RuleFrozen       Rule = "frozen"         // panic: nothing that needs a press
	RuleDeniedInTurn Rule = "denied-in-turn" // no was the answer
	RuleCoolDown     Rule = "cool-down"      // the person must wait
	RuleClock        Rule = "clock"          // TLS cannot check a certificate without the date
	RulePress        Rule = "press"          // allowed, with a press
	RuleAutomatic    Rule = "automatic"      // allowed
)

// Facts is all that a decision depends on besides the spec. The zero value allows nothing.
type Facts struct {
	Live         bool // the ask is open now
	Role         Role
	Proposals    int // in this turn, this one included
	MaxProposals int
	Calls        int // of this capability in this turn, this one included
	Frozen       bool
	DeniedInTurn bool // this capability, in this turn
	CoolDown     time.Duration
	TLS          bool // the request needs a valid date
	ClockUnset   bool
}

// Verdict is a decision. The zero value refuses.
type Verdict struct {
	Allow      bool
	NeedsPress bool
	Rule       Rule
	Code       capabilities.Code // why not
	RetryIn    time.Duration     // for RuleCoolDown
}

type rule struct {
	name    Rule
	code    capabilities.Code
	refuses func(capabilities.Spec, Facts) bool
}

// rules lists what can refuse a call, in order.
func rules() []rule {
	type spec = capabilities.Spec
	return []rule{
		{RuleLiveAsk, capabilities.CodeNoAsk, func(_ spec, f Facts) bool { return !f.Live }},
		{RuleTurnCap, capabilities.CodeBudget, func(_ spec, f Facts) bool { return f.Proposals > f.MaxProposals }},
		{RuleRole, capabilities.CodeNotAllowed, func(s spec, f Facts) bool { return !May(f.Role, s) }},
		{RuleCallCap, capabilities.CodeBudget, func(s spec, f Facts) bool { return f.Calls > s.Bounds.PerTurn }},
		{RuleFrozen, capabilities.CodeFrozen, func(s spec, f Facts) bool { return f.Frozen && NeedsPress(s) }},
		{RuleDeniedInTurn, capabilities.CodeDeniedInTurn, func(s spec, f Facts) bool { return f.DeniedInTurn && NeedsPress(s) }},
		{RuleCoolDown, capabilities.CodeCoolDown, func(s spec, f Facts) bool { return f.CoolDown > 0 && NeedsPress(s) }},
		{RuleClock, capabilities.CodeClockUnset, func(_ spec, f Facts) bool { return f.TLS && f.ClockUnset }},
	}
}

// Admit applies the rules that need no capability: whether anybody asked, and how often already.
func Admit(f Facts) Verdict {
	for _, r := range rules() {
		if (r.name == RuleLiveAsk || r.name == RuleTurnCap) && r.refuses(capabilities.Spec{}, f) {
			return Verdict{Rule: r.name, Code: r.code}
		}
	}
	return Verdict{Allow: true}
}

// Decide applies all rules to one call.
func Decide(s capabilities.Spec, f Facts) Verdict {
	for _, r := range rules() {
		if !r.refuses(s, f) {
			continue
		}
		v := Verdict{Rule: r.name, Code: r.code}
		if r.name == RuleCoolDown {
			v.RetryIn = f.CoolDown
		}
		return v
	}
	if NeedsPress(s) {
		return Verdict{Allow: true, NeedsPress: true, Rule: RulePress}
	}
	return Verdict{Allow: true, Rule: RuleAutomatic}
}

// Digest names the policy: the rules in their order, the whole table of what needs a press and what each role may do, and
// the cool-downs.
func Digest() [32]byte {
	h := sha256.New()
	fmt.Fprintln(h, "assent/policy/v1")
	for _, r := range rules() {
		fmt.Fprintln(h, r.name, r.code)
	}
	for effect := range capabilities.Write + 1 {
		for network := range capabilities.NetworkInternet + 1 {
			for class := range capabilities.ClassNet + 1 {
				for privacy := range capabilities.PrivacyHousehold + 1 {
					s := capabilities.Spec{Effect: effect, Network: network, Class: class, Privacy: privacy}
					fmt.Fprintln(h, effect, network, uint8(class), privacy, NeedsPress(s), May(Guest, s), May(Adult, s), May(Owner, s))
				}
			}
		}
	}
	for n := range 4 {
		fmt.Fprintln(h, coolDown(n))
	}
	fmt.Fprintln(h, freeWastes, calm)
	return [32]byte(h.Sum(nil))
}
