package story

import (
	"fmt"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/policy"
)

// judge says how a call ended.
func (c *call) judge() {
	switch {
	case c.refusal != nil:
		d := c.refusal.p
		c.Outcome, c.Code = Outcome(d.Status.String()), escape(string(d.Code))
		c.Said = c.ending(d)
	case c.effect != nil:
		e := c.effect.p
		c.Outcome, c.Code = Outcome(e.Status.String()), escape(string(e.Code))
		c.Said = c.became(e)
	case c.abandoned:
		c.Outcome, c.Said = Open, "The box stopped before this was decided, so nothing was done."
	case c.intent != nil:
		c.Outcome, c.Said = Open, "It had begun when this log ends. Nobody can say yet what became of it."
	case c.Partial:
		c.Outcome, c.Said = Noted, "What is here goes on from an earlier part of the log."
	default:
		c.Outcome, c.Said = Open, "It was not decided when this log ends."
	}
	for _, o := range c.observed {
		if o.p.Status == capabilities.Unknown || o.p.Status == 0 || Outcome(o.p.Status.String()) == c.Outcome {
			continue
		}
		c.Outcome = Outcome(o.p.Status.String())
		c.Said += " A later look found that it is " + o.p.Status.String() + "."
	}
	if c.Outcome == Unknown && c.final() {
		c.Said += " Somebody has seen this since."
	}
}

// ending says in a sentence how a refusal ended the call.
func (c *call) ending(d *audit.Decision) string {
	because := ""
	if d.Reason != "" {
		because = ": " + escape(d.Reason)
	}
	switch d.Status {
	case capabilities.Denied:
		switch {
		case c.approval != nil && c.approval.p.Outcome == audit.Panicked:
			return "Somebody at the box pressed panic, so nothing was done."
		case d.By == audit.ByPhone:
			return "The phone that asked said no, so nothing was done."
		}
		return "Somebody at the box said no, so nothing was done."
	case capabilities.Expired:
		return "Nobody decided in time, so nothing was done."
	case capabilities.ExpiredUnseen:
		return "Nobody came to the box to read it, so nothing was done."
	case capabilities.Withdrawn:
		return "It was taken back before it was decided, so nothing was done."
	case capabilities.Failed:
		return "It could not be done" + because + ". Nothing was sent."
	}
	return "The box refused it" + because + "."
}

// became says in a sentence what became of an execution.
func (c *call) became(e *audit.EffectRecord) string {
	switch e.Status {
	case capabilities.Done:
		if c.approval != nil {
			return "Somebody at the box agreed, and it was done."
		}
		return "It was done. It needed no press."
	case capabilities.Failed:
		s := "It was tried and did not work"
		if !e.Sent && c.intent != nil && c.intent.p.RequestDigest != (audit.Digest{}) {
			s = "Nothing was sent"
		}
		return s + becauseOf(e.Code) + "."
	}
	return "Nobody can say whether this took effect: " + uncertain(e) + ". It may or may not have happened. The box did not repeat it."
}

// uncertain says why an outcome is unknown.
func uncertain(e *audit.EffectRecord) string {
	switch e.Cause {
	case audit.CauseRecovery:
		return "the box stopped (the power went, or it was restarted) before the outcome was recorded"
	case audit.CausePanic:
		return "somebody at the box pressed panic while it was under way"
	}
	switch e.Code {
	case capabilities.CodeTimeout:
		return "no answer came in time"
	case capabilities.CodeInterrupted:
		return "the part of the box that did it died in the middle"
	case capabilities.CodeBadResponse:
		return "the answer broke its rules and was dropped"
	}
	return "the connection ended before the outcome was known"
}

// becauseOf is a code in words, to follow what did not work; empty for none.
func becauseOf(code capabilities.Code) string {
	switch code {
	case "":
		return ""
	case capabilities.CodeUnreachable:
		return ": the destination did not answer"
	case capabilities.CodeRemoteError:
		return ": the destination answered that it failed"
	case capabilities.CodeRedirect:
		return ": the destination pointed elsewhere, and the box follows nothing by itself"
	case capabilities.CodeBadResponse:
		return ": the answer broke its rules and was dropped"
	case capabilities.CodeTimeout:
		return ": no answer came in time"
	case capabilities.CodeInterrupted:
		return ": it was interrupted"
	case capabilities.CodeCourierUnavailable:
		return ": the part of the box that makes connections was not running"
	case capabilities.CodeGrantRefused:
		return ": the permission was refused by the part of the box that makes connections"
	case capabilities.CodeFrozen:
		return ": the box was frozen"
	case capabilities.CodeNoAsk:
		return ": the question was over by then"
	case capabilities.CodeNotConfigured:
		return ": this is not set up on the box"
	}
	return " (" + escape(string(code)) + ")"
}

