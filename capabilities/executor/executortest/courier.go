// Package executortest holds what stands on the far side of an executor: a courier that spends grants as the real one does,
// faults included, and two capabilities to call.
package executortest

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/grant"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/executor"
)

// Courier verifies what it is given and answers as told. A grant that is not perfect, or comes a second time, is refused.
type Courier struct {
	key   ed25519.PublicKey
	clock clock.Clock
	boot  [16]byte

	mu        sync.Mutex
	challenge [32]byte
	absent    bool
	refusal   error
	answer    func(ctx context.Context, c grant.Claims) (*ipc.Result, error)
	spent     map[[16]byte]bool
	calls     []grant.Claims
}

var _ executor.Courier = (*Courier)(nil)

// NewCourier returns a courier that is connected and answers every grant with Done.
func NewCourier(key ed25519.PublicKey, c clock.Clock, boot [16]byte) *Courier {
	k := &Courier{key: key, clock: c, boot: boot, spent: map[[16]byte]bool{}}
	rand.Read(k.challenge[:])
	k.Answer(func(_ context.Context, c grant.Claims) (*ipc.Result, error) {
		return Done(c, []byte(`{"ok":true}`)), nil
	})
	return k
}

// Answer says how calls end from now on.
func (k *Courier) Answer(f func(context.Context, grant.Claims) (*ipc.Result, error)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.answer = f
}

// Leave makes the courier be gone, or back.
func (k *Courier) Leave(gone bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.absent = gone
}

// Refuse makes the courier answer every grant with err, unspent.
func (k *Courier) Refuse(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refusal = err
}

// Calls returns the grants that were spent, in order.
func (k *Courier) Calls() []grant.Claims {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]grant.Claims(nil), k.calls...)
}

// Challenge implements executor.Courier.
func (k *Courier) Challenge() ([32]byte, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.challenge, !k.absent
}

// Execute implements executor.Courier.
func (k *Courier) Execute(ctx context.Context, g executor.Grant) (*ipc.Result, error) {
	m, err := g.Message()
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	if k.absent {
		k.mu.Unlock()
		return nil, fmt.Errorf("the courier is gone: %w", executor.ErrNotSent)
	}
	if k.refusal != nil {
		defer k.mu.Unlock()
		return nil, k.refusal
	}
	claims, err := k.spend(m.Grant)
	answer := k.answer
	k.mu.Unlock()
	if err != nil {
		return nil, &ipc.Error{Code: capabilities.CodeGrantRefused, Message: err.Error()}
	}
	return answer(ctx, claims)
}

func (k *Courier) spend(signed []byte) (grant.Claims, error) {
	c, _, err := grant.Verify(k.key, signed)
	switch {
	case err != nil:
		return c, err
	case c.Challenge != k.challenge || c.BootID != k.boot:
		return c, errors.New("a grant of another connection or boot")
	case k.clock.Boot() >= c.Deadline:
		return c, errors.New("a grant that is too old")
	case k.spent[c.Inv]:
		return c, errors.New("a grant that was spent")
	}
	k.spent[c.Inv] = true
	k.calls = append(k.calls, c)
	return c, nil
}

// Done is the result of a call that went well and returned body.
func Done(c grant.Claims, body []byte) *ipc.Result {
	return &ipc.Result{
		Inv: c.Inv, Status: capabilities.Done, Sent: c.Request != nil, Duration: int64(time.Millisecond), Body: body,
		Envelope: &ipc.Envelope{
			Items: 1, RequestDigest: c.Request.Digest(), AnswerDigest: sha256.Sum256([]byte("answer")), BodyDigest: sha256.Sum256(body),
		},
	}
}

// Failed is the result of a call that did not go well.
func Failed(c grant.Claims, code capabilities.Code, sent bool) *ipc.Result {
	return &ipc.Result{
		Inv: c.Inv, Status: capabilities.Failed, Code: code, Sent: sent,
		Envelope: &ipc.Envelope{RequestDigest: c.Request.Digest(), BodyDigest: sha256.Sum256(nil)},
	}
}
