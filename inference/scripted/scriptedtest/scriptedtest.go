// Package scriptedtest runs scripted models through a real engine for the length of a test.
//
// The engine is the executable that the environment variable ASSENT_ENGINE names: llama-server, or a script that takes
// its arguments. Without it such tests are skipped.
package scriptedtest

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"assent.home.arpa/inference/scripted"
)

// Variable names the environment variable that holds the engine's path.
const Variable = "ASSENT_ENGINE"

// Engine is one running engine.
type Engine struct {
	Socket string

	t    testing.TB
	path string // of the executable
	args []string
	cmd  *exec.Cmd
	once *sync.Once
}

// Start writes the script's model and starts an engine with a context of tokens. It returns when the model is loaded. The
// engine ends with the test.
func Start(t testing.TB, s scripted.Script, context int) *Engine {
	t.Helper()
	path := os.Getenv(Variable)
	if path == "" {
		t.Skipf("set %s to a llama-server to run this test", Variable)
	}
	model := filepath.Join(t.TempDir(), "scripted.gguf")
	f, err := os.Create(model)
	if err != nil {
		t.Fatal(err)
	}
	if err := scripted.Write(f, s); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return StartModel(t, model, context)
}

// StartModel is Start for a model that is there already.
func StartModel(t testing.TB, model string, context int) *Engine {
	t.Helper()
	path := os.Getenv(Variable)
	if path == "" {
		t.Skipf("set %s to a llama-server to run this test", Variable)
	}
	// Not t.TempDir: the path of a unix socket is limited to 107 bytes, and the name of a test is not.
	dir, err := os.MkdirTemp("", "assent")
	if err != nil {
		t.Fatal(err)
	}
	e := &Engine{t: t, path: path, Socket: filepath.Join(dir, "engine.sock")}
	e.args = []string{
		"--model", model, "--host", e.Socket, "--ctx-size", strconv.Itoa(context), "--threads", "1", "--parallel", "1",
		"--cache-ram", "0", "--no-slots", "--no-ui",
	}
	t.Cleanup(func() {
		e.Kill()
		os.RemoveAll(dir)
	})
	e.Restart()
	return e
}

// Kill ends the engine without warning, as a crash would, and waits until it is gone.
func (e *Engine) Kill() {
	if e.cmd == nil {
		return
	}
	e.once.Do(func() {
		// The executable may be a script around the engine: kill the process group.
		syscall.Kill(-e.cmd.Process.Pid, syscall.SIGKILL)
		e.cmd.Wait()
	})
}

// Restart starts the engine again after Kill, and waits until the model is loaded.
func (e *Engine) Restart() {
	e.t.Helper()
	e.Begin()
	deadline, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for !e.healthy(deadline) {
		select {
		case <-poll.C:
		case <-deadline.Done():
			e.t.Fatal("the engine did not load its model within a minute")
		}
	}
}

// Begin starts the engine and does not wait for it.
func (e *Engine) Begin() {
	e.t.Helper()
	os.Remove(e.Socket) // a killed engine leaves it, and the next could not listen
	e.cmd = exec.Command(e.path, e.args...)
	e.cmd.Env = append(scrubbed(), "GGML_NO_BACKTRACE=1")
	e.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	e.once = &sync.Once{}
	if err := e.cmd.Start(); err != nil {
		e.t.Fatalf("the engine does not start: %v", err)
	}
}

func (e *Engine) healthy(ctx context.Context) bool {
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", e.Socket)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://engine/health", nil)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// scrubbed is the environment without what would configure the engine behind the test's back.
func scrubbed() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "LLAMA_") {
			env = append(env, v)
		}
	}
	return env
}
