package gateway_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

func TestPageIsProtected(t *testing.T) {
	b := start(t, say())
	for path, want := range map[string]int{
		"/": 200, "/healthz": 200, "/js/app.js": 200, "/style.css": 200,
		"/js/": 404, "/js": 404, "/index.html": 404, "/nowhere": 404, "/certificate.crt": 404, "/ws": 400,
		"/%2e%2e/web.go": 404, "//evil.example/": 307,
	} {
		t.Run(path, func(t *testing.T) {
			req, err := http.NewRequest("GET", "http://"+b.addr+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("%d, want %d", resp.StatusCode, want)
			}
			if to := resp.Header.Get("Location"); strings.HasPrefix(to, "//") || strings.Contains(to, ":") {
				t.Errorf("redirects to %s", to)
			}
			csp := resp.Header.Get("Content-Security-Policy")
			for _, part := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "form-action 'none'", "require-trusted-types-for 'script'"} {
				if !strings.Contains(csp, part) {
					t.Errorf("policy lacks %q: %s", part, csp)
				}
			}
			for name, want := range map[string]string{"Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY"} {
				if got := resp.Header.Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		})
	}
}

func TestOnlyGet(t *testing.T) {
	b := start(t, say())
	resp, err := http.Post("http://"+b.addr+"/", "text/plain", strings.NewReader("approve"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", resp.StatusCode)
	}
}

func TestHeadersAreBounded(t *testing.T) {
	b := start(t, say())
	req, err := http.NewRequest("GET", "http://"+b.addr+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Long", strings.Repeat("x", 64<<10))
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return // hung up on before all was sent
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("64 KiB of header: %d", resp.StatusCode)
	}
}

// One device cannot use up the connections that the household shares.
func TestConnectionsOfOneAddressAreBounded(t *testing.T) {
	b := start(t, say())
	var open []net.Conn
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	for range 64 {
		c, err := net.Dial("tcp", b.addr)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	io.WriteString(open[63], "GET /healthz HTTP/1.0\r\nHost: "+b.addr+"\r\n\r\n") // fails where it was hung up on already
	if n, err := open[63].Read(make([]byte, 1)); n > 0 {
		t.Errorf("the 64th connection of one device was served: %v", err)
	}
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 9)}}
	c, err := d.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "GET /healthz HTTP/1.0\r\nHost: "+b.addr+"\r\n\r\n")
	answer, err := io.ReadAll(c)
	if err != nil || !strings.HasSuffix(string(answer), "ok\n") {
		t.Errorf("another device was not served: %v %q", err, answer)
	}
}
