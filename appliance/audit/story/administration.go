package story

import (
	"fmt"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/capabilities"
)

// administered tells one act of administration.
func (e *event) administered(s *Step, p *audit.Admin) {
	e.Kind, e.Phone, e.Code = KindAdmin, p.Slot, escape(p.Code)
	e.Outcome = administrative(p.Outcome)
	e.Headline = act(p)
	if e.Outcome != Done {
		e.Headline += " (" + p.Outcome.String() + ")"
	}
	s.Text = e.Headline + ", by " + actor(p.By, p.Slot) + "."
	if p.By == audit.ByBox {
		s.Text = e.Headline + ". Decided by somebody at the box."
	}
	if p.Action == audit.AdminRevoke {
		e.Outcome = Done
		s.Text = "The button stayed down after the press, which takes the permission back if it was not used yet."
	}
	if e.first.Inv != (audit.ID{}) {
		s.fact("call", e.first.Inv.String())
	}
	if p.Slot > 0 {
		s.fact("phone", fmt.Sprint(p.Slot))
	}
	s.fact("role", roleWord(p.Role))
	s.fact("person", escape(p.Person))
	s.fact("code", e.Code)
	s.fact("revision", escape(p.Revision))
	s.digest("digest before", p.Before)
	s.digest("digest after", p.After)
	s.digest("screen digest", p.ScreenDigest)
	if p.Text != (audit.Digest{}) {
		s.Literals = append(s.Literals, e.literal("what the panel asked about", p.Text, capabilities.LogView))
	}
	if len(p.Pages) > 0 {
		s.Pages = e.pages(p.Pages, len(p.Pages), capabilities.LogView)
	}
	s.Press = pressOf(pressed{0, p.Shown, p.Pressed, p.Completed, p.Presses, p.Steps, p.LeftOut})
	e.refer(s, p.Ref)
}

func administrative(o audit.ApprovalOutcome) Outcome {
	switch o {
	case audit.Approved:
		return Done
	case audit.Denied, audit.Panicked:
		return Denied
	case audit.Expired:
		return Expired
	case audit.ExpiredUnseen:
		return ExpiredUnseen
	case audit.Withdrawn:
		return Withdrawn
	}
	return Rejected
}

func act(p *audit.Admin) string {
	subject := ""
	if p.Subject != "" {
		subject = " " + quoted([]byte(p.Subject))
	}
	on := func(yes, no string) string {
		if p.On == audit.No {
			return no
		}
		return yes
	}
	switch p.Action {
	case audit.AdminPair:
		return "Pairing of a phone"
	case audit.AdminUnpair:
		return "Removal of a phone"
	case audit.AdminRole:
		return "Change of a phone's role"
	case audit.AdminPolicy:
		return "Change of the box's rules"
	case audit.AdminConfig:
		return "Change of the box's settings"
	case audit.AdminFeed:
		return on("Setting up", "Removal") + " of the feed" + subject
	case audit.AdminTool:
		return "Review of the tool" + subject
	case audit.AdminUpdate:
		return "Update of the box"
	case audit.AdminExport:
		return "Copying of the log"
	case audit.AdminPrune:
		return "Removal of the oldest part of the log"
	case audit.AdminRedact:
		return "Removal of literal texts from the log"
	case audit.AdminReset:
		return "Reset of the box"
	case audit.AdminUnfreeze:
		return "Release of the frozen box"
	case audit.AdminRevoke:
		return "A permission was taken back"
	case audit.AdminPairing:
		return "Pairing mode was " + on("opened", "closed")
	case audit.AdminModel:
		return "Change of the language model"
	case audit.AdminQuiet:
		return "Quiet hours were switched " + on("on", "off")
	}
	return "Administration of a kind that this program does not know"
}

// claimed tells what another process says, as said by it.
func (e *event) claimed(s *Step, p *audit.Claim) {
	e.Kind, e.Phone, e.Code = KindClaim, p.Slot, escape(string(p.Code))
	who := actor(p.From, 0)
	if p.Ask != (audit.ID{}) {
		e.Ask = p.Ask.String()
	}
	switch p.Class {
	case audit.ClaimTurn:
		e.Kind = KindTurn
		e.Headline = fmt.Sprintf("Phone %d asked a question: %s", p.Slot, proposals(p.Count))
		s.Text = fmt.Sprintf("A question of phone %d ended, with %s by the model.", p.Slot, proposals(p.Count))
		for _, name := range p.Offered {
			s.fact("offered to the model", escape(name))
		}
	case audit.ClaimParseFailure:
		e.Outcome = Rejected
		e.Headline = "The model wrote a call that cannot be read"
	case audit.ClaimBudget:
		e.Outcome = Rejected
		e.Headline = "The model proposed more than one turn may hold"
	case audit.ClaimProvider:
		e.Outcome = Failed
		e.Headline = "The language model failed"
	case audit.ClaimProtocol:
		e.Outcome = Rejected
		e.Headline = "Somebody on the network said what a phone must not say"
	case audit.ClaimResult:
		e.Outcome = Rejected
		e.Headline = "A result broke its rules and was dropped"
	default:
		e.Headline = "A claim of a kind that this program does not know"
	}
	if s.Text == "" {
		s.Text = e.Headline + ", says " + who + "."
	}
	s.fact("claimed by", p.From.String())
	s.fact("code", e.Code)
	if len(p.Name) > 0 {
		s.fact("name", Printable(p.Name))
	}
	if len(p.Text) > 0 {
		s.fact("diagnosis", Printable(p.Text))
	}
	s.fact("question", e.Ask)
	s.digest("question digest", p.AskDigest)
	s.digest("catalog digest", p.Catalog)
	s.digest("model digest", p.Model)
	s.digest("digest of what it is about", p.RawDigest)
	s.digest("run digest", p.RunDigest)
}

func proposals(n uint16) string {
	switch n {
	case 0:
		return "no proposal"
	case 1:
		return "one proposal"
	}
	return fmt.Sprintf("%d proposals", n)
}

// tool tells a change in what is known of a foreign tool.
func (e *event) tool(s *Step, p *audit.Tool) {
	e.Kind, e.Capability = KindTool, escape(p.Capability)
	name := "A tool"
	if len(p.Name) > 0 {
		name = "The tool " + quoted(p.Name)
	}
	switch p.State {
	case audit.ToolQuarantined:
		e.Headline = name + " was found, and waits for its review"
	case audit.ToolActive:
		e.Headline = name + " was reviewed and may be used"
	case audit.ToolDrifted:
		e.Headline = name + " is no longer what was reviewed, and was switched off"
	case audit.ToolRefused:
		e.Headline = name + " was refused"
	case audit.ToolRemoved:
		e.Headline = name + " was removed"
	}
	s.Text = e.Headline + "."
	s.fact("connection", escape(p.Connection))
	s.digest("identity", p.ID)
	s.digest("identity before", p.Before)
	s.digest("server digest", p.Server)
	s.digest("schema digest", p.Schema)
	s.digest("description digest", p.Description)
	s.digest("mapping digest", p.Mapping)
	if len(p.Version) > 0 {
		s.fact("version, as the server says", Printable(p.Version))
	}
	if len(p.Publisher) > 0 {
		s.fact("publisher, as the server says", Printable(p.Publisher))
	}
	if p.Raw != (audit.Digest{}) {
		s.Literals = append(s.Literals, e.literal("what the server says of it", p.Raw, capabilities.LogView))
	}
	e.refer(s, p.Admin)
}
