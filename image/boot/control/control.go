// Package control is how the host of the boot test speaks to the agent in the booted box: over a serial port of the emulator that
// has nothing to do with the box's network, one JSON object a line, requests one way, answers and news of the glass the other.
package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"assent.home.arpa/device"
)

// PortName is what the serial port is called, in the emulator's arguments and in the box's /sys.
const PortName = "org.assent.agent"

// BareName is the name of a second port, which says that this start is for comparison: without anything of Assent.
const BareName = "org.assent.bare"

// MaxLine bounds a line.
const MaxLine = 8 << 20

// Request is what the host wants of the agent. Exactly one field besides ID is set.
type Request struct {
	ID      uint64   `json:"id"`
	Move    *Move    `json:"move,omitempty"`
	Run     *Command `json:"run,omitempty"`
	Memory  bool     `json:"memory,omitempty"`  // wanted: Answer.Processes
	Read    []string `json:"read,omitempty"`    // patterns of small files: Answer.Files
	Record  *Record  `json:"record,omitempty"`  // what the box's record must hold: Answer.Verdict
	Display *bool    `json:"display,omitempty"` // plug the display in, or pull it out
}

// Move is what becomes of some contacts, at once.
type Move struct {
	Buttons []device.Button `json:"buttons"`
	Down    bool            `json:"down"`
}

// Command is a program of the box's, run by the agent as root.
type Command struct {
	Args    []string      `json:"args"`
	Input   string        `json:"input,omitempty"`
	Timeout time.Duration `json:"timeout"`
}

// Record is what a phone knows of the box's record.
type Record struct {
	Seals [][]byte `json:"seals"` // that the box showed
	Done  []string `json:"done"`  // invocations of which it said that they are done, in hex
}

// Verdict is what the record is.
type Verdict struct {
	Status  string   `json:"status"` // as audit.Report has it
	Problem string   `json:"problem,omitempty"`
	Good    bool     `json:"good"` // intact, or with a tail that nobody relied on
	Records uint64   `json:"records"`
	Lost    []string `json:"lost"` // of what the phone knows
}

// Answer is what the agent says. With ID 0 it is news of the glass.
type Answer struct {
	ID        uint64            `json:"id,omitempty"`
	Error     string            `json:"error,omitempty"`
	Output    string            `json:"output,omitempty"` // of a command, both streams
	Exit      int               `json:"exit,omitempty"`
	Processes []Process         `json:"processes,omitempty"`
	Glass     *Glass            `json:"glass,omitempty"`
	Files     map[string]string `json:"files,omitempty"` // the beginning of each
	Verdict   *Verdict          `json:"verdict,omitempty"`
}

// Process is a process and the memory that counts as its own (PSS in Documentation/filesystems/proc.rst), in bytes.
type Process struct {
	Name string `json:"name"`
	PSS  int64  `json:"pss"`
}

// Glass is what somebody sees who looks at the box.
type Glass struct {
	Frame []byte `json:"frame"` // a device.Frame
	On    bool   `json:"on"`    // the display is supplied and switched on
}

// ErrGone says that the agent does not answer any more.
var ErrGone = errors.New("control: the agent is gone")

// Agent is the host's end.
type Agent struct {
	conn net.Conn

	mu      sync.Mutex // guards all below
	next    uint64
	waiting map[uint64]chan Answer
	frame   device.Frame
	on      bool
	gone    bool
	watches []chan struct{}
	history []Glass // every picture so far that differs from the one before
}

// Dial connects to an agent and waits until it speaks.
func Dial(ctx context.Context, path string) (*Agent, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	a := &Agent{conn: conn, waiting: map[uint64]chan Answer{}}
	spoke := make(chan struct{})
	go a.listen(spoke)
	select {
	case <-spoke:
		return a, nil
	case <-ctx.Done():
		conn.Close()
		return nil, fmt.Errorf("control: the agent does not speak: %w", ctx.Err())
	}
}

