package confirm

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"assent.home.arpa/capabilities"
	"assent.home.arpa/confirm/internal/mint"
	"assent.home.arpa/confirm/receipt"
)

// Why a receipt was refused. Whatever the reason, it is spent.
var (
	ErrReceiptUnknown  = errors.New("confirm: receipt is unknown here, or was used already")
	ErrReceiptInvalid  = errors.New("confirm: receipt is not signed by this box")
	ErrReceiptRevoked  = errors.New("confirm: receipt was revoked at the box")
	ErrReceiptExpired  = errors.New("confirm: receipt has expired")
	ErrReceiptMismatch = errors.New("confirm: receipt is for something else")
)

// Receipt is the right to do, once, exactly what somebody at the box approved. The zero value is worth nothing, and only
// a completed hold makes another. It prints as nothing.
type Receipt struct {
	// A pointer, so that a Receipt inside somebody's unexported field prints as an address, where Format is not called.
	minted *mint.Token
}

// Format keeps the nonce out of every log.
func (Receipt) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("receipt")) }

// Binding is the call that a receipt is to be spent on.
type Binding struct {
	Inv           capabilities.InvocationID
	ArgsDigest    capabilities.ArgsDigest
	RequestDigest [32]byte
	Capability    capabilities.Name
	Version       capabilities.Version
	Revision      string
	SchemaDigest  [32]byte
	Registry      string
	Slot          uint32
}

// Evidence is what the audit keeps of a spent receipt.
type Evidence struct {
	COSE   []byte   // COSE_Sign1 over Claims
	Digest [32]byte // SHA-256 of COSE
	Claims receipt.Claims
}

// Redeem spends r on b. The first call consumes r whatever it returns; every later call fails with ErrReceiptUnknown.
func (d *Desk) Redeem(r Receipt, b Binding) (Evidence, error) {
	t := d.ledger.take(r)
	if t == nil {
		return Evidence{}, ErrReceiptUnknown
	}
	c, err := mint.Verify(d.public, r.minted.COSE)
	if err != nil {
		return Evidence{}, ErrReceiptInvalid
	}
	bound := Binding{
		Inv: c.Inv, ArgsDigest: c.ArgsDigest, RequestDigest: c.RequestDigest, Capability: c.Capability, Version: c.Version,
		Revision: c.Revision, SchemaDigest: c.SchemaDigest, Registry: c.Registry, Slot: c.Slot,
	}
	switch {
	case c.NonceDigest != sha256.Sum256(r.minted.Nonce[:]) || c.Inv != t.inv:
		return Evidence{}, ErrReceiptInvalid
	case t.revoked:
		return Evidence{}, ErrReceiptRevoked
	case c.BootID != d.cfg.BootID || d.cfg.Clock.Boot() >= c.Expires:
		return Evidence{}, ErrReceiptExpired
	case bound != b:
		return Evidence{}, ErrReceiptMismatch
	}
	return Evidence{COSE: r.minted.COSE, Digest: sha256.Sum256(r.minted.COSE), Claims: c}, nil
}

// ledger knows the receipts of this run that may still be spent, by the digest of their nonces. A restart forgets them all.
type ledger struct {
	mu     sync.Mutex
	tokens map[[32]byte]*token // guarded by mu
}

type token struct {
	inv     capabilities.InvocationID
	expires time.Duration // boot
	revoked bool
}

func (l *ledger) add(m mint.Token, inv capabilities.InvocationID, expires, now time.Duration) Receipt {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k, t := range l.tokens {
		if now >= t.expires {
			delete(l.tokens, k)
		}
	}
	l.tokens[sha256.Sum256(m.Nonce[:])] = &token{inv: inv, expires: expires}
	return Receipt{minted: &m}
}

// take removes the token of r, so that no second call finds it.
func (l *ledger) take(r Receipt) *token {
	if r.minted == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	k := sha256.Sum256(r.minted.Nonce[:])
	t := l.tokens[k]
	delete(l.tokens, k)
	return t
}

func (l *ledger) revokeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.tokens {
		t.revoked = true
	}
}
