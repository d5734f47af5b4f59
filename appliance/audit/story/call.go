package story

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/capabilities"
)

// entry is one record of a call.
type entry[P any] struct {
	seq  audit.Seq
	when *When
	p    P
}

// call collects the records of one invocation. Each part is nil where there is no such record.
type call struct {
	sketch
	inv       audit.ID
	proposal  *entry[*audit.Proposal]
	policy    *entry[*audit.Decision] // policy's verdict that it may go on
	approval  *entry[*audit.Approval]
	withdraw  *entry[*audit.Withdraw]
	refusal   *entry[*audit.Decision]
	intent    *entry[*audit.IntentRecord]
	revoked   *entry[*audit.Admin]
	effect    *entry[*audit.EffectRecord]
	observed  []entry[*audit.Observe]
	abandoned bool // the box stopped before it was decided
}

// maxObserved bounds how many later looks one story lists.
const maxObserved = 64

// add takes a record of the call. It reports whether the record is one that a call has.
func (c *call) add(r audit.Record, when *When) bool {
	switch p := r.Payload.(type) {
	case *audit.Blob:
		c.keep(blobOf(r, p))
	case *audit.Proposal:
		c.proposal = &entry[*audit.Proposal]{r.Seq, when, p}
	case *audit.Decision:
		if p.Verdict == audit.Refuse {
			c.refusal = &entry[*audit.Decision]{r.Seq, when, p}
		} else if p.Stage == capabilities.StagePolicy {
			c.policy = &entry[*audit.Decision]{r.Seq, when, p}
		}
	case *audit.Approval:
		c.approval = &entry[*audit.Approval]{r.Seq, when, p}
	case *audit.Withdraw:
		c.withdraw = &entry[*audit.Withdraw]{r.Seq, when, p}
	case *audit.IntentRecord:
		c.intent = &entry[*audit.IntentRecord]{r.Seq, when, p}
	case *audit.Admin:
		c.revoked = &entry[*audit.Admin]{r.Seq, when, p}
	case *audit.EffectRecord:
		c.effect = &entry[*audit.EffectRecord]{r.Seq, when, p}
	case *audit.Observe:
		if len(c.observed) < maxObserved {
			c.observed = append(c.observed, entry[*audit.Observe]{r.Seq, when, p})
		}
	default:
		return false
	}
	c.touch(r.Seq)
	return true
}

// ended reports whether nothing more is to come. An outcome that is unknown waits for somebody to look.
func (c *call) ended() bool {
	switch {
	case c.refusal != nil || c.abandoned:
		return true
	case c.effect == nil:
		// Of a call that was told before as unknown, all that comes is what was observed.
		return c.Partial && c.intent == nil && c.final()
	case c.effect.p.Status != capabilities.Unknown:
		return true
	}
	return c.final()
}

func (c *call) final() bool {
	n := len(c.observed)
	return n > 0 && c.observed[n-1].p.Final
}

// log is the policy by which literal texts of the call are kept. What no capability was found for has none.
func (c *call) log() capabilities.LogPolicy {
	if c.proposal == nil || c.proposal.p.Capability == "" {
		return capabilities.LogView
	}
	return c.proposal.p.Log
}

// finish writes the story from what was collected.
func (c *call) finish() *Story {
	c.Kind = KindCall
	if p := c.proposal; p != nil {
		c.Capability, c.Phone = string(p.p.Capability), p.p.Slot
		if p.p.Ask != (audit.ID{}) {
			c.Ask = p.p.Ask.String()
		}
	} else {
		c.Partial = true
	}
	c.Destination = c.destination()
	c.Headline = c.headline()
	c.judge()
	c.tellQuestion()
	c.tellPanel()
	c.tellExecution()
	c.blobs = nil
	return &c.Story
}

// destination is where the request went, from the readable view where the execution was never promised.
func (c *call) destination() string {
	if c.intent != nil {
		if b := c.blob(c.intent.p.Destination); b != nil {
			return Printable(b.bytes)
		}
	}
	_, _, where := c.view()
	return Printable([]byte(where))
}

// view takes the readable rendering apart: the consequence in our words, the literal text, the destination.
func (c *call) view() (title, text, destination string) {
	if c.proposal == nil || c.proposal.p.ArgsView == (audit.Digest{}) {
		return "", "", ""
	}
	b := c.blob(c.proposal.p.ArgsView)
	if b == nil {
		return "", "", ""
	}
	title, rest, _ := strings.Cut(string(b.bytes), "\n")
	if i := strings.LastIndexByte(rest, '\n'); i >= 0 {
		return title, rest[:i], rest[i+1:]
	}
	return title, rest, ""
}

