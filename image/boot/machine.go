package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"assent.home.arpa/appliance/finger"
	"assent.home.arpa/image/boot/control"
	"assent.home.arpa/image/emulator"
)

// Where things are on the box's wire, which is the emulator's own (docs/system/devices/net.rst in QEMU): the box gets the first
// address, and what it connects to at the router's address arrives at this machine's loopback.
const (
	boxMAC    = "52:54:00:a5:5e:01"
	routerIP  = "10.0.2.2"
	boxIP     = "10.0.2.15"
	httpsPort = 443
	plainPort = 80
)

// firstWord is how long the agent may take to speak after power-on.
const firstWord = 2 * time.Minute

// slow is by how much longer than on a PC it takes for a picture to appear.
const slow = 8

// setup is how a box is switched on.
type setup struct {
	name    string // of this start, for its console and capture
	card    string // the disk
	bios    string // U-Boot
	layer   string // the test's own disk; empty: none
	capture bool
	bare    bool // without any of Assent
	offline bool // no cable
	silent  bool // no agent is expected to speak
}

// box is one that is switched on.
type box struct {
	*emulator.Running
	began   time.Time
	agent   *control.Agent // nil without a layer
	monitor *emulator.Monitor
	finger  finger.Finger
	address string // of the phone page, from here
	plain   string // the same without TLS
	frames  string // the capture
}

// switchOn starts a box and waits until its agent speaks.
func (t *test) switchOn(ctx context.Context, s setup) (*box, error) {
	https, err := freePort()
	if err != nil {
		return nil, err
	}
	plain, err := freePort()
	if err != nil {
		return nil, err
	}
	at := func(ending string) string { return filepath.Join(t.dir, s.name+ending) }
	b := &box{address: fmt.Sprintf("https://127.0.0.1:%d", https), plain: fmt.Sprintf("http://127.0.0.1:%d", plain), frames: at(".pcap")}
	// Paths of sockets are short: the kernel allows 107 bytes.
	agent, monitor := filepath.Join(t.sockets, s.name+".a"), filepath.Join(t.sockets, s.name+".m")
	args := []string{
		"-machine", "virt", "-cpu", "max,pauth-impdef=on", "-accel", "tcg,thread=multi", "-smp", "2", "-m", "2G",
		"-bios", s.bios, "-monitor", "none", "-no-reboot", "-device", "virtio-rng-pci",
		// What the box was told is durable is in this machine's memory at least: pulling its plug loses what it kept to itself.
		"-drive", "if=none,id=card,format=raw,cache=writeback,discard=unmap,file=" + s.card, "-device", "virtio-blk-pci,drive=card",
		"-device", "qemu-xhci,id=usb",
		"-device", "virtio-serial-pci", "-chardev", "socket,id=agent,server=on,wait=off,path=" + agent,
		"-device", "virtserialport,chardev=agent,name=" + control.PortName,
		"-qmp", "unix:" + monitor + ",server=on,wait=off",
	}
	if s.bare {
		args = append(args, "-device", "virtserialport,name="+control.BareName)
	}
	if s.layer != "" {
		args = append(args, "-drive", "if=none,id=layer,format=raw,readonly=on,file="+s.layer, "-device", "virtio-blk-pci,drive=layer")
	}
	if s.offline {
		args = append(args, "-nic", "none")
	} else {
		args = append(args, "-netdev", fmt.Sprintf("user,id=lan,hostfwd=tcp:127.0.0.1:%d-:%d,hostfwd=tcp:127.0.0.1:%d-:%d", https, httpsPort, plain, plainPort),
			"-device", "virtio-net-pci,netdev=lan,romfile=,mac="+boxMAC)
	}
	if s.capture {
		args = append(args, "-object", "filter-dump,id=dump,netdev=lan,file="+b.frames)
	}
	b.began = time.Now()
	b.Running, err = emulator.Start(ctx, emulator.Machine{Args: args, Log: at(".log")})
	if err != nil {
		return nil, err
	}
	if err := b.connect(ctx, s, agent, monitor); err != nil {
		b.pull()
		return nil, fmt.Errorf("%s: %w; the console's last words:\n%s", s.name, err, b.Last())
	}
	return b, nil
}

// connect reaches the agent and the monitor.
func (b *box) connect(ctx context.Context, s setup, agent, monitor string) error {
	ctx, cancel := context.WithTimeout(ctx, firstWord)
	defer cancel()
	var err error
	if b.monitor, err = emulator.Dial(ctx, monitor); err != nil {
		return err
	}
	if s.layer == "" || s.silent {
		return nil
	}
	go func() { // a machine that ended does not speak
		select {
		case <-b.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	if b.agent, err = control.Dial(ctx, agent); err != nil {
		return err
	}
	b.finger = finger.Finger{Panel: b.agent, Slow: slow}
	return nil
}

// pull pulls the box's plug.
func (b *box) pull() {
	b.Kill()
	if b.agent != nil {
		_ = b.agent.Close()
	}
	if b.monitor != nil {
		_ = b.monitor.Close()
	}
}

// off has the box shut down in order.
func (b *box) off(ctx context.Context) error {
	_, err := b.agent.Run(ctx, "systemctl", "--no-block", "poweroff")
	if err != nil {
		return err
	}
	defer b.pull()
	_, err = b.Wait(ctx, 2*time.Minute)
	return err
}

// until tries something until it succeeds.
func (b *box) until(ctx context.Context, limit time.Duration, what string, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(300 * time.Millisecond):
		case <-b.Done():
			return fmt.Errorf("%s: the box switched itself off: %w", what, err)
		case <-ctx.Done():
			return fmt.Errorf("%s, after %v: %w", what, limit, err)
		}
	}
}

// freePort returns a port of this machine on which nothing listens.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

// copySparse copies a disk with its holes.
func copySparse(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	err = copyData(in, out, info.Size())
	return errors.Join(err, out.Truncate(info.Size()), out.Close())
}
