package gateway

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"assent.home.arpa/appliance/conversation"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/watchdog"
	"assent.home.arpa/appliance/web"
	"assent.home.arpa/appliance/wire"
)

// maxPhones bounds the phones that are kept in memory. The guard pairs fewer.
const maxPhones = 64

// notThisBox answers whoever names another machine.
const notThisBox = "this is not an address of the box; use the one that its screen shows, or add the name to gateway.hosts"

// How long the gateway's parts may take over one piece of honest work.
const patience = 30 * time.Second

// turns is what the gateway needs of the conversations.
type turns interface {
	Ask(context.Context, conversation.Turn, conversation.Emit) error
	Cancel(slot uint32, conversation ipc.ID) bool
	Snapshot(slot uint32, conversation ipc.ID) (wire.Snapshot, bool)
}

type server struct {
	opts    Options
	log     *slog.Logger
	guard   *guard
	turns   turns
	session string // names this start in welcomes: sequence numbers of another mean nothing here
	page    http.Handler

	offences offences
	guesses  guesses
	inboxes  chan struct{} // holds one: inboxes have changed

	work sync.WaitGroup // turns, pairings, connections and reports

	mu     sync.Mutex
	phones map[uint32]*phone
	open   map[*socket]bool
	closed bool
}

func newServer(o Options, page http.Handler) *server {
	var id [8]byte
	rand.Read(id[:]) // never fails (crypto/rand)
	return &server{
		opts: o, log: o.Log, session: hex.EncodeToString(id[:]), page: page,
		offences: offences{open: map[uint32]*tally{}}, guesses: guesses{wait: map[netip.Addr]guesser{}}, phones: map[uint32]*phone{}, open: map[*socket]bool{},
		inboxes: make(chan struct{}, 1),
	}
}

// serve answers on l until ctx ends, and returns when every connection and turn has.
func (s *server) serve(ctx context.Context, l net.Listener) error {
	h := &http.Server{
		Handler:           s.handler(ctx),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    8 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		s.hangUpAll(websocket.CloseGoingAway, "the box restarts")
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if h.Shutdown(grace) != nil {
			h.Close()
		}
	})
	err := h.Serve(l)
	if stop() { // it failed by itself
		h.Close()
		s.hangUpAll(websocket.CloseInternalServerErr, "")
	} else {
		<-stopped
	}
	s.work.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("gateway: serve: %w", err)
}

// vital lists what must answer for the gateway to be alive. Without a guard and without a model it is.
func (s *server) vital(door *watchdog.Listener) []watchdog.Part {
	return []watchdog.Part{
		{Name: "port", Patience: patience, Answers: door.Answers},
		{Name: "phones", Patience: patience, Answers: func(context.Context) { s.all() }},
	}
}

func (s *server) handler(ctx context.Context) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /ws", func(w http.ResponseWriter, r *http.Request) { s.upgrade(ctx, w, r) })
	mux.Handle("GET /", s.page)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !allowed(r, s.opts.Config.Gateway.Hosts) {
			http.Error(w, notThisBox, http.StatusForbidden)
			return
		}
		web.Protect(w.Header())
		mux.ServeHTTP(w, r)
	})
}

func (s *server) upgrade(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	up := websocket.Upgrader{
		HandshakeTimeout: 10 * time.Second,
		ReadBufferSize:   4 << 10,
		WriteBufferSize:  4 << 10,
		CheckOrigin:      func(r *http.Request) bool { return allowed(r, s.opts.Config.Gateway.Hosts) },
	}
	ws, err := up.Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has answered
	}
	c := newSocket(ws)
	if !s.enter(c) {
		ws.Close()
		return
	}
	defer s.leave(c)
	rand.Read(c.nonce[:])
	c.send("", wire.TypeChallenge, wire.Challenge{Nonce: encodeBinary(c.nonce[:]), Box: s.opts.Config.Box.Name})
	var writer sync.WaitGroup
	defer writer.Wait()
	writer.Go(c.write)
	c.read(func(b []byte) { s.frame(ctx, c, b) })
	if c.phone != nil {
		c.phone.leave(c)
	}
}

func (s *server) enter(c *socket) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.work.Add(1)
	s.open[c] = true
	return true
}

func (s *server) leave(c *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
	s.work.Done()
}

// start runs f in a goroutine that serve waits for.
func (s *server) start(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.work.Go(f)
	return true
}

func (s *server) hangUpAll(code int, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for c := range s.open {
		c.close(code, why)
	}
}

// known returns what is kept of a phone whose key was proved.
func (s *server) known(slot uint32) (*phone, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.phones[slot]
	if p == nil {
		if len(s.phones) >= maxPhones {
			return nil, false
		}
		p = newPhone(slot)
		s.phones[slot] = p
	}
	return p, true
}

func (s *server) all() []*phone {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*phone, 0, len(s.phones))
	for _, p := range s.phones {
		out = append(out, p)
	}
	return out
}

// guardNotice passes on what the guard says has changed.
func (s *server) guardNotice(n ipc.Notice) {
	if n.Class == ipc.NoticePhoneRemoved {
		s.remove(n.Slot)
		return
	}
	if n.Class == ipc.NoticeInbox {
		s.inboxChanged()
		return
	}
	words, ok := notice(n.Class)
	if !ok {
		return
	}
	for _, p := range s.all() {
		if n.Slot == 0 || n.Slot == p.slot {
			p.push("", wire.TypeNotice, words)
		}
	}
}

// remove forgets a phone whose pairing was revoked, and ends what it had open.
func (s *server) remove(slot uint32) {
	s.mu.Lock()
	p := s.phones[slot]
	delete(s.phones, slot)
	s.mu.Unlock()
	if p == nil {
		return
	}
	p.hangUp(closeRemoved, string(codeNotPaired))
	p.abort()
}

// guardState tells phones that the guard went or came. When it comes they have to prove themselves anew: one of them may
// have been removed meanwhile.
func (s *server) guardState(connected bool) {
	for _, p := range s.all() {
		if connected {
			p.push("", wire.TypeNotice, wire.Notice{Class: "guard_back", Message: "The box answers requests again."})
			p.hangUp(websocket.CloseServiceRestart, "say hello again")
		} else {
			p.push("", wire.TypeNotice, wire.Notice{Class: "guard_lost", Message: "The part of the box that guards requests is not answering. It is tried again by itself."})
		}
	}
}