// Close hangs up.
func (a *Agent) Close() error { return a.conn.Close() }

func (a *Agent) listen(spoke chan<- struct{}) {
	lines := bufio.NewScanner(a.conn)
	lines.Buffer(nil, MaxLine)
	first := true
	for lines.Scan() {
		var answer Answer
		if json.Unmarshal(lines.Bytes(), &answer) != nil {
			continue // what was under way when the port was opened
		}
		if first {
			close(spoke)
			first = false
		}
		a.take(answer)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gone = true
	for _, c := range a.waiting {
		close(c)
	}
	clear(a.waiting)
	a.changed()
}

func (a *Agent) take(answer Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if g := answer.Glass; g != nil && len(g.Frame) == len(a.frame) {
		a.frame, a.on = device.Frame(g.Frame), g.On
		a.history = append(a.history, *g)
		a.changed()
	}
	if c := a.waiting[answer.ID]; c != nil {
		delete(a.waiting, answer.ID)
		c <- answer
	}
}

func (a *Agent) changed() {
	for _, w := range a.watches {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

// Do asks for one thing and waits for the answer. An Error in it is returned as one.
func (a *Agent) Do(ctx context.Context, r Request) (Answer, error) {
	a.mu.Lock()
	if a.gone {
		a.mu.Unlock()
		return Answer{}, ErrGone
	}
	a.next++
	r.ID = a.next
	c := make(chan Answer, 1)
	a.waiting[r.ID] = c
	line, err := json.Marshal(r)
	if err == nil {
		_, err = a.conn.Write(append(line, '\n'))
	}
	a.mu.Unlock()
	if err != nil {
		return Answer{}, fmt.Errorf("control: %w", err)
	}
	select {
	case answer, ok := <-c:
		switch {
		case !ok:
			return Answer{}, ErrGone
		case answer.Error != "":
			return answer, errors.New(answer.Error)
		}
		return answer, nil
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
}

// Run runs a program in the box and returns what it said. An exit status other than 0 is an error.
func (a *Agent) Run(ctx context.Context, args ...string) (string, error) {
	answer, err := a.Do(ctx, Request{Run: &Command{Args: args, Timeout: 2 * time.Minute}})
	if err != nil {
		return answer.Output, fmt.Errorf("%v: %w", args, err)
	}
	if answer.Exit != 0 {
		return answer.Output, fmt.Errorf("%v ended with %d: %.2000s", args, answer.Exit, answer.Output)
	}
	return answer.Output, nil
}

// Read returns the beginnings of the files that patterns name (path/filepath.Match), by path. What cannot be read is empty.
func (a *Agent) Read(ctx context.Context, patterns ...string) (map[string]string, error) {
	answer, err := a.Do(ctx, Request{Read: patterns})
	return answer.Files, err
}

// View is what is on the glass, for package finger.
func (a *Agent) View() (device.Frame, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.frame, a.on && !a.gone
}

// Watch returns a channel that gets a value after each change of what View returns, until stop.
func (a *Agent) Watch() (<-chan struct{}, func()) {
	w := make(chan struct{}, 1)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watches = append(a.watches, w)
	return w, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.watches = slices.DeleteFunc(a.watches, func(o chan struct{}) bool { return o == w })
	}
}

// Hold presses buttons together, waits, and lets go.
func (a *Agent) Hold(d time.Duration, buttons ...device.Button) error {
	ctx, cancel := context.WithTimeout(context.Background(), d+time.Minute)
	defer cancel()
	if _, err := a.Do(ctx, Request{Move: &Move{Buttons: buttons, Down: true}}); err != nil {
		return err
	}
	time.Sleep(d)
	_, err := a.Do(ctx, Request{Move: &Move{Buttons: buttons}})
	return err
}

// Requests reads the requests of a host, one at a time.
func Requests(in io.Reader, do func(Request)) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, MaxLine)
	for lines.Scan() {
		var r Request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("control: %w", err)
		}
		do(r)
	}
	return lines.Err()
}
