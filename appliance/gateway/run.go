package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/config"
	"assent.home.arpa/appliance/web"
	"assent.home.arpa/inference"
)

// Options is what a gateway is made of.
type Options struct {
	Config config.Config
	// Listener is where phones connect. Off loopback it is served over TLS, with TLS or else with a certificate that is
	// made for the box and kept in StateDir: browsers give keys to secure pages only.
	Listener   net.Listener
	TLS        *tls.Config
	Guard      string // path of the guard's socket
	Provider   inference.Provider
	StateDir   string // certificate, conversations and invocation records
	Clock      clock.Clock
	Build      string // told to the guard
	ModelLabel string // as shown on the page
	Scripted   bool   // the model recites a script; the page says so
	Fixture    string // shown on the page where answers from outside are not from outside; empty on a box
	Log        *slog.Logger
	Ready      func() // called once phones can connect; may be nil
}

// Run serves phones until ctx ends, and then ends what is running. It works without a guard and without a model: phones
// are then told what is missing, and both are tried again.
func Run(ctx context.Context, o Options) error {
	return run(ctx, o, o.conversations)
}

// run takes the conversations from compose, which gets the one connection to the guard.
func run(ctx context.Context, o Options, compose func(context.Context, *guard) (turns, func() error, error)) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	listener, page, err := o.secure()
	if err != nil {
		return err
	}
	defer listener.Close()
	s := newServer(o, page)
	s.guard = &guard{path: o.Guard, build: o.Build, log: o.Log, notice: s.guardNotice, state: s.guardState}
	service, done, err := compose(ctx, s.guard)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	s.turns = service
	var background sync.WaitGroup
	defer background.Wait()
	defer cancel()
	background.Go(func() { s.guard.run(ctx) })
	background.Go(func() { s.tellInboxes(ctx) })
	if o.Ready != nil {
		o.Ready()
	}
	return s.serve(ctx, listener)
}

// secure returns the listener to serve on and the page, with the box's certificate beside it where it made one.
func (o Options) secure() (net.Listener, http.Handler, error) {
	page := web.Handler()
	plain := limit(o.Listener)
	if o.TLS != nil {
		return tls.NewListener(plain, only11(o.TLS)), page, nil
	}
	if tcp, ok := o.Listener.Addr().(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		return plain, page, nil
	}
	cert, err := LoadCertificate(o.StateDir, o.Config.Gateway.Hosts, addresses(o.Listener.Addr()), o.Clock)
	if err != nil {
		return nil, nil, err
	}
	o.Log.Info("serving with the box's own certificate", "sha256", cert.Fingerprint())
	conf := &tls.Config{Certificates: []tls.Certificate{cert.TLS}, MinVersion: tls.VersionTLS12}
	return tls.NewListener(plain, only11(conf)), withAuthority(page, cert.Authority), nil
}

// only11 keeps HTTP/2 away: a websocket needs a connection of its own.
func only11(c *tls.Config) *tls.Config {
	c = c.Clone()
	c.NextProtos = []string{"http/1.1"}
	return c
}

// withAuthority offers the certificate to phones that do not take a live connection on an exception alone.
func withAuthority(page http.Handler, der []byte) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /", page)
	mux.HandleFunc("GET /certificate.crt", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-x509-ca-cert")
		w.Header().Set("Content-Disposition", `attachment; filename="assent.crt"`)
		w.Write(der) // a phone that hangs up has no certificate
	})
	return mux
}

// addresses are those that phones may use: the one that was asked for, or all that the machine has.
func addresses(a net.Addr) []net.IP {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return nil
	}
	if !tcp.IP.IsUnspecified() {
		return []net.IP{tcp.IP}
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var out []net.IP
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && len(out) < 16 {
			out = append(out, n.IP)
		}
	}
	return out
}
