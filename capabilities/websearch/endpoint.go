package websearch

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"

	"assent.home.arpa/capabilities"
)

// The header is a constant of the adapter revisions, but for Host.
const header = "User-Agent: Assent/1 (home box; each search is approved by a person)\r\n" +
	"Accept: application/json\r\n" +
	"Accept-Encoding: identity\r\n" +
	"Connection: close\r\n"

// endpoint is where an adapter's requests go, fixed when the box is configured.
type endpoint struct {
	scheme  string
	host    string // A-labels, or an IP literal without brackets
	port    uint16
	path    string
	address capabilities.Address
	shown   string // registrable domain, or the literal
}

// parseEndpoint reads the address of a search engine. A name must be public and is spoken to over https; an address in the
// house is given as a literal, so that no name service decides where the query goes.
func parseEndpoint(s string) (endpoint, error) {
	if strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == '\\' || r == 0x7f }) {
		return endpoint{}, errors.New("the address holds a space, a control character or a backslash")
	}
	u, err := url.Parse(s)
	if err != nil || u.Opaque != "" || u.Hostname() == "" {
		return endpoint{}, errors.New("the address is not like https://host/path")
	}
	if u.Scheme != "https" && u.Scheme != "http" {
		return endpoint{}, errors.New("the address must begin with https:// or http://")
	}
	if u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return endpoint{}, errors.New("the address must have no user, query or fragment")
	}
	e := endpoint{scheme: u.Scheme, path: u.EscapedPath()}
	if e.path == "" {
		e.path = "/"
	}
	if e.port, err = port(u); err != nil {
		return endpoint{}, err
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		return e.literal(ip)
	}
	return e.name(u.Hostname())
}

func port(u *url.URL) (uint16, error) {
	if u.Port() == "" {
		if strings.HasSuffix(u.Host, ":") {
			return 0, errors.New("the address has an empty port")
		}
		return map[string]uint16{"https": 443, "http": 80}[u.Scheme], nil
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil || n == 0 {
		return 0, errors.New("the port must be 1 to 65535")
	}
	return uint16(n), nil
}

func (e endpoint) literal(ip netip.Addr) (endpoint, error) {
	e.host, e.shown = ip.String(), ip.String()
	switch {
	case ip.Is4In6() || ip.Zone() != "":
		return endpoint{}, errors.New("an address must be plain IPv4 or IPv6")
	case ip.IsLoopback():
		e.address = capabilities.AddressLoopback
	case ip.IsPrivate() || ip.IsLinkLocalUnicast():
		e.address = capabilities.AddressLAN
	case ip.IsGlobalUnicast():
		e.address = capabilities.AddressPublic
	default:
		return endpoint{}, fmt.Errorf("nothing can be asked at %s", ip)
	}
	return e, e.secret()
}

func (e endpoint) name(host string) (endpoint, error) {
	ascii, err := idna.Lookup.ToASCII(host)
	if err != nil || strings.HasSuffix(ascii, ".") {
		return endpoint{}, fmt.Errorf("%q is not a host name", host)
	}
	// "127.1" and "0x7f.1" are addresses to some resolvers. No top-level domain begins with a digit.
	if last := ascii[strings.LastIndexByte(ascii, '.')+1:]; last == "" || '0' <= last[0] && last[0] <= '9' {
		return endpoint{}, fmt.Errorf("%q is neither a host name nor a plain address", host)
	}
	suffix, icann := publicsuffix.PublicSuffix(ascii)
	e.shown, err = publicsuffix.EffectiveTLDPlusOne(ascii)
	if unmanaged := !icann && !strings.Contains(suffix, "."); err != nil || unmanaged {
		return endpoint{}, fmt.Errorf("%q is not a public name; give a device in the house by its address", host)
	}
	e.host, e.address = ascii, capabilities.AddressPublic
	return e, e.secret()
}

// secret demands that a query which leaves the house cannot be read on its way.
func (e endpoint) secret() error {
	if e.address == capabilities.AddressPublic && e.scheme != "https" {
		return errors.New("an address outside the house must begin with https://")
	}
	return nil
}

// authority is the host as it stands in a Host header and in a URL (RFC 9110 section 7.2): the port only where it is not
// the scheme's own.
func authority(scheme, host string, port uint16) string {
	if scheme == "https" && port == 443 || scheme == "http" && port == 80 {
		if strings.Contains(host, ":") {
			return "[" + host + "]"
		}
		return host
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// get renders the request. The query is percent-encoded already.
func (e endpoint) get(query string) *capabilities.Request {
	return &capabilities.Request{
		Scheme:  e.scheme,
		Host:    e.host,
		Port:    e.port,
		Address: e.address,
		Bytes:   []byte("GET " + e.path + "?" + query + " HTTP/1.1\r\nHost: " + authority(e.scheme, e.host, e.port) + "\r\n" + header + "\r\n"),
	}
}
