package guard

import (
	"context"
	"net"
	"syscall"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/notice"
	"assent.home.arpa/confirm"
)

// RunPiped is Run with pipes in place of sockets: they have no peer credentials, and they let a test stop time. eyes is
// given what somebody at the box reads from the panel: the pairing code. late is asked for a freeze that comes so late that
// only the courier's door can still see it. disk, which may be nil, holds the audit.
func RunPiped(ctx context.Context, o Options, disk audit.Disk, courier func(context.Context) (net.Conn, error), late func() bool, eyes func(code func() (string, bool))) error {
	o.disk = disk
	g, err := start(ctx, o)
	if err != nil {
		return err
	}
	g.peer = func(net.Conn) error { return nil }
	g.exporter = g.peer
	g.courier.dial = courier
	g.courier.frozen = func() bool { return late() || g.freezer.frozen() }
	eyes(g.desk.PairingCode)
	return g.run(ctx)
}

// CheckName is checkName.
func CheckName(name string, existing ...string) error { return checkName(name, existing) }

// PairPrompt is what the panel asks of a phone that wants to be paired.
func PairPrompt(keyCode string, role ipc.Role) (title, text string) {
	return pairPrompt(keyCode, role)
}

// Flood is the backlog after these kinds of notices, each panic with one call that it ended: the kinds that are left, and how
// many calls the panics among them ended.
func Flood(kinds []confirm.NoticeKind) (left []confirm.NoticeKind, killed int) {
	var b backlog
	for _, k := range kinds {
		h := happened{Notice: confirm.Notice{Kind: k}}
		if k == confirm.Panic {
			h.killed = 1
		}
		b.add(h)
	}
	for _, h := range b {
		left = append(left, h.Kind)
		killed += h.killed
	}
	return left, killed
}

// Bulletins are those of a panel that is shown what show is given. Replace is told what lies in the directory of notices, Close
// what somebody closed.
func Bulletins(show func([]confirm.Bulletin)) (replace func([]notice.Notice), closeIt func([32]byte)) {
	b := newBulletins(false, func() time.Duration { return 0 })
	b.on(show)
	return func(all []notice.Notice) { b.replace(all) }, func(id [32]byte) { b.close(id) }
}

// StickHint is what the idle screen says to do about a note.
func StickHint(note string) string {
	for p := ipc.StickExFAT; p <= ipc.StickRefused; p++ {
		if w := wordsOf(p); w.note == note {
			return w.hint
		}
	}
	return "use another one"
}

// StickName is what a prompt calls a stick.
func StickName(h ipc.StickHello) string { return stickName(h) }

// StickTitle heads the prompt for a copy.
const StickTitle = stickTitle

// RoomTitle and RoomText ask whether the oldest part of a full record is to go.
const RoomTitle, RoomText = roomTitle, roomText

// StickWords is what the panel says of a problem.
func StickWords(p ipc.StickProblem) (note, hint, full string) {
	w := wordsOf(p)
	return w.note, w.hint, w.full
}

// CablePrompt is where the panel says that the record goes over a cable.
const CablePrompt = cablePrompt

// CableWords is all that the panel says of a cable on which nothing came.
func CableWords() (all []string) {
	stopped, stop := context.WithCancel(context.Background())
	stop()
	for _, err := range []error{syscall.ENOSPC, errTooSlow} {
		for _, ctx := range []context.Context{context.Background(), stopped} {
			_, say := cableFailure(err, ctx)
			all = append(all, say)
		}
	}
	return all
}
