// Package emulator runs the machines of the tests that need a real kernel: QEMU with an arm64 processor in software.
//
// KVM is never used, even where it seems to be there: the box's processor is another, and the emulator has it everywhere.
// What a machine says on its serial console is kept in a file, passed on line by line, and its last lines are part of every
// error, since they are what tells why a machine did not do what it should.
package emulator

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Program is the emulator, as it is called on the path.
const Program = "qemu-system-aarch64"

// tail is how many lines of a console are shown when a machine did not do what it should.
const tail = 25

// maxLine bounds a line of a console.
const maxLine = 1 << 20

// ErrUntried says that a machine could not be run at all, so that nothing is known about what would have run on it.
var ErrUntried = errors.New("could not be tried")

// Machine is what is to be run.
type Machine struct {
	Args []string     // of the emulator, without those that concern the console; "-serial stdio" is added
	Log  string       // file for the console
	Line func(string) // is told each line of the console, in order; may be nil
}

// Running is a machine that was started. Its methods may be called from several goroutines.
type Running struct {
	cmd        *exec.Cmd
	began      time.Time
	done       chan struct{} // closed when it is over
	complaints bytes.Buffer  // of the emulator; read after done

	mu   sync.Mutex // guards all below
	last []string   // of the console
	err  error
}

// Start starts a machine. It is killed when ctx ends, as if its plug were pulled.
func Start(ctx context.Context, m Machine) (*Running, error) {
	log, err := os.Create(m.Log)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrUntried, err)
	}
	r := &Running{done: make(chan struct{}), began: time.Now()}
	r.cmd = exec.CommandContext(ctx, Program, append(append([]string{}, m.Args...), "-display", "none", "-serial", "stdio")...)
	r.cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL}
	r.cmd.WaitDelay = 5 * time.Second
	r.cmd.Stderr = &r.complaints
	console, err := r.cmd.StdoutPipe()
	if err == nil {
		err = r.cmd.Start()
	}
	if err != nil {
		log.Close()
		return nil, fmt.Errorf("%w: %v; install qemu-system-arm", ErrUntried, err)
	}
	favour(r.cmd.Process.Pid)
	go func() {
		defer close(r.done)
		defer log.Close()
		follow := r.follow(io.TeeReader(console, log), m.Line)
		err := r.cmd.Wait()
		if err == nil {
			err = follow
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.err = err
	}()
	return r, nil
}

// Done is closed when the machine is over.
func (r *Running) Done() <-chan struct{} { return r.done }

// Last are the last lines of the console so far.
func (r *Running) Last() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.last, "\n")
}

// Kill pulls the machine's plug and waits until it is over.
func (r *Running) Kill() {
	_ = r.cmd.Process.Kill() // fails where it is over already
	<-r.done
}

// Wait waits until the machine turns itself off, and returns how long it ran. After limit, or when ctx ends, it is killed.
func (r *Running) Wait(ctx context.Context, limit time.Duration) (time.Duration, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-r.done:
	case <-timer.C:
		r.Kill()
		return time.Since(r.began), fmt.Errorf("the machine was not done after %v; its last words:\n%s", limit, r.Last())
	case <-ctx.Done():
		r.Kill()
	}
	took := time.Since(r.began)
	if ctx.Err() != nil {
		return took, fmt.Errorf("%w: interrupted", ErrUntried)
	}
	r.mu.Lock()
	err := r.err
	r.mu.Unlock()
	if err != nil {
		return took, fmt.Errorf("%w: qemu: %v: %s\n%s", ErrUntried, err, bytes.TrimSpace(r.complaints.Bytes()), r.Last())
	}
	return took, nil
}

// follow passes on each line of a console and keeps the last ones.
func (r *Running) follow(console io.Reader, line func(string)) error {
	lines := bufio.NewScanner(console)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		text := strings.TrimRight(lines.Text(), "\r")
		if line != nil {
			line(text)
		}
		r.mu.Lock()
		r.last = append(r.last, text)
		r.last = r.last[max(0, len(r.last)-tail):]
		r.mu.Unlock()
	}
	return lines.Err()
}

// favour lets a process go before other work where that is allowed, so that a test of a minute stays one on a busy host. Linux
// shares processors among sessions first (sched(7), autogroup), and among the threads of one session then.
func favour(pid int) {
	const before = -10
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), fmt.Append(nil, before), 0)
	_ = unix.Setpriority(unix.PRIO_PROCESS, pid, before) // threads that it starts from now on inherit this
}
