package story

import (
	"fmt"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/capabilities"
)

// event is what happened at once: one record, or a few that are always together.
type event struct {
	sketch
	first   audit.Record
	redacts []audit.Seq // further texts that were removed, told together
}

// maxRedacts bounds how many removed texts one story tells of.
const maxRedacts = 256

// tellable reports whether a record that belongs to no call is one that people are told of. The others keep the log.
func tellable(p audit.Payload) bool {
	switch p.(type) {
	case *audit.Genesis, *audit.Boot, *audit.ClockStep, *audit.Prune, *audit.Export, *audit.Admin, *audit.Fault, *audit.Suppressed,
		*audit.Redact, *audit.Claim, *audit.Freeze, *audit.Feed, *audit.Tool:
		return true
	}
	return false
}

func newEvent(r audit.Record, when *When) *event {
	e := &event{first: r}
	e.ID, e.First, e.when = number(r.Seq), r.Seq, when
	e.touch(r.Seq)
	return e
}

// takes adds a record to the event if it goes with it.
func (e *event) takes(r audit.Record) bool {
	with, ok := e.first.Payload.(*audit.Redact)
	if !ok {
		return false
	}
	p, ok := r.Payload.(*audit.Redact)
	if !ok || with.By != p.By || with.Reason != p.Reason || with.Admin != p.Admin || len(e.redacts) >= maxRedacts {
		return false
	}
	e.redacts = append(e.redacts, p.Seq)
	e.touch(r.Seq)
	return true
}

func (e *event) close(b *batch) {
	e.keep(b.loose...)
	e.sketch.close(b)
}

// finish implements draft.
func (e *event) finish() *Story {
	e.Outcome = Noted
	e.Steps = []Step{{Name: StepNoted, When: e.when, Records: []audit.Seq{e.First}}}
	if e.Last != e.First {
		e.Steps[0].Records = append(e.Steps[0].Records, e.Last)
	}
	s := &e.Steps[0]
	switch p := e.first.Payload.(type) {
	case *audit.Genesis:
		e.Kind, e.Headline = KindStart, "The box's record was begun"
		s.Text = "The box's record was begun, under a root key that was made for it."
		s.fact("root key", p.Root.String())
	case *audit.Boot:
		e.Kind, e.Headline = KindStart, "The box started"
		s.Text = "The box started."
		e.started(s, p)
	case *audit.Admin:
		e.administered(s, p)
	case *audit.Prune:
		e.Kind, e.Headline = KindAdmin, "The oldest part of the log was removed"
		s.Text = fmt.Sprintf("Records %s to %s were removed from the box by %s, to make room.", number(p.First), number(p.Last), actor(p.By, 0))
		e.Outcome = Done
		s.digest("last link", p.LastLink)
		e.refer(s, p.Export, p.Admin)
	case *audit.Export:
		e.exported(s, p)
	case *audit.Redact:
		n := len(e.redacts) + 1
		e.Kind, e.Outcome = KindAdmin, Done
		e.Headline = fmt.Sprintf("%s removed from the log", texts(n))
		s.Text = fmt.Sprintf("%s removed by %s. What refers to them stays, and so do their digests.", texts(n), actor(p.By, 0))
		s.fact("reason", escape(p.Reason))
		s.fact("text of record", number(p.Seq))
		for _, seq := range e.redacts {
			s.fact("text of record", number(seq))
		}
		e.refer(s, p.Admin)
	case *audit.ClockStep:
		e.Kind, e.Headline = KindClock, "The clock was set to "+instant(p.To)
		s.Text = fmt.Sprintf("The clock was set from %s to %s.", instant(p.From), instant(p.To))
		s.fact("state before", p.FromState.String())
		s.fact("state after", p.ToState.String())
		s.fact("source", escape(p.Source))
	case *audit.Fault:
		e.faulted(s, p)
	case *audit.Suppressed:
		e.Kind, e.Headline = KindSuppressed, fmt.Sprintf("%d records were too many to keep", p.Count)
		s.Text = fmt.Sprintf("%d records of kind %s came faster than the log takes them, and were counted instead.", p.Count, p.Of)
		e.Phone = p.Slot
		if p.From != 0 {
			s.fact("from", actor(p.From, p.Slot))
		}
	case *audit.Claim:
		e.claimed(s, p)
	case *audit.Freeze:
		e.froze(s, p)
	case *audit.Feed:
		e.Kind, e.Outcome, e.Code = KindFeed, Outcome(p.Status.String()), escape(string(p.Code))
		e.Headline = "Feed " + quoted([]byte(p.ID))
		s.Text = "The box fetched the feed " + quoted([]byte(p.ID)) + ", as the owner set it up: " + p.Status.String() + becauseOf(p.Code) + "."
		s.digest("snapshot digest", p.Digest)
		s.digest("digest of destination and request", p.RequestDigest)
		s.digest("grant digest", p.GrantDigest)
		e.refer(s, p.Admin)
	case *audit.Tool:
		e.tool(s, p)
	}
	if e.Said == "" {
		e.Said = s.Text
	}
	e.blobs = nil
	return &e.Story
}

