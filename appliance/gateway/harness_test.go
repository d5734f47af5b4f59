package gateway_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/config"
	"assent.home.arpa/appliance/conversation"
	"assent.home.arpa/appliance/gateway"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
)

// script is a fake of the conversations: what a turn does is the test's.
type script struct {
	run func(context.Context, conversation.Turn, conversation.Emit) error

	mu    sync.Mutex
	stops map[ipc.ID]context.CancelFunc
	snap  map[ipc.ID]wire.Snapshot
}

func (s *script) Ask(ctx context.Context, t conversation.Turn, emit conversation.Emit) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	s.stops[t.Conversation] = cancel
	s.mu.Unlock()
	return s.run(ctx, t, emit)
}

// until waits for what the test does next, or for the end of the turn: the gateway waits for its turns, so one that went
// on after its test has failed would hold up everything.
func until[T any](ctx context.Context, c <-chan T) {
	select {
	case <-c:
	case <-ctx.Done():
	}
}

func (s *script) Cancel(_ uint32, id ipc.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	stop := s.stops[id]
	if stop == nil {
		return false
	}
	stop()
	return true
}

func (s *script) Snapshot(_ uint32, id ipc.ID) (wire.Snapshot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap, ok := s.snap[id]
	return snap, ok
}

func (s *script) keep(id ipc.ID, snap wire.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snap[id] = snap
}

// box is a running gateway.
type box struct {
	guard  *fakeGuard
	turns  *script
	addr   string
	dialer *websocket.Dialer
	cancel context.CancelFunc
	done   chan error
}

func start(t *testing.T, run func(context.Context, conversation.Turn, conversation.Emit) error, adjust ...func(*gateway.Options)) *box {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &box{
		guard: newFakeGuard(t), addr: l.Addr().String(), dialer: websocket.DefaultDialer, done: make(chan error, 1),
		turns: &script{run: run, stops: map[ipc.ID]context.CancelFunc{}, snap: map[ipc.ID]wire.Snapshot{}},
	}
	cfg := config.Default()
	cfg.Box.Name = "Kitchen box"
	o := gateway.Options{
		Config: cfg, Listener: l, Guard: b.guard.path, StateDir: t.TempDir(), Clock: clock.System(), ModelLabel: "Test model",
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	for _, f := range adjust {
		f(&o)
	}
	var ctx context.Context
	ctx, b.cancel = context.WithCancel(context.Background())
	go func() { b.done <- gateway.RunWith(ctx, o, b.turns) }()
	t.Cleanup(func() { b.cancel(); <-b.done })
	return b
}

// pipes is a listener whose connections hold nothing back: what a phone has not read, the gateway has not written.
type pipes struct {
	net.Listener // for its address
	conns        chan net.Conn
	closed       chan struct{}
	once         sync.Once
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

func (l *pipes) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	l.conns <- far
	return near, nil
}

// startOnPipes is start, over pipes.
func startOnPipes(t *testing.T, run func(context.Context, conversation.Turn, conversation.Emit) error) *box {
	t.Helper()
	l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	b := start(t, run, func(o *gateway.Options) {
		l.Listener = o.Listener
		o.Listener = l
	})
	b.addr = "assent.local"
	b.dialer = &websocket.Dialer{NetDialContext: l.dial}
	return b
}

// stop ends the gateway and returns what Run returned.
func (b *box) stop() error {
	b.cancel()
	err := <-b.done
	b.done <- err
	return err
}

// handset is a phone, one connection at a time.
type handset struct {
	t       *testing.T
	box     *box
	slot    uint32
	key     *ecdsa.PrivateKey
	counter uint64

	ws      *websocket.Conn
	nonce   [32]byte
	ids     int
	session string
	last    uint64
}

// frame is a frame from the gateway.
type frame struct {
	V    int             `json:"v"`
	Seq  uint64          `json:"seq"`
	Re   string          `json:"re"`
	Type wire.Type       `json:"type"`
	Data json.RawMessage `json:"data"`
}

func (f frame) code() string {
	var e wire.Error
	json.Unmarshal(f.Data, &e)
	return string(e.Code)
}

func decode[T any](t *testing.T, f frame) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(f.Data, &v); err != nil {
		t.Fatalf("%s: %v", f.Type, err)
	}
	return v
}

func newHandset(t *testing.T, b *box, slot uint32) *handset {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	b.guard.paired(slot, "phone "+strconv.Itoa(int(slot)), key)
	return &handset{t: t, box: b, slot: slot, key: key}
}

// dial connects and reads the challenge.
func (p *handset) dial() *handset {
	p.t.Helper()
	ws, _, err := p.box.dialer.Dial("ws://"+p.box.addr+"/ws", http.Header{"Origin": {"http://" + p.box.addr}})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { ws.Close() })
	p.ws = ws
	c := decode[wire.Challenge](p.t, p.want(wire.TypeChallenge))
	b, err := base64.RawURLEncoding.DecodeString(c.Nonce)
	if err != nil || len(b) != 32 {
		p.t.Fatalf("nonce %q", c.Nonce)
	}
	p.nonce = [32]byte(b)
	return p
}

