package story

import (
	"fmt"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/capabilities"
)

// tellExecution writes the steps from the promise to the last look.
func (c *call) tellExecution() {
	if c.intent != nil {
		c.tellPromise(c.intent)
	}
	if e := c.revoked; e != nil {
		s := c.step(StepWithdrawn, "The button stayed down after the press, which takes the permission back if it was not used yet.", e.seq)
		s.When = e.when
	}
	if e := c.effect; e != nil {
		if c.intent == nil || c.intent.p.RequestDigest != (audit.Digest{}) {
			c.tellSent(e)
		}
		c.tellAnswer(e)
	}
	for _, e := range c.observed {
		c.tellObserved(e)
	}
}

func (c *call) tellPromise(e *entry[*audit.IntentRecord]) {
	p := e.p
	s := c.step(StepPromised, "Before it began, the box wrote down that it would do exactly this, and sealed that.", e.seq)
	s.When = e.when
	for _, ref := range []audit.Seq{p.Proposal, p.Decision, p.Approval} {
		if ref != 0 {
			s.Records = append(s.Records, ref)
		}
	}
	s.digest("arguments digest", p.ArgsDigest)
	s.digest("digest of destination and request", p.RequestDigest)
	s.digest("receipt digest", p.ReceiptDigest)
	if p.EffectID != (audit.ID{}) {
		s.fact("idempotency key", p.EffectID.String())
	}
	if p.Class != 0 {
		s.fact("sandbox", p.Class.String())
	}
	s.fact("credential", escape(p.Credential))
	if p.Deadline > 0 {
		s.fact("deadline", "start+"+p.Deadline.Round(time.Millisecond).String())
	}
	if p.Destination != (audit.Digest{}) {
		s.Literals = append(s.Literals, c.literal("destination", p.Destination, c.log()))
	}
	if p.Expects != (audit.Digest{}) {
		s.Literals = append(s.Literals, c.literal("what should be found afterwards", p.Expects, c.log()))
	}
}

func (c *call) tellSent(e *entry[*audit.EffectRecord]) {
	p := e.p
	where := ""
	if c.Destination != "" {
		where = " to " + c.Destination
	}
	text := "Nothing was sent."
	switch {
	case p.Sent:
		text = "The request was sent" + where + "."
	case p.Status == capabilities.Unknown:
		text = "The request may have been sent" + where + "."
	}
	s := c.step(StepSent, text, e.seq)
	s.digest("grant digest", p.GrantDigest)
	s.digest("digest of what was sent, as the worker says", p.RequestDigest)
	if p.Attempts > 0 {
		s.fact("connections", fmt.Sprint(p.Attempts))
	}
	s.digest("server's certificate", p.Peer)
	if c.intent != nil {
		c.tellRequest(s, c.intent.p.RequestDigest)
	}
	if p.Address != (audit.Digest{}) {
		s.Literals = append(s.Literals, c.literal("address that was connected to", p.Address, c.log()))
	}
}

// tellRequest adds the exact request. The log keeps it with where it goes, in one literal, which the digest covers.
func (c *call) tellRequest(s *Step, digest audit.Digest) {
	l := c.literal("the exact request", digest, c.log())
	if r, ok := capabilities.ParseRequest(l.Bytes); ok {
		s.fact("goes to", escape(fmt.Sprintf("%s://%s:%d", r.Scheme, r.Host, r.Port)))
		l.say(r.Bytes)
	}
	s.Literals = append(s.Literals, l)
}

func (c *call) tellAnswer(e *entry[*audit.EffectRecord]) {
	p := e.p
	s := c.step(StepAnswered, answered(p), e.seq)
	s.When = e.when
	s.fact("code", escape(string(p.Code)))
	if p.Duration > 0 {
		s.fact("took", p.Duration.Round(time.Millisecond).String())
	}
	if p.HTTPStatus > 0 {
		s.fact("http status", fmt.Sprint(p.HTTPStatus))
	}
	s.digest("answer digest", p.AnswerDigest)
	if p.AnswerBytes > 0 {
		s.fact("answer bytes", fmt.Sprint(p.AnswerBytes))
	}
	s.digest("result digest", p.ResultDigest)
	if p.ResultBytes > 0 {
		s.fact("result bytes", fmt.Sprint(p.ResultBytes))
	}
	if p.Items > 0 {
		s.fact("records in the result", fmt.Sprint(p.Items))
	}
	if p.Accepted != audit.NotKnown {
		s.fact("the other side took the call", p.Accepted.String())
	}
	if p.Retrieved > 0 {
		s.fact("retrieved", instant(p.Retrieved))
	}
}

func (c *call) tellObserved(e entry[*audit.Observe]) {
	p := e.p
	s := c.step(StepObserved, observed(p), e.seq)
	s.When = e.when
	s.fact("looked with", escape(p.Source))
	s.fact("code", escape(string(p.Code)))
	if p.Lookup != (audit.ID{}) {
		s.fact("look-up", p.Lookup.String())
	}
	if p.View != (audit.Digest{}) {
		s.Literals = append(s.Literals, c.literal("what was found", p.View, c.log()))
	}
}
