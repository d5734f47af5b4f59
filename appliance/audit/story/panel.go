package story

import (
	"fmt"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/device"
)

// tellPanel writes the steps from the picture on the panel to the decision or the refusal.
func (c *call) tellPanel() {
	if e := c.approval; e != nil {
		if e.p.PageCount > 0 {
			c.tellPages(e)
		}
		s := c.step(StepDecided, decided(e.p), e.seq)
		s.When = e.when
		s.Press = pressOf(pressed{e.p.Mode, e.p.Shown, e.p.Pressed, e.p.Completed, e.p.Presses, e.p.Steps, e.p.LeftOut})
		s.digest("receipt digest", c.receipt())
		s.digest("arguments digest", e.p.ArgsDigest)
		s.digest("digest of destination and request", e.p.RequestDigest)
	}
	if e := c.withdraw; e != nil {
		text := "It was taken back by " + actor(e.p.By, e.p.Slot) + "."
		if e.p.Deny {
			text = "It was refused by " + actor(e.p.By, e.p.Slot) + "."
		}
		s := c.step(StepWithdrawn, text, e.seq)
		s.When = e.when
		s.fact("code", escape(string(e.p.Code)))
	}
	if e := c.refusal; e != nil {
		s := c.step(StepRefused, refused(e.p), e.seq)
		s.When = e.when
		s.fact("stage", e.p.Stage.String())
		s.fact("code", escape(string(e.p.Code)))
		if c.policy == nil {
			c.judged(s, e.p)
		}
		if len(e.p.Field) > 0 {
			s.fact("argument", Printable(e.p.Field))
		}
		if e.p.Next > 0 {
			s.fact("may be asked again at", "start+"+e.p.Next.Round(time.Second).String())
		}
	}
}

func (c *call) tellPages(e *entry[*audit.Approval]) {
	pages := c.pages(e.p.Pages, int(e.p.PageCount), c.log())
	s := c.step(StepShown, shown(pages), e.seq)
	s.Pages = pages
	s.digest("screen digest", e.p.ScreenDigest)
	for _, d := range e.p.Pages {
		s.digest("pages digest", d)
		if b := c.blob(d); b != nil {
			s.Records = append(s.Records, b.seq)
		}
	}
	if e.p.Queued > 0 && e.p.Fronted > e.p.Queued {
		s.fact("waited for its turn", (e.p.Fronted - e.p.Queued).Round(time.Millisecond).String())
	}
}

// pages puts the panel's pictures together, all or none.
func (d *sketch) pages(digests []audit.Digest, count int, policy capabilities.LogPolicy) *Pages {
	p := &Pages{Count: count, State: KeptYes}
	for _, digest := range digests {
		b := d.blob(digest)
		if b == nil {
			return &Pages{Count: count, State: d.missing(policy)}
		}
		const frame = len(device.Frame{})
		if len(b.bytes)%frame != 0 {
			return &Pages{Count: count, State: KeptNo}
		}
		for at := 0; at < len(b.bytes); at += frame {
			p.Frames = append(p.Frames, b.bytes[at:at+frame])
		}
	}
	if len(p.Frames) == 0 {
		return &Pages{Count: count, State: d.missing(policy)}
	}
	return p
}

func shown(p *Pages) string {
	panel := "The box's panel showed one page"
	if p.Count > 1 {
		panel = fmt.Sprintf("The box's panel showed %d pages", p.Count)
	}
	switch p.State {
	case KeptWithheld:
		return panel + ". The picture is withheld: of this capability the log keeps digests only."
	case KeptRedacted:
		return panel + ". The picture was removed from the log since; its digest remains."
	case KeptNo:
		return panel + ". The picture is not in the log."
	}
	if len(p.Frames) != p.Count {
		return panel + fmt.Sprintf("; the log holds %d of them.", len(p.Frames))
	}
	return panel + "."
}

// receipt is the digest of the signed receipt, as the promise that was made on it names it.
func (c *call) receipt() audit.Digest {
	if c.intent == nil {
		return audit.Digest{}
	}
	return c.intent.p.ReceiptDigest
}

// pressed is what pressOf needs of a record.
type pressed struct {
	mode                      audit.Mode
	shown, pressed, completed time.Duration
	edges                     []device.Event
	steps                     []audit.PanelStep
	leftOut                   uint16
}

func pressOf(d pressed) *Press {
	p, from := &Press{Since: "the last page was drawn", LeftOut: int(d.leftOut)}, d.shown
	switch {
	case from > 0:
	case len(d.steps) > 0:
		p.Since, from = "it came to the front", d.steps[0].At
	case len(d.edges) > 0:
		p.Since, from = "the first of them", d.edges[0].Mono
	default:
		return nil
	}
	if d.mode != 0 {
		p.Mode = d.mode.String()
	}
	if d.pressed > 0 {
		p.Pressed = int64(d.pressed - from)
	}
	if d.completed > 0 {
		p.Completed = int64(d.completed - from)
	}
	for _, e := range d.edges {
		p.Edges = append(p.Edges, Edge{Button: e.Button.String(), Edge: e.Edge.String(), At: int64(e.Mono - from)})
	}
	for _, s := range d.steps {
		p.Moves = append(p.Moves, Move{Text: moved(s), At: int64(s.At - from)})
	}
	return p
}

// moved says in plain words what happened at the panel.
func moved(s audit.PanelStep) string {
	const onGlass = " came on the glass"
	switch {
	case s.Cause == audit.PanelDrawn && s.Page > 0:
		return fmt.Sprintf("page %d"+onGlass, s.Page)
	case s.Cause == audit.PanelDrawn && s.State == audit.PanelNext:
		return "NEXT REQUEST" + onGlass
	case s.Cause == audit.PanelDrawn && s.State == audit.PanelWaiting:
		return "the announcement" + onGlass
	case s.Cause == audit.PanelDrawn && s.State == audit.PanelChallenge:
		return "the number of taps" + onGlass
	case s.Cause == audit.PanelDrawn:
		return s.State.String() + onGlass
	case s.State == audit.PanelNext:
		return "it came to the front"
	}
	return s.Cause.String()
}
