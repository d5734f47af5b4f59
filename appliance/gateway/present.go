package gateway

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"

	"assent.home.arpa/appliance/clock"
)

// maxCertAddrs bounds the addresses in a certificate.
const maxCertAddrs = 16

// presenter is the box's certificate once a phone has come to see it. Not earlier: a gateway that has no network of its own
// learns at which address phones reach it from the first of them, and a box that was just plugged in may have none before.
type presenter struct {
	dir   string
	hosts []string
	clock clock.Clock
	log   *slog.Logger

	mu   sync.Mutex
	cert Certificate
	made bool
}

// certificate returns the one to present on a connection that arrived at local.
func (p *presenter) certificate(local net.Addr) (Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made {
		return p.cert, nil
	}
	cert, err := LoadCertificate(p.dir, p.hosts, addresses(local), p.clock)
	if err != nil {
		p.log.Error("no certificate to present", "err", err)
		return Certificate{}, err
	}
	p.cert, p.made = cert, true
	p.log.Info("serving with the box's own certificate", "sha256", cert.Fingerprint())
	return cert, nil
}

func (p *presenter) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			cert, err := p.certificate(hello.Conn.LocalAddr())
			if err != nil {
				return nil, err
			}
			return &cert.TLS, nil
		},
	}
}

// withAuthority offers the certificate to phones that do not take a live connection on an exception alone.
func (p *presenter) withAuthority(page http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /", page)
	mux.HandleFunc("GET /certificate.crt", func(w http.ResponseWriter, r *http.Request) {
		local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		cert, err := p.certificate(local)
		if err != nil {
			http.Error(w, "the box has no certificate; look at its log", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/x-x509-ca-cert")
		w.Header().Set("Content-Disposition", `attachment; filename="assent.crt"`)
		w.Write(cert.Authority) // a phone that hangs up has no certificate
	})
	return mux
}

// addresses are those that phones may use: the one that the first phone used, and those that this machine says it has.
func addresses(local net.Addr) []net.IP {
	var out []net.IP
	add := func(ip net.IP) {
		if ip.IsGlobalUnicast() && len(out) < maxCertAddrs && !slices.ContainsFunc(out, ip.Equal) {
			out = append(out, ip)
		}
	}
	if tcp, ok := local.(*net.TCPAddr); ok {
		add(tcp.IP)
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return out
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok {
			add(n.IP)
		}
	}
	return out
}
