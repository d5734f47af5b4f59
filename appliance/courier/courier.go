// Package courier spends grants: it verifies one, opens the connection that it names and hands both to a fresh worker.
//
// The courier is the only role that can connect outwards, and it can do nothing of its own: without a grant that the guard
// signed for this very connection between guard and courier, it resolves no name and opens no socket. It holds no key but
// the public half of the guard's, never reads what comes back on a connection, and keeps a household secret no longer than
// it takes to hand it on.
//
// # Answers
//
// Each ipc.Execute gets exactly one answer. An ipc.Error means that no worker got the job, so that certainly nothing was
// sent: grant_refused for a grant that is forged, altered, used, late, of another connection or of another boot; unreachable
// where the destination could not be connected to, or where its name leads to an address that its class forbids. Once a
// worker has the job there is an ipc.Result. A worker that dies, or says nothing until the deadline, is Unknown unless its
// class can have no effect.
//
// # Use
//
// A grant is used up by being presented, whether or not anything comes of it. Calls that somebody approved may have an
// effect and run one at a time; automatic ones only read, and run four at a time (C43). Both wait no longer than their
// deadline.
package courier

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/watchdog"
	"assent.home.arpa/capabilities"
)

const (
	// maxSessions bounds the connections of the guard. It has one; a second is there while it restarts.
	maxSessions = 4
	// maxReads and maxEffects bound the calls that run at the same time.
	maxReads   = 4
	maxEffects = 1
)

// Resolver turns a name into addresses. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// AddressPolicy decides where a connection of an address class may lead. Check returns an error that says why not.
type AddressPolicy interface {
	Check(class capabilities.Address, addr netip.Addr) error
}

// Options configures a courier. All fields but Ready and Watchdog are required.
type Options struct {
	Guard        net.Listener // unix socket that the guard connects to; Run closes it
	GuardUID     uint32       // the only user that may connect there
	GrantKeyFile string       // see ReadKey
	Clock        clock.Clock
	BootID       [16]byte
	Workers      map[capabilities.Class]string // unix sockets; each connection starts one worker
	Addresses    AddressPolicy
	Resolver     Resolver
	Log          *slog.Logger
	Ready        func() // called once the guard may connect; may be nil
	Watchdog     watchdog.Watchdog
}

// patience is how long the courier's parts may take over one piece of honest work.
const patience = 30 * time.Second

type courier struct {
	Options
	start   ipc.ID
	reads   semaphore
	effects semaphore
}

// Run serves the guard until ctx ends. It returns when every call has ended.
func Run(ctx context.Context, o Options) error {
	if o.Guard == nil || o.Clock == nil || o.Addresses == nil || o.Resolver == nil || o.Log == nil || o.BootID == [16]byte{} || o.GrantKeyFile == "" {
		return errors.New("courier: an option is missing")
	}
	c := &courier{Options: o, reads: make(semaphore, maxReads), effects: make(semaphore, maxEffects)}
	if _, err := rand.Read(c.start[:]); err != nil {
		return fmt.Errorf("courier: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var sessions sync.WaitGroup
	defer sessions.Wait()
	defer cancel()
	door := watchdog.Listen(o.Guard)
	defer context.AfterFunc(ctx, func() { door.Close() })()
	sessions.Go(func() {
		o.Watchdog.Keep(ctx, o.Log, watchdog.Part{Name: "guard socket", Patience: patience, Answers: door.Answers})
	})
	if o.Ready != nil {
		o.Ready()
	}
	slots := make(semaphore, maxSessions)
	for {
		conn, err := door.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("courier: %w", err)
		}
		if err := ipc.CheckPeer(conn, o.GuardUID); err != nil {
			o.Log.Error("connection refused", "error", err)
			conn.Close()
			continue
		}
		if !slots.try() {
			o.Log.Error("connection refused", "error", "the guard has too many connections")
			conn.Close()
			continue
		}
		sessions.Go(func() {
			defer slots.release()
			if err := c.serve(ctx, ipc.NewConn(conn)); err != nil && ctx.Err() == nil {
				o.Log.Warn("guard is gone", "error", err)
			}
		})
	}
}

// ReadKey reads the public key that grants are verified with: a file of exactly 32 bytes, the Ed25519 public key as RFC 8032
// section 5.1.5 encodes it.
func ReadKey(path string) (ed25519.PublicKey, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("courier: grant key: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, ed25519.PublicKeySize+1))
	if err != nil {
		return nil, fmt.Errorf("courier: grant key: %w", err)
	}
	if len(b) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("courier: grant key: %s does not hold exactly %d bytes", path, ed25519.PublicKeySize)
	}
	return ed25519.PublicKey(b), nil
}

// semaphore bounds what runs at the same time.
type semaphore chan struct{}

func (s semaphore) try() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

// acquire waits for a slot, or for ctx to end.
func (s semaphore) acquire(ctx context.Context) bool {
	select {
	case s <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s semaphore) release() { <-s }