// why says which rule of policy decided and for what reason, where it let the call go on.
func why(d *audit.Decision) string {
	switch {
	case d.Verdict == audit.Allow && d.Rule == string(policy.RuleAutomatic):
		return "It only reads, and nothing leaves the box, so the box's rules let it run by itself."
	case d.Verdict == audit.Allow:
		return "The rule " + quoted([]byte(d.Rule)) + " let it run without a press."
	}
	reason := "since not everything about it is known to be harmless"
	switch {
	case d.Network == capabilities.NetworkInternet:
		reason = "since it goes out to the internet"
	case d.Network == capabilities.NetworkLAN:
		reason = "since it reaches another machine in the house"
	case d.Effect != capabilities.Read:
		reason = "since it changes something"
	}
	return "The box's rules ask for a press by somebody at the box, " + reason + " (rule " + quoted([]byte(d.Rule)) + ")."
}

func decided(a *audit.Approval) string {
	switch a.Outcome {
	case audit.Approved:
		how := "pressed the approve button"
		switch a.Mode {
		case audit.ModeHold:
			how = "held the approve button"
		case audit.ModeDwell:
			how = "tapped the approve button, waited, and tapped it again"
		case audit.ModeChallenge:
			how = "tapped the button as often as the panel asked, then held it"
		}
		return fmt.Sprintf("Somebody at the box %s, %.1f s after the last page was drawn, and completed it %.1f s later.",
			how, (a.Pressed - a.Shown).Seconds(), (a.Completed - a.Pressed).Seconds())
	case audit.Denied:
		return "Somebody at the box pressed deny."
	case audit.Expired:
		return "Somebody began to read it at the box, and time ran out."
	case audit.ExpiredUnseen:
		return "Nobody came to the box to read it before time ran out."
	case audit.Withdrawn:
		return "It was taken back by " + actor(a.By, a.Slot) + " before it was decided."
	case audit.Panicked:
		return "Somebody at the box pressed panic."
	case audit.DisplayLost:
		return "The panel stopped answering, so nobody could have read it."
	}
	return "The box could not show it, since it was busy."
}

func refused(d *audit.Decision) string {
	s := fmt.Sprintf("It ended at the stage %s", d.Stage)
	if d.Reason != "" {
		s += ": " + escape(d.Reason)
	}
	return s + "."
}

func answered(e *audit.EffectRecord) string {
	switch e.Status {
	case capabilities.Done:
		s := fmt.Sprintf("It worked. The result has %d bytes.", e.ResultBytes)
		if e.ResultBytes == 0 {
			s = "It worked."
		}
		if e.Truncated {
			s += " It was cut to its bound."
		}
		return s
	case capabilities.Failed:
		return "It did not work" + becauseOf(e.Code) + "."
	}
	return "What became of it is unknown: " + uncertain(e) + "."
}

func observed(o *audit.Observe) string {
	who := actor(o.By, o.Slot)
	var s string
	switch {
	case o.By == audit.ByPhone || o.By == audit.ByBox:
		s = "It was seen by " + who + "."
	case o.Lookup == (audit.ID{}) && o.Matches == audit.Yes:
		s = "The box compared what was sent and what came back with what was promised, and they match."
	case o.Matches == audit.Yes:
		s = "A later look by " + who + " found it as it should be."
	case o.Matches == audit.No:
		s = "A later look by " + who + " found it not as it should be."
	default:
		s = "There was nothing by which " + who + " could check it."
	}
	if o.Final && o.Status == capabilities.Unknown {
		s += " With that it is off the list of open questions."
	}
	return s
}

func actor(a audit.Actor, slot uint32) string {
	switch a {
	case audit.ByBox:
		return "somebody at the box"
	case audit.ByPhone:
		if slot > 0 {
			return fmt.Sprintf("phone %d", slot)
		}
		return "a phone"
	case audit.ByTimer:
		return "a timer"
	case audit.ByConsole:
		return "somebody with a shell on the box"
	case 0:
		return "nobody in particular"
	}
	return "the " + a.String()
}

func effectWord(e capabilities.Effect) string {
	switch e {
	case capabilities.Read:
		return "reads"
	case capabilities.WriteReversible:
		return "changes something that can be undone"
	case capabilities.Write:
		return "changes something"
	}
	return ""
}

func networkWord(n capabilities.Network) string {
	switch n {
	case capabilities.NetworkNone:
		return "nothing outside the box"
	case capabilities.NetworkFeed:
		return "the last snapshot of a feed"
	case capabilities.NetworkLAN:
		return "the home network"
	case capabilities.NetworkInternet:
		return "the internet"
	}
	return ""
}

func privacyWord(p capabilities.Privacy) string {
	switch p {
	case capabilities.PrivacyBox:
		return "the box"
	case capabilities.PrivacyPersonal:
		return "one person"
	case capabilities.PrivacyHousehold:
		return "the household"
	}
	return ""
}

func roleWord(r uint8) string {
	switch policy.Role(r) {
	case policy.Guest:
		return "guest"
	case policy.Adult:
		return "adult"
	case policy.Owner:
		return "owner"
	}
	return ""
}