func (c *call) headline() string {
	if title, text, _ := c.view(); title != "" {
		h := Printable([]byte(title))
		if text != "" {
			h += " " + quoted([]byte(text))
		}
		return h
	}
	if c.proposal == nil {
		return "A call whose beginning is not in this part of the log"
	}
	p := c.proposal.p
	if p.Capability == "" {
		if len(p.Name) == 0 {
			return "The model asked for something that does not exist"
		}
		return "The model asked for " + quoted(p.Name) + ", which does not exist"
	}
	h := string(p.Capability)
	if b := c.blob(audit.Digest(p.ArgsDigest)); b != nil && !bytes.Equal(b.bytes, []byte("{}")) {
		h += " " + quoted(argument(b.bytes))
	}
	if c.Destination != "" {
		h += " → " + c.Destination
	}
	return h
}

// argument is the text of the one argument where there is one text, and all arguments as they are otherwise.
func argument(normal []byte) []byte {
	var one map[string]string
	if err := json.Unmarshal(normal, &one); err != nil || len(one) != 1 {
		return normal
	}
	for _, v := range one {
		return []byte(v)
	}
	return normal
}

// tellQuestion writes the steps from the question to what policy said.
func (c *call) tellQuestion() {
	e := c.proposal
	if e == nil {
		return
	}
	p, policy := e.p, c.log()
	if p.Ask != (audit.ID{}) {
		s := c.step(StepAsked, fmt.Sprintf("Phone %d asked a question. The log holds the digest of its words, not the words.", p.Slot), e.seq)
		s.digest("question digest", p.AskDigest)
		s.fact("question", p.Ask.String())
		s.fact("question number of this phone", fmt.Sprint(p.AskCounter))
		s.fact("conversation", p.Conversation.String())
		if p.SignedAsk != (audit.Digest{}) {
			s.Literals = append(s.Literals, c.literal("the question's signature by the phone", p.SignedAsk, policy))
		}
	}
	wrote := "The model wrote a call."
	if len(p.Name) > 0 {
		wrote = "The model asked for " + quoted(p.Name) + "."
	}
	if len(p.Taint) > 0 {
		var read []string
		for _, t := range p.Taint {
			read = append(read, quoted(t))
		}
		wrote += " This conversation had read before: " + strings.Join(read, ", ") + "."
	}
	s := c.step(StepProposed, wrote, e.seq)
	s.When = e.when
	same := audit.Digest(p.ArgsDigest) == p.RawDigest
	s.fact("model step", fmt.Sprint(p.Step))
	s.fact("proposal of this turn", fmt.Sprint(p.Index))
	s.digest("run digest", p.RunDigest)
	s.Literals = append(s.Literals, c.literal("what the model wrote", p.RawDigest, policy))
	if p.Capability != "" {
		text := fmt.Sprintf("The box knows this as %s, version %d.", p.Capability, p.Version)
		if p.ArgsDigest != (capabilities.ArgsDigest{}) && same {
			text += " What the model wrote was in its normal form already."
		}
		s = c.step(StepUnderstood, text, e.seq)
		s.fact("adapter revision", escape(p.Revision))
		s.digest("argument schema digest", p.SchemaDigest)
		s.digest("registry digest", p.Registry)
		s.digest("foreign tool", p.Tool)
		s.digest("arguments digest", p.ArgsDigest)
		if p.ArgsDigest != (capabilities.ArgsDigest{}) && !same {
			s.Literals = append(s.Literals, c.literal("the arguments in their normal form", audit.Digest(p.ArgsDigest), policy))
		}
		if p.ArgsView != (audit.Digest{}) {
			s.Literals = append(s.Literals, c.literal("the call in words", p.ArgsView, policy))
		}
	}
	if d := c.policy; d != nil {
		s = c.step(StepJudged, why(d.p), d.seq)
		s.When = d.when
		c.judged(s, d.p)
	}
}

func (c *call) judged(s *Step, d *audit.Decision) {
	s.fact("rule", escape(d.Rule))
	s.digest("policy digest", d.PolicyDigest)
	s.fact("effect", effectWord(d.Effect))
	s.fact("reaches", networkWord(d.Network))
	s.fact("reads data of", privacyWord(d.Privacy))
	s.fact("role of the person", roleWord(d.Role))
}
