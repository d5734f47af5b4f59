package gateway_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/appliance/conversation"
	"assent.home.arpa/appliance/gateway"
)

var day = time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)

func at(wall time.Time, state clock.State) clock.Clock {
	c := clocktest.New()
	c.SetWall(wall, state)
	return c
}

func load(t *testing.T, dir string, hosts []string, c clock.Clock) gateway.Certificate {
	t.Helper()
	cert, err := gateway.LoadCertificate(dir, hosts, []net.IP{net.IPv4(192, 168, 1, 20)}, c)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestCertificateHoldsOverRestarts(t *testing.T) {
	for name, c := range map[string]struct {
		hosts []string
		clock clock.Clock
		same  bool
	}{
		"restart":                  {[]string{"assent.local"}, at(day.Add(time.Hour), clock.Synced), true},
		"a year is nearly over":    {[]string{"assent.local"}, at(day.Add(370*24*time.Hour), clock.Synced), false},
		"the clock went back":      {[]string{"assent.local"}, at(day.Add(-48*time.Hour), clock.Synced), false},
		"the clock is not set":     {[]string{"assent.local"}, at(time.Unix(0, 0), clock.Unset), true},
		"the owner added a name":   {[]string{"assent.local", "box.lan"}, at(day, clock.Synced), false},
		"the owner added a number": {[]string{"assent.local", "192.168.7.7"}, at(day, clock.Synced), true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first := load(t, dir, []string{"assent.local"}, at(day, clock.Synced))
			second := load(t, dir, c.hosts, c.clock)
			if same := first.Fingerprint() == second.Fingerprint(); same != c.same {
				t.Errorf("the same certificate: %t, want %t", same, c.same)
			}
		})
	}
}

func TestCertificateOfABoxThatDoesNotKnowTheDate(t *testing.T) {
	cert := load(t, t.TempDir(), []string{"assent.local"}, at(time.Unix(60, 0), clock.Unset))
	if leaf := cert.TLS.Leaf; leaf.NotBefore.Year() != 2026 {
		t.Errorf("valid from %s: a phone that knows the date would refuse it", leaf.NotBefore)
	}
}

func TestDamagedCertificateIsReplaced(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tls.pem"), []byte("-----BEGIN"), 0o600); err != nil {
		t.Fatal(err)
	}
	load(t, dir, nil, at(day, clock.Synced))
	if info, err := os.Stat(filepath.Join(dir, "tls.pem")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// What somebody installs on a phone vouches for the box and for nothing else.
func TestAuthorityVouchesForTheBoxAlone(t *testing.T) {
	cert := load(t, t.TempDir(), []string{"assent.local"}, at(day, clock.Synced))
	ca, err := x509.ParseCertificate(cert.Authority)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	for _, host := range []string{"assent.local", "192.168.1.20", "localhost"} {
		if _, err := cert.TLS.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: day}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	if life := cert.TLS.Leaf.NotAfter.Sub(cert.TLS.Leaf.NotBefore); life > 398*24*time.Hour {
		t.Errorf("valid for %s; phones refuse more than 398 days", life)
	}
	if bytes.Equal(ca.RawSubjectPublicKeyInfo, cert.TLS.Leaf.RawSubjectPublicKeyInfo) {
		t.Error("the box still holds the authority's key")
	}
	if !ca.PermittedDNSDomainsCritical || len(ca.PermittedDNSDomains) != 2 || len(ca.PermittedIPRanges) != 1 || !ca.MaxPathLenZero {
		t.Errorf("the authority is not limited: %v %v", ca.PermittedDNSDomains, ca.PermittedIPRanges)
	}
}

// Off loopback the page is https; the certificate is what a phone can install.
func TestServesTLSOffLoopback(t *testing.T) {
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	b := start(t, func(context.Context, conversation.Turn, conversation.Emit) error { return nil }, func(o *gateway.Options) {
		o.Listener.Close()
		o.Listener = l
	})
	_, port, _ := net.SplitHostPort(l.Addr().String())
	b.addr = "127.0.0.1:" + port
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}} // the test reads the certificate from the page itself
	resp, err := client.Get("https://" + b.addr + "/certificate.crt")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	der, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err != nil {
		t.Fatal(err)
	}
	ca, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	conn, err := tls.Dial("tcp", b.addr, &tls.Config{RootCAs: roots, ServerName: "assent.local", NextProtos: []string{"h2", "http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if p := conn.ConnectionState().NegotiatedProtocol; p != "http/1.1" {
		t.Errorf("negotiated %q: a websocket needs HTTP/1.1", p)
	}
}

func TestFingerprint(t *testing.T) {
	cert := load(t, t.TempDir(), nil, at(day, clock.Synced))
	if f := cert.Fingerprint(); !regexp.MustCompile(`^([0-9A-F]{2}:){31}[0-9A-F]{2}$`).MatchString(f) {
		t.Errorf("fingerprint %q", f)
	}
}
