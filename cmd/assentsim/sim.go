package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"assent.home.arpa/appliance/box"
	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/config"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/cmd/assentsim/internal/panel"
	"assent.home.arpa/cmd/assentsim/internal/process"
	"assent.home.arpa/inference/engine"
	"assent.home.arpa/inference/llama"
)

// startTimeout bounds how long a role, and a model of some gigabytes, may take to be ready.
const (
	startTimeout = 30 * time.Second
	modelTimeout = 5 * time.Minute
)

// socketsPrefix begins the name of the directory of a run's sockets, below os.TempDir: a socket's whole path must be short.
const socketsPrefix = "assentsim-"

// plan is what a simulated box is to be.
type plan struct {
	state  string // directory
	listen string // phones
	panel  string // the drawn panel's page
	model  string
	search string
	recite bool
	file   string               // settings, may be empty
	tune   func(*config.Config) // may be nil
	errLog io.Writer
}

// sim is a running simulated box.
type sim struct {
	config  config.Config
	model   chosen
	search  search
	glass   *panel.Glass
	slot    *slot
	set     *process.Set
	address string // of the phone page
	panel   string // address of the drawn panel
	lock    *os.File

	cancel  context.CancelFunc
	serving sync.WaitGroup
	closers []func() error
}

// start brings up a box and returns when a phone can ask.
func start(ctx context.Context, out io.Writer, p plan) (_ *sim, err error) {
	run, cancel := context.WithCancel(ctx)
	s := &sim{cancel: cancel}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	if err := s.claim(p.state); err != nil {
		return nil, err
	}
	if p.listen, err = reserve(ctx, p.listen); err != nil {
		return nil, err
	}
	if s.model, err = choose(ctx, out, p.model, p.recite, p.state); err != nil {
		return nil, err
	}
	if s.search, err = chooseSearch(ctx, out, p.search); err != nil {
		return nil, err
	}
	s.closers = append(s.closers, s.search.close)
	file, err := s.configure(p)
	if err != nil {
		return nil, err
	}
	if s.set, err = process.NewSet(filepath.Join(p.state, "logs"), newLog(p.errLog)); err != nil {
		return nil, err
	}
	glass, err := s.servePanel(run, p.panel)
	if err != nil {
		return nil, err
	}
	if err := s.roles(run, file, glass); err != nil {
		return nil, err
	}
	return s, s.ready(ctx, out)
}

