package gateway_test

import (
	"context"
	"net"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/conversation"
	"assent.home.arpa/appliance/gateway"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
)

func TestNothingBeforeHello(t *testing.T) {
	b := start(t, say())
	p := newHandset(t, b, 1).dial()
	for _, typ := range []wire.Type{wire.TypeAsk, wire.TypeCancel, wire.TypeDeny} {
		p.send(typ, struct{}{})
		p.wantError("hello_first")
	}
}

// D9: a hello that another connection saw, another phone's key and an unknown slot prove nothing.
func TestHelloNeedsTheKey(t *testing.T) {
	b := start(t, say())
	p := newHandset(t, b, 1)
	p.connect()
	first := p.nonce
	other := newHandset(t, b, 2)
	for name, hello := range map[string]func() map[string]any{
		"replayed":    func() map[string]any { return map[string]any{"slot": 1, "sig": p.sign(wire.AuthBytes(1, first))} },
		"another key": func() map[string]any { return map[string]any{"slot": 1, "sig": other.sign(wire.AuthBytes(1, p.nonce))} },
		"no such":     func() map[string]any { return map[string]any{"slot": 9, "sig": p.sign(wire.AuthBytes(9, p.nonce))} },
	} {
		t.Run(name, func(t *testing.T) {
			p.dial()
			p.send(wire.TypeHello, hello())
			p.wantError("not_paired")
			p.ask(talkA, "hello?")
			p.wantError("hello_first")
		})
	}
}

func TestRemovedPhoneIsHungUpOn(t *testing.T) {
	stopped := make(chan struct{})
	b := start(t, func(ctx context.Context, q conversation.Turn, emit conversation.Emit) error {
		emit(wire.TypeTurn, wire.Turn{Conversation: q.Conversation.String(), Turn: "t1", Text: q.Text})
		<-ctx.Done()
		close(stopped)
		return nil
	})
	p, other := newHandset(t, b, 1), newHandset(t, b, 2)
	p.connect()
	other.connect()
	p.ask(talkA, "still mine?")
	p.want(wire.TypeTurn)
	b.guard.unpair(1)
	b.guard.notice(t, ipc.Notice{Class: ipc.NoticePhoneRemoved, Slot: 1})
	if code := p.closed(); code != 4003 {
		t.Errorf("closed with %d, want 4003", code)
	}
	<-stopped
	other.send(wire.TypePing, nil)
	other.want(wire.TypePong)
}

func TestPairing(t *testing.T) {
	b := start(t, say("hello"))
	p := &handset{t: t, box: b}
	fresh := newHandset(t, b, 1) // only for its key
	p.key = fresh.key
	b.guard.unpair(1)
	newHandset(t, b, 2).connect() // the guard is there now
	b.guard.unpair(2)
	p.dial()
	point, err := p.key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	pair := wire.Pair{Code: "000000", Name: "Anna", Key: base64url(point)}
	p.send(wire.TypePair, pair)
	p.wantError("pairing_refused")
	pair.Code = "482913"
	for _, accepted := range []bool{false, true} {
		id := p.send(wire.TypePair, pair)
		p.send(wire.TypePair, pair)
		if f := p.wantError("pairing_busy"); f.Re == id {
			t.Error("the first was refused instead of the second")
		}
		b.guard.accept <- accepted
		if !accepted {
			p.wantError("pairing_refused")
			continue
		}
		got := decode[wire.Paired](t, p.want(wire.TypePaired))
		if diff := cmp.Diff(wire.Paired{Slot: 1, Name: "Anna", Role: "adult"}, got); diff != "" {
			t.Errorf("paired (-want +got)\n%s", diff)
		}
	}
	p.slot = 1
	p.send(wire.TypeHello, map[string]any{"slot": 1, "sig": p.sign(wire.AuthBytes(1, p.nonce))})
	p.want(wire.TypeWelcome)
}

// TestOneDeviceCannotUseUpTheGuesses: after a few wrong codes it has to wait, and the guard hears of no more of them.
func TestOneDeviceCannotUseUpTheGuesses(t *testing.T) {
	b := start(t, say())
	newHandset(t, b, 2).connect() // the guard is there now
	p := newHandset(t, b, 1)
	p.dial()
	point, err := p.key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	pair := wire.Pair{Code: "000000", Name: "Anna", Key: base64url(point)}
	for range 4 {
		p.send(wire.TypePair, pair)
		p.wantError("pairing_refused")
	}
	p.send(wire.TypePair, pair)
	p.wantError("pairing_busy")
	p.dial() // another connection of the same device
	p.send(wire.TypePair, pair)
	p.wantError("pairing_busy")
}

// D9, cases "DNS rebinding": a foreign name is refused before the upgrade.
func TestForeignNamesAreRefused(t *testing.T) {
	b := start(t, say(), func(o *gateway.Options) { o.Config.Gateway.Hosts = []string{"assent.local", "box.lan:9000"} })
	_, port, _ := net.SplitHostPort(b.addr)
	for name, c := range map[string]struct {
		host   string
		origin []string
		want   int
	}{
		"address":              {b.addr, []string{"http://" + b.addr}, 101},
		"configured":           {"assent.local:" + port, []string{"http://assent.local:" + port}, 101},
		"configured with port": {"box.lan:9000", []string{"http://box.lan:9000"}, 101},
		"loopback by name":     {"localhost:" + port, []string{"http://localhost:" + port}, 101},
		"no origin":            {b.addr, nil, 101},
		"rebinding":            {"evil.example", []string{"http://evil.example"}, 403},
		"rebinding with port":  {"evil.example:" + port, []string{"http://evil.example:" + port}, 403},
		"foreign origin":       {b.addr, []string{"http://evil.example"}, 403},
		"null origin":          {b.addr, []string{"null"}, 403},
		"other scheme":         {b.addr, []string{"https://" + b.addr}, 403},
		"other port":           {b.addr, []string{"http://127.0.0.1:1"}, 403},
		"two origins":          {b.addr, []string{"http://" + b.addr, "http://evil.example"}, 403},
		"another address":      {"127.0.0.2:" + port, []string{"http://127.0.0.2:" + port}, 403},
		"suffix":               {"assent.local.evil.example", nil, 403},
		"other port of name":   {"box.lan:9001", nil, 403},
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"/ws", "/", "/healthz"} {
				req, err := http.NewRequest("GET", "http://"+b.addr+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Host = c.host
				req.Header["Origin"] = c.origin
				want := c.want
				if path == "/ws" {
					req.Header.Set("Connection", "Upgrade")
					req.Header.Set("Upgrade", "websocket")
					req.Header.Set("Sec-WebSocket-Version", "13")
					req.Header.Set("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==")
				} else if want == 101 {
					want = 200
				}
				resp, err := http.DefaultTransport.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if resp.StatusCode != want {
					t.Errorf("%s: %d, want %d", path, resp.StatusCode, want)
				}
			}
		})
	}
}
