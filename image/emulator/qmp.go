package emulator

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// maxMessage bounds one message of a monitor.
const maxMessage = 1 << 20

// Monitor is the emulator's own control connection (QMP, docs/interop/qmp-spec.rst in QEMU): hardware is plugged in and pulled
// out by it. A machine has one if its arguments say "-qmp unix:PATH,server=on,wait=off".
type Monitor struct {
	conn net.Conn
	mu   sync.Mutex // one command at a time
	in   *bufio.Scanner
}

// Dial connects to a monitor, which may take a moment to appear.
func Dial(ctx context.Context, path string) (*Monitor, error) {
	var d net.Dialer
	for {
		conn, err := d.DialContext(ctx, "unix", path)
		if err == nil {
			m := &Monitor{conn: conn, in: bufio.NewScanner(conn)}
			m.in.Buffer(nil, maxMessage)
			if err := m.Do("qmp_capabilities", nil); err != nil {
				conn.Close()
				return nil, err
			}
			return m, nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("emulator: monitor: %w", err)
		}
	}
}

// Close hangs up.
func (m *Monitor) Close() error { return m.conn.Close() }

// Do runs a command. arguments is anything that encodes as a JSON object, or nil.
func (m *Monitor) Do(command string, arguments any) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	line, err := json.Marshal(struct {
		Execute   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
	}{command, arguments})
	if err != nil {
		return err
	}
	if _, err := m.conn.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("emulator: monitor: %w", err)
	}
	for m.in.Scan() {
		var answer struct {
			Return json.RawMessage `json:"return"`
			Error  *struct {
				Desc string `json:"desc"`
			} `json:"error"`
		}
		if err := json.Unmarshal(m.in.Bytes(), &answer); err != nil {
			return fmt.Errorf("emulator: monitor: %w", err)
		}
		switch { // greetings and events have neither
		case answer.Error != nil:
			return fmt.Errorf("emulator: %s: %s", command, answer.Error.Desc)
		case answer.Return != nil:
			return nil
		}
	}
	return fmt.Errorf("emulator: %s: %w", command, errors.Join(m.in.Err(), net.ErrClosed))
}