// reserve sees that nobody else has the phone page's port, before anything is fetched or started, and picks one for port 0.
func reserve(ctx context.Context, address string) (string, error) {
	l, err := listen(ctx, address)
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// claim takes the state directory for this process alone. The lock file names the sockets of the run that holds it; those of
// one that was killed are removed.
func (s *sim) claim(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("state: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	s.closers = append(s.closers, f.Close)
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("another assentsim uses %s; stop it, or choose another with -state", dir)
	}
	s.lock = f
	left, err := io.ReadAll(io.LimitReader(f, unix.PathMax))
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	if old := string(left); filepath.Dir(old) == filepath.Clean(os.TempDir()) && strings.HasPrefix(filepath.Base(old), socketsPrefix) {
		return os.RemoveAll(old)
	}
	return nil
}

// note leaves the name of this run's sockets in the lock file.
func (s *sim) note(runtime string) error {
	if err := s.lock.Truncate(0); err != nil {
		return err
	}
	_, err := s.lock.WriteAt([]byte(runtime), 0)
	return err
}

func (s *sim) configure(p plan) (string, error) {
	runtime, err := os.MkdirTemp("", socketsPrefix)
	if err != nil {
		return "", fmt.Errorf("sockets: %w", err)
	}
	s.closers = append(s.closers, func() error { return errors.Join(os.RemoveAll(runtime), s.lock.Truncate(0)) })
	if err := s.note(runtime); err != nil {
		return "", fmt.Errorf("state: %w", err)
	}
	c := config.Default()
	c.Box.Name = "Assent (simulated)"
	if p.file != "" {
		if c, err = c.WithFile(p.file); err != nil {
			return "", err
		}
	}
	c.Gateway.Listen = p.listen
	c.Model.Name, c.Model.Dialect, c.Model.Context = s.model.name, s.model.dialect, s.model.context
	c.Search = s.search.config
	c.Paths = config.Paths{State: p.state, Runtime: runtime}
	if p.tune != nil {
		p.tune(&c)
	}
	if err := c.Validate(); err != nil {
		return "", err
	}
	s.config = c
	for _, role := range []string{"gateway", "guard"} {
		if err := os.MkdirAll(box.StateDir(c, role), 0o700); err != nil {
			return "", fmt.Errorf("state: %w", err)
		}
	}
	if err := box.At(runtime).Make(); err != nil {
		return "", err
	}
	file := filepath.Join(p.state, "assent.toml")
	if err := os.WriteFile(file, c.Encode(), 0o600); err != nil {
		return "", fmt.Errorf("state: %w", err)
	}
	return file, nil
}

// servePanel draws the panel on its own loopback port, and returns the socket that the guard reaches it by.
func (s *sim) servePanel(ctx context.Context, address string) (string, error) {
	s.glass = panel.NewGlass(clock.System(), s.config.Panel)
	socket := filepath.Join(s.config.Paths.Runtime, "panel.sock")
	bus, err := ipc.Listen(socket)
	if err != nil {
		return "", err
	}
	l, err := listen(ctx, address)
	if err != nil {
		bus.Close()
		return "", err
	}
	s.slot = &slot{ctx: ctx, sim: s}
	page := panel.NewPage(s.glass, s.slot)
	s.panel = page.Address(l.Addr())
	srv := &http.Server{Handler: page.Handler(), ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10}
	s.serving.Go(func() { s.glass.Serve(bus) })
	s.serving.Go(func() { srv.Serve(l) })
	s.closers = append(s.closers, bus.Close, srv.Close)
	return socket, nil
}

// roles starts every process of the box.
func (s *sim) roles(ctx context.Context, file, glass string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("this program's own path: %w", err)
	}
	sockets := box.At(s.config.Paths.Runtime)
	s.address = "http://" + s.config.Gateway.Listen
	if !isLoopback(s.config.Gateway.Listen) {
		s.address = "https://" + s.config.Gateway.Listen
	}
	role := func(args ...string) func() (*exec.Cmd, error) {
		args = append([]string{"role", args[0], "-config", file}, args[1:]...)
		return func() (*exec.Cmd, error) { return exec.Command(self, args...), nil }
	}
	s.slot.exporter(role)
	flag := fmt.Sprintf("-scripted=%t", s.model.scripted)
	for class, path := range map[string]string{"none": sockets.WorkerNone, "net": sockets.WorkerNet} {
		l, err := ipc.Listen(path)
		if err != nil {
			return err
		}
		err = s.set.Spawn(ctx, "worker-"+class, l, func(ctx context.Context) *exec.Cmd {
			return exec.CommandContext(ctx, self, "role", "worker", "-config", file, "-class", class)
		})
		if err != nil {
			return err
		}
	}
	return errors.Join(
		s.set.Keep(ctx, "model", func() (*exec.Cmd, error) {
			return s.model.engine.Command(context.WithoutCancel(ctx), engine.Server{Model: s.model.file, Socket: sockets.Model, Context: s.model.context})
		}),
		s.set.Keep(ctx, "courier", role("courier")),
		s.set.Keep(ctx, "guard", role("guard", "-panel", glass, "-address", s.address, flag)),
		s.set.Keep(ctx, "gateway", role("gateway", flag, "-fixture", s.search.fixture)),
	)
}

// isLoopback reports whether only this machine can reach an address to listen on.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip.IsLoopback())
}

// ready waits until the gateway serves, the guard draws and the model is loaded.
func (s *sim) ready(ctx context.Context, out io.Writer) error {
	roles, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := poll(roles, func() bool { return s.served() && !s.glass.View().Lost }); err != nil {
		return fmt.Errorf("gateway or guard did not start in %s; see the logs in %s", startTimeout, filepath.Join(s.config.Paths.State, "logs"))
	}
	fmt.Fprintln(out, "model: loading", s.model.name)
	loading, cancel := context.WithTimeout(ctx, modelTimeout)
	defer cancel()
	client, err := llama.New(llama.Options{Socket: box.At(s.config.Paths.Runtime).Model, Dialect: s.config.Model.Dialect})
	if err != nil {
		return err
	}
	if err := poll(loading, func() bool { _, err := client.Info(loading); return err == nil }); err != nil {
		return fmt.Errorf("the model did not load in %s; see %s", modelTimeout, filepath.Join(s.config.Paths.State, "logs", "model.log"))
	}
	return nil
}

// served reports whether the phone page answers.
func (s *sim) served() bool {
	c, err := net.DialTimeout("tcp", s.config.Gateway.Listen, time.Second)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

func poll(ctx context.Context, done func() bool) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// stop ends every process and gives everything back.
func (s *sim) stop() error {
	s.cancel()
	if s.set != nil {
		s.set.Wait()
	}
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	s.serving.Wait()
	return errors.Join(errs...)
}
