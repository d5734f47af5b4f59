package gateway

import (
	"net"
	"net/netip"
	"sync"
)

// Bounds of open connections: one device must not be able to use up what the household shares.
const (
	maxConns        = 256
	maxConnsPerAddr = 48
)

// limitListener hangs up on connections beyond the bounds, without a word and before TLS costs anything.
type limitListener struct {
	net.Listener

	mu    sync.Mutex
	total int
	addrs map[netip.Addr]int
}

func limit(l net.Listener) net.Listener {
	return &limitListener{Listener: l, addrs: map[netip.Addr]int{}}
}

// Accept implements net.Listener.
func (l *limitListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		addr := remoteAddr(c)
		if l.enter(addr) {
			return &limitedConn{Conn: c, leave: sync.OnceFunc(func() { l.leave(addr) })}, nil
		}
		c.Close()
	}
}

func (l *limitListener) enter(a netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total >= maxConns || l.addrs[a] >= maxConnsPerAddr {
		return false
	}
	l.total++
	l.addrs[a]++
	return true
}

func (l *limitListener) leave(a netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.addrs[a]--; l.addrs[a] == 0 {
		delete(l.addrs, a)
	}
}

type limitedConn struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// remoteAddr is the zero address where there is no IP, so that all of those share one bound.
func remoteAddr(c net.Conn) netip.Addr {
	ap, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap().WithZone("")
}
