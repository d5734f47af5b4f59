package confirm

import (
	"slices"

	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

// Bulletin is something that the box has to say to whoever stands at it. The panel shows it while nothing else needs the glass,
// until somebody presses a button. That press turns its pages and closes it; held on together with the other button it is the
// gesture, and it can do nothing else: every other screen takes only edges that are newer than its own acknowledgement.
type Bulletin struct {
	ID    [32]byte      // tells it from others; the one that BulletinRead names
	Pages []screen.Page // screen.Bulletin made them
}

// maxBulletins bounds what waits to be read.
const maxBulletins = 16

// SetBulletins says what the panel has to say, in order, in place of what it said before. One that was read is
// forgotten: the guard leaves it out, or it is shown again. Those beyond the first 16 are left out.
func (d *Desk) SetBulletins(all []Bulletin) {
	all = slices.Clone(all[:min(len(all), maxBulletins)])
	all = slices.DeleteFunc(all, func(b Bulletin) bool { return len(b.Pages) == 0 })
	d.post(func(m *mail) { m.bulletins = &all })
}

func (m *machine) setBulletins(all []Bulletin) {
	showing := m.state == StateBulletin
	same := showing && len(all) > 0 && all[0].ID == m.bulletins[0].ID && len(all[0].Pages) == len(m.bulletins[0].Pages)
	m.bulletins = all
	switch {
	case same: // whoever reads it goes on
	case showing:
		m.advance(CauseNoticeChanged)
	case m.state == StateIdle:
		m.advance(CauseNotice)
	}
}

// showBulletin takes the glass for the first one, if there is one.
func (m *machine) showBulletin(cause Cause) bool {
	if len(m.bulletins) == 0 {
		return false
	}
	m.page = 0
	m.to(StateBulletin, 0, cause)
	return true
}

// bulletinEdge turns pages. A press that landed as the page came was meant for what was there before. Whoever goes on to hold both
// buttons means the gesture, as on the idle screen; what was not read stays.
func (m *machine) bulletinEdge(ev device.Event) {
	m.hold = hold{}
	if ev.Edge != device.Press {
		return
	}
	defer m.beginGesture()
	if ev.Mono < m.glass.shown+m.rules.PageMin {
		return
	}
	b := m.bulletins[0]
	if m.page < len(b.Pages)-1 {
		m.page++
		return
	}
	m.bulletins = m.bulletins[1:]
	m.do(notify{Notice{Kind: BulletinRead, Bulletin: b.ID}})
	m.advance(CauseNoticeRead)
}
