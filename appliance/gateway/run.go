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
	"assent.home.arpa/appliance/watchdog"
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
	Plain      net.Listener // where phones that were not told https connect; may be nil
	Guard      string       // path of the guard's socket
	Provider   inference.Provider
	StateDir   string // certificate, conversations and invocation records
	Clock      clock.Clock
	Build      string // told to the guard
	ModelLabel string // as shown on the page
	Scripted   bool   // the model recites a script; the page says so
	Fixture    string // shown on the page where answers from outside are not from outside; empty on a box
	Log        *slog.Logger
	Ready      func() // called once phones can connect; may be nil
	Watchdog   watchdog.Watchdog
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
	door := watchdog.Listen(o.Listener)
	listener, page := o.secure(door)
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
	background.Go(func() { o.Watchdog.Keep(ctx, o.Log, s.vital(door)...) })
	if o.Plain != nil {
		background.Go(func() {
			if err := servePlain(ctx, o.Plain, o.Config.Gateway.Hosts, o.Log); err != nil {
				o.Log.Error("phones that were not told https are not told now", "err", err)
			}
		})
	}
	if o.Ready != nil {
		o.Ready()
	}
	return s.serve(ctx, listener)
}

// secure returns the listener to serve on and the page, with the box's certificate beside it where it makes one.
func (o Options) secure(door net.Listener) (net.Listener, http.Handler) {
	page := web.Handler()
	plain := limit(door)
	if o.TLS != nil {
		return tls.NewListener(plain, only11(o.TLS)), page
	}
	if tcp, ok := door.Addr().(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		return plain, page
	}
	p := &presenter{dir: o.StateDir, hosts: o.Config.Gateway.Hosts, clock: o.Clock, log: o.Log}
	return tls.NewListener(plain, only11(p.config())), p.withAuthority(page)
}

// only11 keeps HTTP/2 away: a websocket needs a connection of its own.
func only11(c *tls.Config) *tls.Config {
	c = c.Clone()
	c.NextProtos = []string{"http/1.1"}
	return c
}
