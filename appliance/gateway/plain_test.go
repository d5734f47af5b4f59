package gateway_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"assent.home.arpa/appliance/gateway"
)

// Who was not told https is told, and nothing else is said without TLS.
func TestPlainPortSaysWhereToGo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := start(t, nil, func(o *gateway.Options) { o.Plain = l })
	base := "http://" + l.Addr().String()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, tc := range []struct {
		name, method, path, host string
		status                   int
		link                     string
	}{
		{"by its address", "GET", "/", "127.0.0.1", 200, `href="https://127.0.0.1/"`},
		{"by its address and port", "GET", "/", "127.0.0.1:" + port, 200, `href="https://127.0.0.1/"`},
		{"by its name", "GET", "/", "assent.local", 200, `href="https://assent.local/"`},
		{"any page", "GET", "/ws", "assent.local", 200, `href="https://assent.local/"`},
		{"a page that points a name of its own here", "GET", "/", "evil.example", 403, ""},
		{"an address that is not the box's", "GET", "/", "192.0.2.1", 403, ""},
		{"a form", "POST", "/", "assent.local", 405, ""},
	} {
		req, err := http.NewRequest(tc.method, base+tc.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = tc.host
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != tc.status || !strings.Contains(string(body), tc.link) || tc.link == "" && strings.Contains(string(body), "href") {
			t.Errorf("%s: %d %s", tc.name, resp.StatusCode, body)
		}
		if strings.Contains(string(body), "Kitchen box") || resp.Header.Get("Content-Security-Policy") == "" {
			t.Errorf("%s: too much is said, or too little forbidden", tc.name)
		}
	}
	if err := b.stop(); err != nil {
		t.Error(err)
	}
	if _, err := http.Get(base); err == nil {
		t.Error("the port is open after the end")
	}
}

// arrivals is a listener of PID 1's: connections arrive at an address that this program's own network does not have.
type arrivals struct{ net.Listener }

type arrived struct{ net.Conn }

func (l arrivals) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return arrived{c}, nil
}

func (arrivals) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv6unspecified, Port: 443} }

func (arrived) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 168, 77, 9), Port: 443} }

// A gateway without a network of its own learns its address from the first phone, and keeps its certificate then.
func TestCertificateHasTheAddressThatPhonesUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	start(t, nil, func(o *gateway.Options) {
		o.Listener.Close()
		o.Listener = arrivals{l}
	})
	var first []byte
	for range 2 {
		conn, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true}) // what it presents is what is looked at
		if err != nil {
			t.Fatal(err)
		}
		leaf := conn.ConnectionState().PeerCertificates[0]
		conn.Close()
		if !slices.ContainsFunc(leaf.IPAddresses, net.IPv4(192, 168, 77, 9).Equal) || !slices.Contains(leaf.DNSNames, "assent.local") {
			t.Errorf("the certificate is for %v %v", leaf.IPAddresses, leaf.DNSNames)
		}
		if first != nil && !slices.Equal(first, leaf.Raw) {
			t.Error("the second phone is shown another certificate")
		}
		first = leaf.Raw
	}
}
