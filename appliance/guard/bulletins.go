package guard

import (
	"context"
	"slices"
	"sync"
	"time"

	"assent.home.arpa/appliance/notice"
	"assent.home.arpa/confirm"
	"assent.home.arpa/confirm/screen"
)

// noticesEvery is how often the guard looks whether what prepares the box has something new to say.
const noticesEvery = 3 * time.Second

// bulletins is what the panel has to say for the parts of the box that have no panel. What somebody closed stays away until
// its file says something else, or is gone and comes back.
type bulletins struct {
	large bool
	now   func() time.Duration // boot time

	mu     sync.Mutex
	show   func([]confirm.Bulletin) // is called under mu, so that what is known last is shown last
	all    []notice.Notice
	stick  []notice.Notice // at most one: what the guard itself has to say of a stick
	again  time.Duration   // boot time before which no stick that comes says anything
	closed map[[32]byte]bool
}

// sticksEvery is how often a stick that comes may take the glass to say what is wrong with it. One with a loose contact comes
// without end, and the idle screen says it too, in fewer words.
const sticksEvery = time.Minute

func newBulletins(large bool, now func() time.Duration) *bulletins {
	return &bulletins{large: large, now: now, show: func([]confirm.Bulletin) {}, closed: map[[32]byte]bool{}}
}

// on has them shown by show, which must not call back.
func (b *bulletins) on(show func([]confirm.Bulletin)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.show = show
}

// replace takes what there is now, and returns what was not there before.
func (b *bulletins) replace(all []notice.Notice) (fresh []notice.Notice) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range all {
		if !slices.Contains(b.all, n) {
			fresh = append(fresh, n)
		}
	}
	if !slices.Equal(all, b.all) {
		b.all = all
		b.reopenLocked()
		b.show(b.openLocked())
	}
	return fresh
}

// ofStick says something of a stick, in place of what was said of one before; "" is nothing. What nobody at the box asked for
// is said at most once in sticksEvery.
func (b *bulletins) ofStick(text string, asked bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stick = nil
	switch now := b.now(); {
	case text == "", !asked && now < b.again:
	default:
		b.again = now + sticksEvery
		b.stick = []notice.Notice{{Name: "stick", Text: text}}
	}
	b.reopenLocked()
	b.show(b.openLocked())
}

// reopenLocked forgets what somebody closed once nobody says it any more.
func (b *bulletins) reopenLocked() {
	for id := range b.closed {
		if !slices.ContainsFunc(slices.Concat(b.stick, b.all), func(n notice.Notice) bool { return n.Digest() == id }) {
			delete(b.closed, id)
		}
	}
}

// close keeps away what somebody has read. It returns its name.
func (b *bulletins) close(id [32]byte) (name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range slices.Concat(b.stick, b.all) {
		if n.Digest() == id {
			b.closed[id] = true
			name = n.Name
			break
		}
	}
	b.show(b.openLocked())
	return name
}

// openLocked returns what nobody has closed, drawn. What cannot be drawn was refused when it was read.
func (b *bulletins) openLocked() []confirm.Bulletin {
	var open []confirm.Bulletin
	for _, n := range slices.Concat(b.stick, b.all) {
		if id := n.Digest(); !b.closed[id] {
			if pages, err := screen.Bulletin(n.Text, b.large); err == nil {
				open = append(open, confirm.Bulletin{ID: id, Pages: pages})
			}
		}
	}
	return open
}

// readNotices shows what lies in the directory of notices, until ctx ends.
func (g *guard) readNotices(ctx context.Context) {
	if g.opts.Notices == "" {
		return
	}
	failed := ""
	for {
		all, err := notice.Read(g.opts.Notices)
		switch {
		case err == nil:
			failed = ""
		case err.Error() != failed: // once for each trouble, not every few seconds
			failed = err.Error()
			g.log.Error("notices", "err", err)
		}
		for _, n := range g.bulletins.replace(all) {
			g.log.Warn("notice at the box", "name", n.Name, "text", n.Text)
		}
		due, stop := g.opts.Clock.Until(g.opts.Clock.Boot() + noticesEvery)
		select {
		case <-due:
			stop()
		case <-ctx.Done():
			stop()
			return
		}
	}
}
