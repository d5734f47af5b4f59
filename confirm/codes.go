package confirm

import (
	"crypto/subtle"
	"sync"
	"time"
)

// maxWrongCodes closes pairing mode: with six digits a guess then succeeds ten times in a million, and the phone that it
// pairs has still to be accepted at the box. It is more than one device gets from the gateway, so that somebody in the house who
// only wants to be a nuisance needs several.
const maxWrongCodes = 10

// codes is pairing mode as phones meet it.
type codes struct {
	mu    sync.Mutex
	code  string        // guarded by mu; empty: closed
	until time.Duration // guarded by mu; boot
	wrong int           // guarded by mu
}

func (c *codes) open(code string, until time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.code, c.until, c.wrong = code, until, 0
}

func (c *codes) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.code = ""
}

// PairingCode returns the code that the panel shows, while pairing mode is open.
func (d *Desk) PairingCode() (string, bool) {
	c := &d.codes
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.code == "" || d.cfg.Clock.Boot() >= c.until {
		return "", false
	}
	return c.code, true
}

// CheckPairingCode reports whether code is the one that the panel shows now. The tenth wrong one closes pairing mode, and
// the panel says so.
func (d *Desk) CheckPairingCode(code string) bool {
	c := &d.codes
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.code == "" || d.cfg.Clock.Boot() >= c.until {
		return false
	}
	if subtle.ConstantTimeCompare([]byte(c.code), []byte(code)) == 1 {
		return true
	}
	if c.wrong++; c.wrong >= maxWrongCodes {
		c.code = ""
		d.post(func(m *mail) { m.codeSpent = true })
	}
	return false
}
