package gateway

import (
	"encoding/json"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/time/rate"

	"assent.home.arpa/appliance/wire"
)

// Bounds of one connection.
const (
	frameRate    = 20 // frames a second, in the long run
	frameBurst   = 60
	maxOffences  = 32 // frames that broke a rule before the connection is closed
	directQueue  = 32
	writeTimeout = 10 * time.Second
	pingEvery    = 20 * time.Second
	pongWithin   = 60 * time.Second
	helloWithin  = 10 * time.Minute // somebody may be typing the pairing code
)

// Close codes of our own (RFC 6455 section 7.4.2).
const (
	closeReplaced = 4001 // a newer connection of the same phone took its place
	closeRemoved  = 4003 // the phone is no longer paired
	closeBehind   = 4008 // it did not read what it was sent
)

// socket is one connection. Its reader runs in the HTTP handler's goroutine, its writer in one of its own; only the
// writer writes.
type socket struct {
	ws     *websocket.Conn
	nonce  [32]byte
	frames *rate.Limiter

	direct chan []byte     // frames for this connection alone
	attach chan attachment // once, when the phone is known
	wake   chan struct{}   // the ring has grown
	done   chan struct{}

	closing sync.Once
	code    int
	why     string

	phone    *phone // set by the reader when the phone is known; used by the reader alone
	pairing  chan struct{}
	offences int
}

// attachment makes the writer follow a phone's ring.
type attachment struct {
	first  [][]byte // sent before anything of the ring
	phone  *phone
	cursor uint64
}

func newSocket(ws *websocket.Conn) *socket {
	return &socket{
		ws:      ws,
		frames:  rate.NewLimiter(frameRate, frameBurst),
		direct:  make(chan []byte, directQueue),
		attach:  make(chan attachment, 1),
		wake:    make(chan struct{}, 1),
		done:    make(chan struct{}),
		pairing: make(chan struct{}, 1),
	}
}

func (s *socket) nudge() {
	select {
	case s.wake <- struct{}{}:
	default: // it has been told already
	}
}

// close ends the connection with a reason that the phone can read. It may be called from anywhere, and does not wait.
func (s *socket) close(code int, why string) {
	s.closing.Do(func() {
		s.code, s.why = code, why
		close(s.done)
	})
}

// send queues a frame for this connection alone. A phone that does not even read the answers to its own frames is cut off.
func (s *socket) send(re string, t wire.Type, data any) {
	select {
	case s.direct <- encode(re, t, data):
	default:
		s.close(closeBehind, "read faster")
	}
}

func encode(re string, t wire.Type, data any) []byte {
	b, err := json.Marshal(wire.Downstream{V: wire.Version, Re: re, Type: t, Data: data})
	if err != nil {
		panic("gateway: internal error: encode " + string(t) + ": " + err.Error())
	}
	return b
}

// offend counts a broken rule, says which, and hangs up on who keeps at it.
func (s *socket) offend(re string, e wire.Error) {
	s.offences++
	if s.offences > maxOffences {
		s.close(websocket.ClosePolicyViolation, string(e.Code))
		return
	}
	s.send(re, wire.TypeError, e)
}

// write is the writer. It returns when the connection is over, and the connection is over when it returns.
func (s *socket) write() {
	defer s.ws.Close()
	defer s.close(websocket.CloseAbnormalClosure, "")
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	var at attachment
	for {
		select {
		case <-s.done:
			msg := websocket.FormatCloseMessage(s.code, s.why)
			// The peer may be gone; there is nobody to tell that it could not be told.
			_ = s.ws.WriteControl(websocket.CloseMessage, msg, time.Now().Add(time.Second))
			return
		case b := <-s.direct:
			if !s.emit(b) {
				return
			}
		case at = <-s.attach:
			if !s.emit(at.first...) || !s.follow(&at) {
				return
			}
		case <-s.wake:
			if at.phone != nil && !s.follow(&at) {
				return
			}
		case <-ping.C:
			if s.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeTimeout)) != nil {
				return
			}
		}
	}
}

// follow sends what the ring holds beyond the cursor.
func (s *socket) follow(at *attachment) bool {
	frames, ok := at.phone.after(at.cursor)
	if !ok {
		s.close(closeBehind, "read faster")
		return true // the loop says goodbye
	}
	at.cursor += uint64(len(frames))
	return s.emit(frames...)
}

func (s *socket) emit(frames ...[]byte) bool {
	for _, b := range frames {
		if s.ws.SetWriteDeadline(time.Now().Add(writeTimeout)) != nil || s.ws.WriteMessage(websocket.TextMessage, b) != nil {
			return false
		}
	}
	return true
}

// read hands every text frame that keeps to the rate to handle, until the connection ends.
func (s *socket) read(handle func([]byte)) {
	s.ws.SetReadLimit(wire.MaxFrame)
	start := time.Now()
	extend := func() error {
		deadline := time.Now().Add(pongWithin)
		if last := start.Add(helloWithin); s.phone == nil && last.Before(deadline) {
			deadline = last
		}
		return s.ws.SetReadDeadline(deadline)
	}
	s.ws.SetPongHandler(func(string) error { return extend() })
	for {
		if extend() != nil {
			return
		}
		kind, b, err := s.ws.ReadMessage()
		if err != nil {
			s.close(readClose(err))
			return
		}
		select {
		case <-s.done:
			return
		default:
		}
		switch {
		case !s.frames.Allow():
			s.offend("", retry(codeTooFast, "this phone sends too much at once; wait a moment"))
		case kind != websocket.TextMessage:
			s.offend("", badFrame(errors.New("not a text frame")))
		default:
			handle(b)
		}
	}
}

func readClose(err error) (int, string) {
	var timeout net.Error
	switch {
	case errors.Is(err, websocket.ErrReadLimit):
		return websocket.CloseMessageTooBig, "a frame may have 32 KiB"
	case errors.As(err, &timeout) && timeout.Timeout():
		return websocket.CloseGoingAway, "silent for too long"
	}
	return websocket.CloseNormalClosure, ""
}