func (p *handset) sign(b []byte) string {
	sum := sha256.Sum256(b)
	r, s, err := ecdsa.Sign(rand.Reader, p.key, sum[:])
	if err != nil {
		p.t.Fatal(err)
	}
	return base64url(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
}

// connect dials and says hello, and reads on to what the conversation is.
func (p *handset) connect(conversation ...string) wire.Welcome {
	p.t.Helper()
	w := p.hello(conversation...)
	if !w.Resumed {
		for p.next().Type != wire.TypeSnapshot { // after the notices that still hold
		}
	}
	return w
}

// hello dials and says hello; the guard may be a moment away.
func (p *handset) hello(conversation ...string) wire.Welcome {
	p.t.Helper()
	for {
		p.dial()
		h := map[string]any{"slot": p.slot, "sig": p.sign(wire.AuthBytes(p.slot, p.nonce)), "last": p.last, "session": p.session}
		if len(conversation) > 0 {
			h["conversation"] = conversation[0]
		}
		p.send(wire.TypeHello, h)
		f := p.next()
		if f.Type == wire.TypeError && f.code() == "guard_unavailable" {
			p.ws.Close()
			continue
		}
		if f.Type != wire.TypeWelcome {
			p.t.Fatalf("hello was answered with %s %s", f.Type, f.Data)
		}
		w := decode[wire.Welcome](p.t, f)
		p.session, p.counter = w.Session, max(p.counter, w.Counter)
		if !w.Resumed {
			p.last = 0
		}
		return w
	}
}

func (p *handset) send(typ wire.Type, data any) string {
	p.t.Helper()
	p.ids++
	id := "c" + strconv.Itoa(p.ids)
	raw, err := json.Marshal(data)
	if err != nil {
		p.t.Fatal(err)
	}
	p.raw(wire.Upstream{V: 1, ID: id, Type: typ, Data: raw})
	return id
}

func (p *handset) raw(v any) {
	p.t.Helper()
	if err := p.ws.WriteJSON(v); err != nil {
		p.t.Fatal(err)
	}
}

func (p *handset) askData(conversation, text string) wire.Ask {
	p.counter++
	id, _ := hex.DecodeString(conversation)
	return wire.Ask{
		Conversation: conversation, Counter: p.counter, Text: text,
		Sig: p.sign(wire.AskBytes(p.slot, [16]byte(id), p.counter, wire.TextDigest(text))),
	}
}

func (p *handset) ask(conversation, text string) string {
	p.t.Helper()
	return p.send(wire.TypeAsk, p.askData(conversation, text))
}

// receive reads one frame, or fails with the reason for which the connection ended. Numbered frames must have no gaps.
func (p *handset) receive() (frame, error) {
	p.t.Helper()
	// A frame that never comes should say where it was missed.
	if err := p.ws.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return frame{}, err
	}
	_, b, err := p.ws.ReadMessage()
	if err != nil {
		return frame{}, err
	}
	var f frame
	if err := json.Unmarshal(b, &f); err != nil {
		p.t.Fatal(err)
	}
	switch {
	case f.Type == wire.TypeSnapshot:
		p.last = f.Seq
	case f.Seq != 0:
		if f.Seq != p.last+1 {
			p.t.Fatalf("frame %d follows %d", f.Seq, p.last)
		}
		p.last = f.Seq
	}
	return f, nil
}

func (p *handset) next() frame {
	p.t.Helper()
	f, err := p.receive()
	if err != nil {
		p.t.Fatal(err)
	}
	return f
}

func (p *handset) want(typ wire.Type) frame {
	p.t.Helper()
	f := p.next()
	if f.Type != typ {
		p.t.Fatalf("got %s %s, want %s", f.Type, f.Data, typ)
	}
	return f
}

func (p *handset) wantError(code string) frame {
	p.t.Helper()
	f := p.want(wire.TypeError)
	if f.code() != code {
		p.t.Fatalf("got the error %s, want %s", f.Data, code)
	}
	if decode[wire.Error](p.t, f).Message == "" {
		p.t.Errorf("%s says nothing to a person", code)
	}
	return f
}

// closed reads until the connection ends and returns the close code.
func (p *handset) closed() int {
	p.t.Helper()
	for {
		if _, err := p.receive(); err != nil {
			var c *websocket.CloseError
			if errors.As(err, &c) {
				return c.Code
			}
			return 0
		}
	}
}

const (
	talkA = "000102030405060708090a0b0c0d0e0f"
	talkB = "ffeeddccbbaa99887766554433221100"
)

// say is a turn that answers with prose.
func say(words ...string) func(context.Context, conversation.Turn, conversation.Emit) error {
	return func(_ context.Context, t conversation.Turn, emit conversation.Emit) error {
		id := t.Conversation.String()
		emit(wire.TypeTurn, wire.Turn{Conversation: id, Turn: "t1", Text: t.Text})
		for _, w := range words {
			emit(wire.TypeText, wire.Text{Conversation: id, Turn: "t1", Text: w})
		}
		emit(wire.TypeTurnEnd, wire.TurnEnd{Conversation: id, Turn: "t1", Reason: "complete"})
		return nil
	}
}

func parseID[ID ~[16]byte](s string) ID {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return ID(b)
}

func base64url(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
