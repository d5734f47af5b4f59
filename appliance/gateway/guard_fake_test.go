package gateway_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"math/big"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/capabilities"
)

// fakeGuard checks signatures and counters as the guard does, and keeps what it was told.
type fakeGuard struct {
	path string

	mu       sync.Mutex
	keys     map[uint32]*ecdsa.PublicKey
	names    map[uint32]string
	counters map[uint32]uint64
	heard    []ipc.Message
	frozen   bool
	trouble  ipc.AuditTrouble
	inbox    []ipc.Unknown // of every phone
	seal     []byte
	root     []byte
	head     uint64
	blank    bool // the display does not answer
	code     string
	pairing  []byte    // the key of the last phone that wants to be paired
	accept   chan bool // somebody at the box, who answers a pairing
	changed  chan struct{}
	conn     *ipc.Conn
	stop     func()
	holdAsk  chan struct{} // where not nil, an Ask waits for it
	press    chan []byte   // somebody at the box approves a proposal, whose result is this body
}

func newFakeGuard(t *testing.T) *fakeGuard {
	t.Helper()
	g := &fakeGuard{
		path: filepath.Join(t.TempDir(), "guard.sock"), keys: map[uint32]*ecdsa.PublicKey{}, names: map[uint32]string{},
		counters: map[uint32]uint64{}, code: "482913", accept: make(chan bool), changed: make(chan struct{}), press: make(chan []byte),
	}
	g.start(t)
	t.Cleanup(func() { g.stop() })
	return g
}

func (g *fakeGuard) start(t *testing.T) {
	t.Helper()
	l, err := ipc.Listen(g.path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conn := ipc.NewConn(c)
			g.mu.Lock()
			g.conn = conn
			g.mu.Unlock()
			done.Go(func() { ipc.Serve(ctx, conn, g.handle) })
		}
	})
	g.stop = sync.OnceFunc(func() {
		cancel()
		l.Close()
		done.Wait()
	})
}

func (g *fakeGuard) notice(t *testing.T, n ipc.Notice) {
	t.Helper()
	g.mu.Lock()
	conn := g.conn
	g.mu.Unlock()
	if err := conn.Send(0, &n); err != nil {
		t.Fatal(err)
	}
}

func (g *fakeGuard) handle(ctx context.Context, m ipc.Message, reply func(ipc.Message) error) {
	switch q := m.(type) {
	case *ipc.Hello:
		reply(&ipc.Welcome{})
		return
	case *ipc.StatusRequest:
		g.mu.Lock()
		defer g.mu.Unlock()
		reply(&ipc.Status{Frozen: g.frozen, HeadCode: "3F7QK2XZ", Display: !g.blank, Audit: g.trouble == 0, Courier: true, Trouble: g.trouble, Seal: g.seal, Head: g.head, Root: g.root})
		return
	case *ipc.InboxRequest:
		g.mu.Lock()
		defer g.mu.Unlock()
		reply(&ipc.Inbox{Items: g.inbox})
		return
	case *ipc.Seen:
		g.mu.Lock()
		ok := g.verify(q.Slot, wire.SeenBytes(q.Slot, q.Inv), q.Sig)
		if ok {
			g.inbox = slices.DeleteFunc(slices.Clone(g.inbox), func(u ipc.Unknown) bool { return u.Inv == q.Inv })
		}
		left := g.inbox
		g.mu.Unlock()
		if !ok {
			reply(&ipc.Error{Code: "bad_signature", Message: "this phone's signature does not fit"})
			break
		}
		reply(&ipc.Inbox{Items: left})
	case *ipc.Cable:
		g.mu.Lock()
		ok := g.verify(q.Slot, wire.CableBytes(q.Slot, q.Counter), q.Sig)
		g.mu.Unlock()
		if !ok {
			reply(&ipc.Error{Code: "bad_signature", Message: "this phone's signature does not fit"})
			break
		}
		reply(&ipc.CableReply{Seconds: 300})
	case *ipc.Pair:
		reply(g.pair(ctx, q))
	case *ipc.Auth:
		reply(g.auth(q))
	case *ipc.CatalogRequest:
		reply(catalog())
	case *ipc.Propose:
		reply(&ipc.Pending{Inv: parseID[capabilities.InvocationID](invocation), Name: "web.search", Version: 1, Revision: "mediawiki/1", Title: "Search Wikipedia for", Text: "eiffel tower", Destination: "wikipedia.org", Pages: 2})
		select {
		case body := <-g.press:
			reply(&ipc.Outcome{Inv: parseID[capabilities.InvocationID](invocation), Status: capabilities.Done, Stage: capabilities.StageRecord, Name: "web.search", Version: 1, Revision: "mediawiki/1", Body: body, Retrieved: 1_793_707_200_000})
		case <-ctx.Done():
		}
	case *ipc.Ask:
		if g.holdAsk != nil {
			until(ctx, g.holdAsk)
		}
		reply(g.ask(q))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.heard = append(g.heard, m)
	close(g.changed)
	g.changed = make(chan struct{})
}

func catalog() *ipc.Catalog {
	const shape = `{"type":"object","required":["citations"],"additionalProperties":false,"properties":{"citations":{"type":"array","items":{"type":"object"}}}}`
	return &ipc.Catalog{
		Entries: []ipc.CatalogEntry{{
			Name: "web_search__v1", Version: 1, Description: "Search the web.",
			Parameters: []byte(`{"type":"object","properties":{"query":{"type":"string"}}}`),
		}},
		PerTurn: map[string]int{"web_search__v1": 2},
		Results: map[string]ipc.CatalogResults{"web_search__v1": {Shape: []byte(shape), Bytes: 1 << 16}},
	}
}

// sentKey is the last key that the gateway passed on.
func (g *fakeGuard) sentKey() []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pairing
}

