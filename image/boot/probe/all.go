//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"assent.home.arpa/appliance/lan"
)

// Where the copy and its results are, and where systemd looks for what is there for this boot only (systemd.unit(5)).
const (
	workplace = "/run/assent-probe"
	dropIns   = "/run/systemd/system"
)

// unitTime bounds the probe of one unit.
const unitTime = time.Minute

// prober probes the units of this machine.
type prober struct {
	to  targets
	out io.Writer
}

// probeAll probes the named roles, or all, and puts everything back.
func probeAll(names []string, out, errs io.Writer) int {
	var chosen []role
	for _, name := range names {
		r, ok := roleNamed(name)
		if !ok {
			fmt.Fprintf(errs, "probe: there is no role %q\n", name)
			return 3
		}
		chosen = append(chosen, r)
	}
	if len(chosen) == 0 {
		chosen = roles()
	}
	var seen bytes.Buffer
	p := prober{out: io.MultiWriter(out, &seen)}
	if err := p.all(chosen); err != nil {
		fmt.Fprintln(errs, "probe:", err)
		return 2
	}
	for line := range strings.Lines(seen.String()) {
		if fields := strings.Split(line, "\t"); len(fields) != 4 || fields[1] != "refused" && fields[1] != "needed" {
			return 1
		}
	}
	return 0
}

func (p *prober) all(chosen []role) (err error) {
	stop, err := p.open()
	if err != nil {
		return err
	}
	defer stop()
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(workplace, 0o755); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(workplace)) }()
	if err := os.WriteFile(filepath.Join(workplace, "probe"), self, 0o755); err != nil {
		return err
	}
	for _, r := range chosen {
		if err := p.one(r); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return nil
}

// open listens where sockets that get out would arrive.
func (p *prober) open() (stop func(), err error) {
	lc := net.ListenConfig{}
	lc.SetMultipathTCP(true)
	l, err := lc.Listen(context.Background(), "tcp4", "0.0.0.0:0")
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return nil, err
	}
	p.to.near = net.JoinHostPort("127.0.0.1", port)
	if a, err := lan.Read("/run/assent/address/address"); err == nil && a.Is4() {
		p.to.far = net.JoinHostPort(a.String(), port)
	}
	return func() { l.Close() }, nil
}

// one probes a role in its unit and puts the role back.
func (p *prober) one(r role) (err error) {
	result := filepath.Join(workplace, r.name+".out")
	undo, err := p.replace(r, result)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, undo()) }()
	switch {
	case r.input:
		err = p.call(r)
	case r.ports:
		err = p.knock(func() error { return systemctl("start", r.unit) })
	default:
		err = systemctl("start", r.unit)
	}
	text, readErr := os.ReadFile(result)
	if err = errors.Join(err, readErr); err != nil {
		return fmt.Errorf("%w; it wrote:\n%s", err, text)
	}
	if len(text) == 0 {
		return errors.New("it wrote nothing")
	}
	_, err = p.out.Write(text)
	return err
}

// replace has the unit start the probe in place of the role, once, behind all of its walls.
func (p *prober) replace(r role, result string) (undo func() error, err error) {
	dir := filepath.Join(dropIns, r.unit+".d")
	file := filepath.Join(dir, "90-probe.conf")
	text := fmt.Sprintf(`[Service]
Type=oneshot
Restart=no
WatchdogSec=0
TimeoutStartSec=%d
ExecStart=
ExecStart=%s/probe try %s -near %s -far %s
ExecPaths=%s/probe
BindReadOnlyPaths=%s
StandardOutput=truncate:%s
`, int(unitTime.Seconds()), workplace, r.name, p.to.near, p.to.far, workplace, workplace, result)
	if p.to.far == "" {
		text = strings.Replace(text, " -far ", "", 1)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return nil, err
	}
	undo = func() error {
		err := errors.Join(os.Remove(file), systemctl("daemon-reload"))
		if r.input {
			return err
		}
		if r.ports { // its sockets were taken apart
			err = errors.Join(err, systemctl("restart", "assent-gateway.socket", "assent-gateway-plain.socket"))
		}
		return errors.Join(err, systemctl("restart", r.unit))
	}
	// In this order: whoever speaks to the role's socket starts the unit, and from now on that is the probe.
	if err := systemctl("daemon-reload"); err != nil {
		return nil, errors.Join(err, undo())
	}
	if r.input {
		return undo, nil
	}
	if err := systemctl("stop", r.unit); err != nil {
		return nil, errors.Join(err, undo())
	}
	return undo, nil
}

// knock connects to the box's ports while start runs, so that there are connections to take elsewhere.
func (p *prober) knock(start func() error) error {
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	for _, port := range []string{"443", "80"} {
		// The socket may start the unit by itself; start waits for that.
		c, err := net.DialTimeout("tcp4", net.JoinHostPort("127.0.0.1", port), 5*time.Second)
		if err != nil {
			return err
		}
		conns = append(conns, c)
	}
	return start()
}

// call is the courier's part: it connects to the socket of a class and passes on a connection, and waits for the worker's end.
func (p *prober) call(r role) error {
	class := strings.TrimPrefix(r.name, "worker-")
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socketIn("courier-worker", class+".sock"), Net: "unix"})
	if err != nil {
		return err
	}
	defer c.Close()
	var fds []int
	var open []*os.File
	defer func() {
		for _, f := range open {
			f.Close()
		}
	}()
	for _, multipath := range []bool{false, true} {
		if r.name != "worker-net" {
			break
		}
		d := net.Dialer{Timeout: 5 * time.Second}
		d.SetMultipathTCP(multipath) // where the kernel has it turned off this is another plain one
		conn, err := d.Dial("tcp4", p.to.near)
		if err != nil {
			return err
		}
		defer conn.Close()
		f, err := conn.(*net.TCPConn).File()
		if err != nil {
			return err
		}
		open, fds = append(open, f), append(fds, int(f.Fd()))
	}
	if _, _, err := c.WriteMsgUnix([]byte{0}, unix.UnixRights(fds...), nil); err != nil {
		return err
	}
	if err := c.SetReadDeadline(time.Now().Add(unitTime)); err != nil {
		return err
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) {
		return fmt.Errorf("the worker does not end: %w", err)
	}
	return nil
}

func systemctl(args ...string) error {
	out, err := exec.Command("systemctl", append([]string{"--no-ask-password", "--quiet"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("systemctl %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}
