package courier

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"assent.home.arpa/capabilities"
)

const (
	lookupTimeout = 5 * time.Second
	dialTimeout   = 5 * time.Second
	maxAnswers    = 64 // addresses of one name
	maxDials      = 6  // of these
)

// dial connects to what a granted request names. The name is resolved once, every address is checked, and the connection
// goes to an address that was checked, never to the name: an answer that changes in between changes nothing.
func (c *courier) dial(ctx context.Context, req *capabilities.Request) (*net.TCPConn, error) {
	addrs, err := c.resolve(ctx, req)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: dialTimeout, KeepAlive: -1}
	// Landlock, which keeps a worker from turning this connection elsewhere, does not cover Multipath TCP.
	d.SetMultipathTCP(false)
	for _, a := range addrs[:min(len(addrs), maxDials)] {
		conn, err := d.DialContext(ctx, "tcp", netip.AddrPortFrom(a, req.Port).String())
		if err == nil {
			return conn.(*net.TCPConn), nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.New("the destination did not answer")
}

// resolve returns the addresses that req may be sent to. One address that its class forbids spoils the name.
func (c *courier) resolve(ctx context.Context, req *capabilities.Request) ([]netip.Addr, error) {
	addrs, err := c.lookUp(ctx, req)
	if err != nil {
		return nil, err
	}
	for _, a := range addrs {
		if err := c.Addresses.Check(req.Address, a); err != nil {
			return nil, fmt.Errorf("%s leads to an address that it may not have: %w", req.Host, err)
		}
	}
	return addrs, nil
}

func (c *courier) lookUp(ctx context.Context, req *capabilities.Request) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(req.Host); err == nil {
		return []netip.Addr{a}, nil
	}
	if req.Address != capabilities.AddressPublic {
		return nil, errors.New("a destination in the house must be given by its address")
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	// The final dot keeps the resolver from trying the network's own search domains.
	addrs, err := c.Resolver.LookupNetIP(ctx, "ip", req.Host+".")
	if err != nil || len(addrs) == 0 || len(addrs) > maxAnswers {
		return nil, fmt.Errorf("%s could not be resolved", req.Host)
	}
	for i := range addrs {
		addrs[i] = addrs[i].Unmap() // the resolver gives IPv4 addresses in their IPv6 form
	}
	return addrs, nil
}
