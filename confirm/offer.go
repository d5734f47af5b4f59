package confirm

// take keeps a prompt that is offered until a gesture opens it. One that nothing has used yet opens it at once, unless somebody
// who need not be at the box has caused it; one that is under way was begun for something else. What is offered needs neither the
// glass nor the buttons: it waits until they are there.
func (m *machine) take(p *prompt) {
	if m.offer != nil || m.prompt != nil && m.prompt.req.Offer {
		m.do(answer{p, AdminDecision{Outcome: AdminBusy}})
		return
	}
	m.offer = p
	m.beginAnew()
	if unused := m.pairing.open && !m.pairing.used && m.now.boot < m.gesture; unused && !p.req.Afresh && m.spare() {
		m.showOffer()
	}
}

// showOffer uses the gesture up: whoever offers again and again gets one prompt for it, and behind that nobody finds a pairing
// code that was not asked for.
func (m *machine) showOffer() {
	p := m.offer
	m.offer, m.gesture = nil, 0
	m.show(p)
	m.endPairing(CausePrompt)
}

// endOffer answers a prompt that nobody saw. A gesture for it that is under way opens nothing else in its place.
func (m *machine) endOffer(o AdminOutcome) {
	m.do(answer{m.offer, AdminDecision{Outcome: o}})
	m.offer = nil
	m.beginAnew()
}

// beginAnew forgets a gesture that is under way: what it would open has changed. On a frozen box it always means the release.
func (m *machine) beginAnew() {
	m.taps = taps{}
	if m.calm != 0 && !m.frozen {
		m.calm, m.hold = m.now.mono, hold{}
	}
}
