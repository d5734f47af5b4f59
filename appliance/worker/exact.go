package worker

import (
	"bytes"
	"errors"
	"net"
	"sync"
)

// errNotGranted stops a handler that writes anything but the granted request.
var errNotGranted = errors.New("worker: these are not the granted bytes")

// exactConn lets the granted bytes out once, in order, and nothing else: what is sent is what was shown. Its methods may be
// called on nil, which has sent nothing.
type exactConn struct {
	net.Conn

	mu     sync.Mutex // not held while writing, which may block for as long as the peer likes
	want   []byte     // what may still be written
	begun  bool       // a byte may have left
	broken bool       // a write failed, so that nobody knows what has left
}

// Write implements net.Conn. A write that would go on otherwise than granted is refused as a whole.
func (c *exactConn) Write(p []byte) (int, error) {
	if err := c.claim(p); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(p)
	if n < len(p) || err != nil {
		c.mu.Lock()
		c.broken = true
		c.mu.Unlock()
	}
	return n, err
}

func (c *exactConn) claim(p []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken || !bytes.HasPrefix(c.want, p) {
		return errNotGranted
	}
	c.want = c.want[len(p):]
	c.begun = c.begun || len(p) > 0
	return nil
}

// started reports whether a byte may have left.
func (c *exactConn) started() bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun
}

// complete reports whether all granted bytes have left.
func (c *exactConn) complete() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.want) == 0 && !c.broken
}
