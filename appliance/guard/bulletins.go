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

	mu     sync.Mutex
	all    []notice.Notice
	stick  []notice.Notice // at most one: what the guard itself has to say of a stick
	closed map[[32]byte]bool
}

func newBulletins(large bool) *bulletins {
	return &bulletins{large: large, closed: map[[32]byte]bool{}}
}

// replace takes what there is now, and returns what was not there before and whether anything changed.
func (b *bulletins) replace(all []notice.Notice) (fresh []notice.Notice, changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range all {
		if !slices.Contains(b.all, n) {
			fresh = append(fresh, n)
		}
	}
	changed = !slices.Equal(all, b.all)
	b.all = all
	b.reopenLocked()
	return fresh, changed
}

// ofStick says something of a stick, in place of what was said of one before; "" is nothing.
func (b *bulletins) ofStick(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stick = nil
	if text != "" {
		b.stick = []notice.Notice{{Name: "stick", Text: text}}
	}
	b.reopenLocked()
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
func (b *bulletins) close(id [32]byte) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range slices.Concat(b.stick, b.all) {
		if n.Digest() == id {
			b.closed[id] = true
			return n.Name
		}
	}
	return ""
}

// open returns what nobody has closed, drawn. What cannot be drawn was refused when it was read.
func (b *bulletins) open() []confirm.Bulletin {
	b.mu.Lock()
	defer b.mu.Unlock()
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
		fresh, changed := g.bulletins.replace(all)
		for _, n := range fresh {
			g.log.Warn("notice at the box", "name", n.Name, "text", n.Text)
		}
		if changed {
			g.desk.SetBulletins(g.bulletins.open())
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

// bulletinRead is told that somebody at the box has closed one.
func (g *guard) bulletinRead(id [32]byte) {
	g.log.Info("notice closed at the box", "name", g.bulletins.close(id))
	g.desk.SetBulletins(g.bulletins.open())
}
