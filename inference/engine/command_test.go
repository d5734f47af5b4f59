package engine_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"assent.home.arpa/inference/engine"
)

func server(t *testing.T) (engine.Engine, engine.Server) {
	t.Helper()
	// Not t.TempDir: the path of a unix socket is short, and the name of a test is not.
	dir, err := os.MkdirTemp("", "engine")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	model := filepath.Join(dir, "m.gguf")
	write(t, model, "GGUF")
	e := engine.Engine{Path: program(t, filepath.Join(dir, "llama-server"), goodVersion, options())}
	return e, engine.Server{Model: model, Socket: filepath.Join(dir, "e.sock"), Context: 4096, Threads: 3}
}

func TestEngineSeesNothingOfOurEnvironmentAndIsBoundToOneSocket(t *testing.T) {
	alone(t)
	for _, name := range []string{"LLAMA_ARG_HOST", "LLAMA_ARG_TOOLS", "LLAMA_API_KEY", "LD_PRELOAD", "HF_TOKEN", "HTTPS_PROXY"} {
		t.Setenv(name, "")
		if name != "LD_PRELOAD" {
			t.Setenv(name, "hostile")
		}
	}
	e, s := server(t)
	cmd, err := e.Command(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(out), "\n")
	if !slices.Contains(lines, "GGML_NO_BACKTRACE=1") {
		t.Error("a crash would start a debugger")
	}
	for _, name := range []string{"LLAMA_", "LD_", "HF_", "HTTPS_PROXY"} {
		for _, line := range lines {
			if strings.HasPrefix(line, name) {
				t.Errorf("the engine sees %s", line)
			}
		}
	}
	var args string
	for _, line := range lines {
		if rest, ok := strings.CutPrefix(line, "args: "); ok {
			args = rest + " "
		}
	}
	for _, want := range []string{
		"--model " + s.Model, "--host " + s.Socket, "--ctx-size 4096", "--threads 3", "--threads-batch 3", "--parallel 1",
		"--cache-ram 0", "--load-mode mmap", "--no-slots", "--no-ui", "--offline",
	} {
		if !strings.Contains(args, want+" ") {
			t.Errorf("%q is not among the arguments: %s", want, args)
		}
	}
	if strings.Contains(args, "--port") {
		t.Errorf("it would open a port: %s", args)
	}
}

func TestOneProcessorIsLeftFreeButOneThreadStays(t *testing.T) {
	args := engine.Arguments(engine.Server{})
	at := slices.Index(args, "--threads")
	if at < 0 || args[at+1] == "0" || strings.HasPrefix(args[at+1], "-") {
		t.Errorf("%v", args)
	}
}

func TestStaleSocketIsRemoved(t *testing.T) {
	e, s := server(t)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.Socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if _, err := e.Command(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(s.Socket); !os.IsNotExist(err) {
		t.Errorf("the stale socket is still there: %v", err)
	}
}

func TestSocketsOnWhichNoEngineCanListen(t *testing.T) {
	for name, tt := range map[string]struct {
		arrange func(*testing.T, *engine.Server)
		want    string
	}{
		"somebody answers": {func(t *testing.T, s *engine.Server) {
			l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", s.Socket)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
		}, "another engine"},
		"a file is there": {func(t *testing.T, s *engine.Server) { write(t, s.Socket, "precious") }, "no socket"},
		"too long":        {func(_ *testing.T, s *engine.Server) { s.Socket = "/tmp/" + strings.Repeat("a", 100) + ".sock" }, "107"},
		"not .sock":       {func(_ *testing.T, s *engine.Server) { s.Socket = "localhost" }, ".sock"},
		"two addresses":   {func(_ *testing.T, s *engine.Server) { s.Socket = "0.0.0.0,/tmp/a.sock" }, "comma"},
	} {
		t.Run(name, func(t *testing.T) {
			e, s := server(t)
			tt.arrange(t, &s)
			_, err := e.Command(t.Context(), s)
			var refused *engine.SocketError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want something with %q", err, tt.want)
			}
			if name == "a file is there" {
				if b, err := os.ReadFile(s.Socket); err != nil || string(b) != "precious" {
					t.Errorf("the file was touched: %q, %v", b, err)
				}
			}
		})
	}
}

func TestCommandRefusesWhatCannotWork(t *testing.T) {
	e, s := server(t)
	s.Context = 10
	if _, err := e.Command(t.Context(), s); err == nil {
		t.Error("a context of 10 tokens")
	}
	e, s = server(t)
	s.Model += ".absent"
	if _, err := e.Command(t.Context(), s); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
