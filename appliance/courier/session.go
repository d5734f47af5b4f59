package courier

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"time"

	"assent.home.arpa/appliance/deadline"
	"assent.home.arpa/appliance/grant"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
)

const (
	// maxOpen bounds the calls of one connection that run or wait.
	maxOpen = 16
	// maxLife bounds how far ahead a deadline may lie. The longest capability takes a minute.
	maxLife = 10 * time.Minute
	// maxSpent bounds the memory of used grants. Those whose deadline is over are forgotten: they are refused anyway.
	maxSpent = 4096
)

// errAborted ends a call because the guard said so, or went away.
var errAborted = errors.New("courier: the guard gave up")

// session is one connection of the guard. Grants live no longer.
type session struct {
	*courier
	conn      *ipc.Conn
	key       ed25519.PublicKey
	challenge [32]byte
	spent     map[capabilities.InvocationID]time.Duration // deadlines; of the receiving goroutine alone

	mu    sync.Mutex
	calls map[capabilities.InvocationID]context.CancelCauseFunc
}

// serve speaks with the guard until it goes. It returns when every call has ended.
func (c *courier) serve(ctx context.Context, conn *ipc.Conn) error {
	defer conn.Close()
	key, err := ReadKey(c.GrantKeyFile)
	if err != nil {
		return err
	}
	s := &session{
		courier: c, conn: conn, key: key,
		spent: map[capabilities.InvocationID]time.Duration{}, calls: map[capabilities.InvocationID]context.CancelCauseFunc{},
	}
	if _, err := rand.Read(s.challenge[:]); err != nil {
		return fmt.Errorf("courier: challenge: %w", err)
	}
	if err := conn.Send(0, &ipc.Challenge{Nonce: s.challenge, Start: c.start}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var open sync.WaitGroup
	defer open.Wait()
	defer cancel(errAborted)
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	for {
		id, m, err := conn.Receive()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		switch m := m.(type) {
		case *ipc.Execute:
			s.execute(ctx, &open, id, m)
		case *ipc.Abort:
			s.abort(m.Inv)
		default:
			return fmt.Errorf("%w: kind %d", ipc.ErrProtocol, m.Kind())
		}
	}
}

// execute admits a grant and starts its call. It does not block, and it decides on grants one by one in the order in which
// they came, so that the second use of one is always the second.
func (s *session) execute(ctx context.Context, open *sync.WaitGroup, id uint64, m *ipc.Execute) {
	begin := s.Clock.Boot()
	claims, payload, err := s.admit(m.Grant, begin)
	if err != nil {
		clear(m.Secret)
		s.Log.Error("grant refused", "error", err)
		s.reply(id, &ipc.Error{Code: capabilities.CodeGrantRefused, Message: err.Error()})
		return
	}
	ctx, cancel := deadline.With(ctx, s.Clock, claims.Deadline)
	s.mu.Lock()
	s.calls[claims.Inv] = cancel
	s.mu.Unlock()
	open.Go(func() {
		defer func() {
			cancel(nil)
			s.mu.Lock()
			delete(s.calls, claims.Inv)
			s.mu.Unlock()
		}()
		s.reply(id, s.perform(ctx, &errand{claims: claims, job: ipc.Job{Claims: payload, Secret: m.Secret}, begin: begin}))
	})
}

// admit decides whether a grant may be used, and uses it up.
func (s *session) admit(signed []byte, now time.Duration) (grant.Claims, []byte, error) {
	claims, payload, err := grant.Verify(s.key, signed)
	if err != nil {
		return grant.Claims{}, nil, errors.New("this is not a grant that the guard signed")
	}
	if _, used := s.spent[claims.Inv]; used {
		return grant.Claims{}, nil, errors.New("the grant has been used")
	}
	switch {
	case claims.Challenge != s.challenge:
		return grant.Claims{}, nil, errors.New("the grant was made for another connection")
	case claims.BootID != s.BootID:
		return grant.Claims{}, nil, errors.New("the grant was made in another boot")
	case claims.Deadline <= now:
		return grant.Claims{}, nil, errors.New("the grant came after its deadline")
	case claims.Deadline > now+maxLife:
		return grant.Claims{}, nil, fmt.Errorf("the grant's deadline is over %v ahead", maxLife)
	case s.Workers[claims.Class] == "":
		return grant.Claims{}, nil, fmt.Errorf("there is no worker of class %s", claims.Class)
	}
	if len(s.spent) >= maxSpent {
		maps.DeleteFunc(s.spent, func(_ capabilities.InvocationID, over time.Duration) bool { return over <= now })
	}
	if len(s.spent) >= maxSpent {
		return grant.Claims{}, nil, errors.New("too many grants were used in a short time")
	}
	s.spent[claims.Inv] = claims.Deadline
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.calls) >= maxOpen {
		return grant.Claims{}, nil, fmt.Errorf("%d calls are open already", maxOpen)
	}
	return claims, payload, nil
}

func (s *session) abort(inv capabilities.InvocationID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel, ok := s.calls[inv]; ok {
		cancel(errAborted)
	}
}

func (s *session) reply(id uint64, m ipc.Message) {
	if err := s.conn.Send(id, m); err != nil {
		// The guard is gone or does not read. It counts the call as interrupted; there is nobody to tell.
		s.Log.Warn("answer not delivered", "error", err)
		s.conn.Close()
	}
}
