package gateway_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/capabilities"
)

// unknown is a search that was cut off.
func unknown() ipc.Unknown {
	return ipc.Unknown{
		Inv: parseID[capabilities.InvocationID](invocation), Slot: 1, Phone: "Anna", Name: "web.search", Version: 1, Title: "Search Wikipedia for",
		Text: "tall towers", Destination: "wikipedia.org", When: 1_793_707_200_000, Seq: 812, Why: capabilities.CodeInterrupted, Cut: true,
	}
}

// W14: a phone that comes is told what nobody can speak for, can say that its person has seen it, and every phone hears of
// that. It takes the phone's own signature.
func TestUnknownOutcomesAreToldAndSeen(t *testing.T) {
	b := start(t, say("Yes."))
	b.guard.inbox = []ipc.Unknown{unknown()}
	b.guard.seal, b.guard.head = []byte{0xd2, 0x84}, 820
	p, q := newHandset(t, b, 1), newHandset(t, b, 2)
	if w := p.hello(); w.HeadSeq != 820 || w.Seal != "0oQ" {
		t.Errorf("welcome %+v", w)
	}
	want := wire.Inbox{Items: []wire.Unknown{{
		Invocation: invocation, Slot: 1, Phone: "Anna", Capability: "web.search", Version: 1, Title: "Search Wikipedia for", Text: "tall towers",
		Destination: "wikipedia.org", At: "2026-11-03T12:00:00Z", Record: 812, Code: "interrupted", Cut: true,
	}}}
	if d := cmp.Diff(want, decode[wire.Inbox](t, p.want(wire.TypeInbox))); d != "" {
		t.Errorf("inbox (-want +got)\n%s", d)
	}
	p.want(wire.TypeSnapshot)
	q.connect()

	inv := [16]byte(unknown().Inv)
	p.send(wire.TypeSeen, wire.Seen{Invocation: invocation, Sig: q.sign(wire.SeenBytes(1, inv))})
	p.wantError("bad_signature")
	p.send(wire.TypeSeen, wire.Seen{Invocation: "x", Sig: p.sign(wire.SeenBytes(1, inv))})
	p.wantError("bad_frame")
	id := p.send(wire.TypeSeen, wire.Seen{Invocation: invocation, Sig: p.sign(wire.SeenBytes(1, inv))})
	if f := p.want(wire.TypeInbox); f.Re != id || len(decode[wire.Inbox](t, f).Items) != 0 {
		t.Errorf("answered with %+v", f)
	}
	b.guard.notice(t, ipc.Notice{Class: ipc.NoticeInbox})
	for _, phone := range []*handset{p, q} {
		if f := phone.want(wire.TypeInbox); f.Seq == 0 || len(decode[wire.Inbox](t, f).Items) != 0 {
			t.Errorf("slot %d is told %s", phone.slot, f.Data)
		}
	}
}

func TestNothingUnknownIsNothingSaid(t *testing.T) {
	b := start(t, say("Yes."))
	p := newHandset(t, b, 1)
	p.hello()
	p.want(wire.TypeSnapshot)
}

// What is wrong with the record is said with what to do about it, to who is there and to who comes.
func TestWhyTheAuditIsLostIsTold(t *testing.T) {
	for trouble, class := range map[ipc.AuditTrouble]string{ipc.AuditLost: "audit_lost", ipc.AuditFull: "audit_full", ipc.AuditDamaged: "audit_damaged"} {
		t.Run(class, func(t *testing.T) {
			b := start(t, say("Yes."))
			b.guard.trouble = trouble
			p := newHandset(t, b, 1)
			p.hello()
			if n := decode[wire.Notice](t, p.want(wire.TypeNotice)); n.Class != class || n.Message == "" {
				t.Errorf("told %+v", n)
			}
			p.want(wire.TypeSnapshot)
			b.guard.notice(t, ipc.Notice{Class: ipc.NoticeAuditBack})
			if n := decode[wire.Notice](t, p.want(wire.TypeNotice)); n.Class != "audit_back" {
				t.Errorf("told %+v", n)
			}
		})
	}
}