// refer adds the records that something was done on the word of.
func (e *event) refer(s *Step, seqs ...audit.Seq) {
	for _, seq := range seqs {
		if seq != 0 {
			s.Records = append(s.Records, seq)
		}
	}
}

func texts(n int) string {
	if n == 1 {
		return "One literal text was"
	}
	return fmt.Sprintf("%d literal texts were", n)
}

func (e *event) started(s *Step, p *audit.Boot) {
	if p.Program == audit.ProgramSimulator {
		e.Headline += " (simulator)"
		s.Text += " It was the simulator on a PC, not a box."
	}
	if p.Reset != "" {
		s.Text += " Why it started: " + quoted([]byte(p.Reset)) + "."
	}
	if p.TailBytes > 0 {
		s.Text += fmt.Sprintf(" The power had gone while the log was written: %d bytes that nobody relied on yet were set aside.", p.TailBytes)
		s.digest("digest of what was set aside", p.TailDigest)
	}
	if n := len(p.Unresolved); n > 0 {
		s.Text += fmt.Sprintf(" Calls that had been cut off, so that nobody can say what became of them: %d. None was repeated.", n)
		for _, inv := range p.Unresolved {
			s.fact("cut off", inv.String())
		}
	}
	s.fact("build", escape(p.Build))
	s.fact("panel", escape(p.Panel))
	s.digest("program digest", p.Binary)
	s.digest("image digest", p.Image)
	s.digest("configuration digest", p.Config)
	s.digest("policy digest", p.Policy)
	s.digest("registry digest", p.Registry)
	s.digest("engine digest", p.Engine)
	for _, m := range p.Models {
		s.digest("model digest", m)
	}
}

func (e *event) exported(s *Step, p *audit.Export) {
	e.Kind, e.Outcome, e.Code = KindAdmin, Done, escape(p.Code)
	e.Headline = "The log was copied"
	s.Text = fmt.Sprintf("A copy of the log up to record %s was handed over", number(p.Last))
	if p.Redacted {
		s.Text += ", without its literal texts"
	}
	s.Text += "."
	if p.Cable {
		e.Headline = "The log was offered over the USB cable"
		s.Text = fmt.Sprintf("The log up to record %s could be read over the USB cable. Whether anybody kept a copy the box does not know.", number(p.Last))
		s.fact("ended by", e.Code)
	}
	if !p.OK {
		e.Outcome, e.Headline = Failed, "The log could not be copied"
		s.Text = "A copy of the log was begun and did not come about" + becauseOf(capabilities.Code(p.Code)) + "."
	}
	if len(p.Volume) > 0 {
		s.fact("medium", Printable(p.Volume))
	}
	s.digest("digest of its checksums", p.Sums)
	e.refer(s, p.Admin)
}

// codeDoubted is the code of a button that does what no patient finger does, where one that stopped answering has none.
const codeDoubted = "doubted"

func (e *event) faulted(s *Step, p *audit.Fault) {
	e.Kind, e.Outcome, e.Code = KindFault, Failed, escape(p.Code)
	e.Headline = faultWord(p.Class)
	if p.Class == audit.FaultButton && p.Code == codeDoubted {
		// It answers, and a hasty person makes it look like this as well as a loose contact: nothing has failed yet.
		e.Outcome, e.Headline = "", "Approve was pressed too often, so the box asked for taps for a while"
	}
	s.Text = e.Headline + "."
	s.fact("part", escape(p.Where))
	s.fact("code", e.Code)
	if p.Count > 0 {
		s.fact("count", fmt.Sprint(p.Count))
	}
	if p.Errno > 0 {
		s.fact("errno", fmt.Sprint(p.Errno))
	}
	e.refer(s, p.At)
}

func faultWord(c audit.FaultClass) string {
	switch c {
	case audit.FaultStorage:
		return "The box could not write to its storage"
	case audit.FaultCorrupt:
		return "A part of the log could not be read any more"
	case audit.FaultDisplay:
		return "The panel stopped answering"
	case audit.FaultButton:
		return "A button stopped answering"
	case audit.FaultCourier:
		return "The part of the box that makes connections failed"
	case audit.FaultWorker:
		return "A worker failed"
	case audit.FaultGateway:
		return "The part of the box that phones talk to failed"
	case audit.FaultProtocol:
		return "One part of the box said what it must not say to another"
	case audit.FaultMismatch:
		return "What was sent or received was not what was promised"
	case audit.FaultFull:
		return "There was no room left for the log"
	}
	return "A fault of a kind that this program does not know"
}

func (e *event) froze(s *Step, p *audit.Freeze) {
	e.Kind = KindFreeze
	who := actor(p.By, 0)
	if !p.On {
		e.Headline, s.Text = "The box was released", "The box was released by "+who+"."
		return
	}
	e.Headline = "Panic: the box was frozen"
	s.Text = "The box was frozen by " + who + ": from then on nothing that needs a press was done."
	if p.Dropped > 0 {
		s.fact("waiting requests dropped", fmt.Sprint(p.Dropped))
	}
	if p.Killed > 0 {
		s.fact("calls stopped", fmt.Sprint(p.Killed))
	}
	s.fact("reason", escape(p.Reason))
}
