package gateway

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// allowed says whether a request names this box in its Host header and, where it has one, in its Origin.
//
// A page that a browser loaded from elsewhere can point a name of its own at the box's address. Host then holds that
// name, so only names that the owner configured count, and addresses only where they are the very one that the
// connection arrived at. A request without Origin does not come from a page; what it may do is up to the phone's key.
func allowed(r *http.Request, hosts []string) bool {
	if !namesBox(r, hosts) {
		return false
	}
	origins := r.Header.Values("Origin")
	switch len(origins) {
	case 0:
		return true
	case 1:
		scheme := "http://"
		if r.TLS != nil {
			scheme = "https://"
		}
		return strings.EqualFold(origins[0], scheme+r.Host)
	}
	return false
}

func namesBox(r *http.Request, hosts []string) bool {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	for _, h := range hosts {
		if strings.EqualFold(host, h) || strings.EqualFold(r.Host, h) {
			return true
		}
	}
	local, ok := localAddr(r)
	if !ok {
		return false
	}
	if local.IsLoopback() && strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().WithZone("") == local
}

func localAddr(r *http.Request) (netip.Addr, bool) {
	a, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return netip.Addr{}, false
	}
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}, false
	}
	return ap.Addr().Unmap().WithZone(""), true
}