func (g *fakeGuard) pair(ctx context.Context, q *ipc.Pair) *ipc.PairReply {
	g.mu.Lock()
	g.pairing = q.Key
	g.mu.Unlock()
	if q.Code != g.code {
		return &ipc.PairReply{Code: "pairing_refused", Message: "this is not the code on the box's screen"}
	}
	select {
	case ok := <-g.accept:
		if !ok {
			return &ipc.PairReply{}
		}
	case <-ctx.Done():
		return &ipc.PairReply{}
	}
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), q.Key)
	if err != nil {
		return &ipc.PairReply{Code: "bad_key", Message: "not a key"}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	slot := uint32(len(g.keys) + 1)
	g.keys[slot], g.names[slot] = key, q.Name
	return &ipc.PairReply{OK: true, Slot: slot, Name: q.Name, Role: ipc.RoleAdult}
}

func (g *fakeGuard) auth(q *ipc.Auth) *ipc.AuthReply {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.verify(q.Slot, wire.AuthBytes(q.Slot, q.Nonce), q.Sig) {
		return &ipc.AuthReply{}
	}
	return &ipc.AuthReply{OK: true, Name: g.names[q.Slot], Role: ipc.RoleAdult, Counter: g.counters[q.Slot]}
}

func (g *fakeGuard) ask(q *ipc.Ask) *ipc.AskReply {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !g.verify(q.Slot, wire.AskBytes(q.Slot, q.Conversation, q.Counter, q.TextDigest), q.Sig):
		return &ipc.AskReply{Code: "bad_signature", Message: "the question is not signed by this phone"}
	case q.Counter <= g.counters[q.Slot]:
		return &ipc.AskReply{Code: "old_counter", Message: "this question was asked before"}
	}
	g.counters[q.Slot] = q.Counter
	var id ipc.ID
	rand.Read(id[:])
	return &ipc.AskReply{Ask: id}
}

func (g *fakeGuard) verify(slot uint32, msg, sig []byte) bool {
	key := g.keys[slot]
	sum := sha256.Sum256(msg)
	return key != nil && len(sig) == 64 && ecdsa.Verify(key, sum[:], new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:]))
}

// paired adds a phone without anybody at the box.
func (g *fakeGuard) paired(slot uint32, name string, key *ecdsa.PrivateKey) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.keys[slot], g.names[slot] = &key.PublicKey, name
}

func (g *fakeGuard) unpair(slot uint32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.keys, slot)
}

func (g *fakeGuard) setInbox(items ...ipc.Unknown) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inbox = items
}

// await returns the messages of one kind, once there are n of them.
func await[M ipc.Message](t *testing.T, g *fakeGuard, n int) []M {
	t.Helper()
	for {
		g.mu.Lock()
		changed := g.changed
		var out []M
		for _, m := range g.heard {
			if m, ok := m.(M); ok {
				out = append(out, m)
			}
		}
		g.mu.Unlock()
		if len(out) >= n {
			return out
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatalf("the guard heard %d messages, want %d", len(out), n)
		}
	}
}
