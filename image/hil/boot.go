package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"assent.home.arpa/image/cpio"
	"assent.home.arpa/image/hil/kernel"
)

// tail is how many lines of a console are shown when a machine did not do what it should.
const tail = 25

// machine is what is to be booted.
type machine struct{ image, initrd, log string }

// pack builds the guest and makes the initial file system that it is the whole of.
func pack(ctx context.Context, dir string, k kernel.Kernel) (string, error) {
	program := filepath.Join(dir, "guest")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, "./image/hil/guest")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=arm64")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the guest does not build (run this in the project's folder): %w\n%s", err, bytes.TrimSpace(out))
	}
	initrd := filepath.Join(dir, "initrd.cpio")
	f, err := os.Create(initrd)
	if err != nil {
		return "", err
	}
	out := bufio.NewWriter(f)
	return initrd, errors.Join(archive(out, program, k.Modules), out.Flush(), f.Close())
}

// archive writes the guest as /init, its modules in the order in which they are loaded, and what a first process needs.
func archive(out io.Writer, program string, modules []string) error {
	w := cpio.NewWriter(out)
	for _, dir := range []string{"dev", "proc", "sys", "modules"} {
		if err := w.Dir(dir, 0o755); err != nil {
			return err
		}
	}
	if err := w.Char("dev/console", 0o600, 5, 1); err != nil {
		return err
	}
	add := func(name, file string, perm uint32) error {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return w.File(name, perm, data)
	}
	if err := add("init", program, 0o755); err != nil {
		return err
	}
	for i, m := range modules {
		if err := add(fmt.Sprintf("modules/%02d-%s", i, filepath.Base(m)), m, 0o644); err != nil {
			return err
		}
	}
	return w.Close()
}

// boot runs a machine until it turns itself off, passes on every line of its console, and returns how long it ran. KVM is
// never used, even where it seems to be there: the box's processor is another, and the emulator has it everywhere. The clock
// counts instructions, four nanoseconds each; that needs a single processor.
func boot(ctx context.Context, limit time.Duration, m machine, line func(string)) (time.Duration, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	log, err := os.Create(m.log)
	if err != nil {
		return 0, fmt.Errorf("%w: %v", errUntried, err)
	}
	defer log.Close()
	qemu := exec.CommandContext(ctx, "qemu-system-aarch64",
		"-machine", "virt", "-cpu", "max,pauth-impdef=on", "-accel", "tcg", "-icount", "shift=2,align=off,sleep=off", "-smp", "1", "-m", "512M",
		"-kernel", m.image, "-initrd", m.initrd, "-append", "console=ttyAMA0 loglevel=4 panic=-1",
		"-rtc", "clock=vm", "-display", "none", "-serial", "stdio", "-monitor", "none", "-nic", "none", "-no-reboot")
	qemu.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	qemu.WaitDelay = 5 * time.Second
	var complaints bytes.Buffer
	qemu.Stderr = &complaints
	console, err := qemu.StdoutPipe()
	if err != nil {
		return 0, fmt.Errorf("%w: %v", errUntried, err)
	}
	if err := qemu.Start(); err != nil {
		return 0, fmt.Errorf("%w: %v; run: make hil", errUntried, err)
	}
	favour(qemu.Process.Pid)
	last, readErr := follow(io.TeeReader(console, log), line)
	err = qemu.Wait()
	took := time.Since(began)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return took, fmt.Errorf("the machine was not done after %v; its last words:\n%s", limit, last)
	case ctx.Err() != nil:
		return took, fmt.Errorf("%w: interrupted", errUntried)
	case err != nil:
		return took, fmt.Errorf("%w: qemu: %v: %s\n%s", errUntried, err, bytes.TrimSpace(complaints.Bytes()), last)
	}
	return took, readErr
}

// favour lets a process go before other work where that is allowed, so that a test of a minute stays one on a busy host. Linux
// shares processors among sessions first (sched(7), autogroup), and among the threads of one session then.
func favour(pid int) {
	const before = -10
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), fmt.Append(nil, before), 0)
	_ = unix.Setpriority(unix.PRIO_PROCESS, pid, before) // threads that it starts from now on inherit this
}

// follow passes on each line of a console and returns the last ones.
func follow(console io.Reader, line func(string)) (last string, err error) {
	lines := bufio.NewScanner(console)
	lines.Buffer(nil, 1<<20)
	var kept []string
	for lines.Scan() {
		line(lines.Text())
		kept = append(kept, lines.Text())
		kept = kept[max(0, len(kept)-tail):]
	}
	return strings.Join(kept, "\n"), lines.Err()
}
