package gateway_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/conversation"
	"assent.home.arpa/appliance/gateway"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
)

// D9: strangers who try whether something approves, as often as connections let them, cost a waiting card nothing.
func TestStrangersDoNotCutOffTheGuard(t *testing.T) {
	decided := make(chan struct{})
	b := start(t, func(ctx context.Context, q conversation.Turn, emit conversation.Emit) error {
		id := q.Conversation.String()
		emit(wire.TypePending, wire.Pending{Conversation: id, Turn: "t1", Invocation: invocation})
		until(ctx, decided)
		emit(wire.TypeTurnEnd, wire.TurnEnd{Conversation: id, Turn: "t1", Reason: "complete"})
		return nil
	})
	p := newHandset(t, b, 1)
	p.connect()
	p.ask(talkA, "search")
	p.want(wire.TypePending)
	began := time.Now()
	for range 20 {
		stranger := &handset{t: t, box: b}
		stranger.dial()
		for range gateway.MaxOffences + 1 {
			stranger.send("approve", nil)
		}
		stranger.closed()
	}
	await[*ipc.Claim](t, b.guard, 1)
	close(decided)
	p.want(wire.TypeTurnEnd) // and no notice that the guard was lost
	p.send(wire.TypePing, nil)
	p.want(wire.TypePong)
	most := 2 + int(time.Since(began)/gateway.OffenceEvery)
	if claims := await[*ipc.Claim](t, b.guard, 1); len(claims) > most {
		t.Errorf("the guard had to deal with %d claims", len(claims))
	}
}

// The first offence is told at once, and what follows in one claim with the number of them: none is lost.
func TestOffencesAreToldTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer near.Close()
		began := time.Now()
		var got []string
		go ipc.Serve(t.Context(), ipc.NewConn(far), func(_ context.Context, m ipc.Message, _ func(ipc.Message) error) {
			c := m.(*ipc.Claim)
			got = append(got, fmt.Sprintf("%s slot %d, %s, %d", time.Since(began), c.Slot, c.Detail, c.Digest[0]))
		})
		offend := gateway.Offender(t.Context(), near)
		for i := range 5 {
			offend(0, [32]byte{byte(i)})
			synctest.Wait()
		}
		offend(3, [32]byte{9})
		time.Sleep(10 * gateway.OffenceEvery)
		offend(0, [32]byte{7})
		synctest.Wait()
		want := []string{
			"0s slot 0, messages of an unknown type: 1; the digest is of the first, 0",
			"0s slot 3, messages of an unknown type: 1; the digest is of the first, 9",
			"10s slot 0, messages of an unknown type: 4; the digest is of the first, 1",
			"1m40s slot 0, messages of an unknown type: 1; the digest is of the first, 7",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("claims (-want +got)\n%s", diff)
		}
	})
}
