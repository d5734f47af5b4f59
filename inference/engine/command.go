package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Server says what an engine is to serve.
type Server struct {
	Model   string // path of a GGUF file; check it first with inference/model
	Socket  string // path of the unix socket, ending in ".sock", at most MaxSocket bytes
	Context int    // tokens of prompt and answer together
	Threads int    // 0: all of the machine's processors but one, at least one
}

// MaxSocket is the longest path of a unix socket on Linux (sun_path less its terminator).
const MaxSocket = 107

// Bounds of a context, in tokens.
const (
	minContext = 256
	maxContext = 1 << 20
)

// Command returns the command that serves s, not yet started. A socket file that an earlier engine left behind is removed,
// since it would keep the next from starting; one on which somebody answers is an error. The engine ends with SIGTERM when
// ctx does.
//
// Errors: *SocketError; those of the file system.
func (e Engine) Command(ctx context.Context, s Server) (*exec.Cmd, error) {
	if err := s.prepare(); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, e.Path, Arguments(s)...)
	cmd.Env = environment()
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	return cmd, nil
}

// Become turns this process into the engine at path, which serves s as Command's would: for a unit that confines the one
// process that it starts. It returns only with an error, and then nothing has changed but a stale socket.
func Become(path string, s Server) error {
	if err := s.prepare(); err != nil {
		return err
	}
	return fmt.Errorf("the engine %s cannot be started: %w", path, unix.Exec(path, append([]string{path}, Arguments(s)...), environment()))
}

// prepare refuses what cannot be served, and makes room for the socket.
func (s Server) prepare() error {
	if s.Context < minContext || s.Context > maxContext {
		return fmt.Errorf("a context of %d tokens; it must be %d to %d", s.Context, minContext, maxContext)
	}
	if info, err := os.Stat(s.Model); err != nil {
		return fmt.Errorf("the model's file cannot be read: %w", err)
	} else if !info.Mode().IsRegular() {
		return fmt.Errorf("the model %q is not a regular file", s.Model)
	}
	return clearSocket(s.Socket)
}

// Arguments returns the options of Command and Become.
func Arguments(s Server) []string {
	threads := s.Threads
	if threads <= 0 {
		threads = max(1, runtime.NumCPU()-1) // the box must still draw, seal and answer while it thinks
	}
	return []string{
		"--model", s.Model,
		"--host", s.Socket,
		"--ctx-size", strconv.Itoa(s.Context),
		"--threads", strconv.Itoa(threads),
		"--threads-batch", strconv.Itoa(threads),
		"--parallel", "1", // one step at a time, or each of several gets a part of the context
		"--cache-ram", "0", // the one slot keeps its own prefix; more would hold what people said for longer
		"--load-mode", "mmap",
		"--no-slots", // shows every prompt to whoever asks
		"--no-ui",
		"--no-jinja", // templates are programs in an untrusted file, and inference/dialect replaces them
		"--offline",
		"--log-verbosity", "2", // warnings and errors
	}
}

// required lists the options that Arguments uses.
func required() []string {
	return slices.DeleteFunc(Arguments(Server{Model: "m", Socket: "s"}), func(arg string) bool { return !strings.HasPrefix(arg, "--") })
}

// environment returns all that an engine gets to see of ours. Every option of llama-server can also be set by a variable
// LLAMA_ARG_*, so nothing is passed on that is not listed. GGML_NO_BACKTRACE keeps a crash from starting a debugger.
func environment() []string {
	env := []string{"GGML_NO_BACKTRACE=1", "LC_ALL=C"}
	for _, name := range []string{"PATH", "HOME", "TMPDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// clearSocket makes sure that an engine can listen at path.
func clearSocket(path string) error {
	switch {
	case !strings.HasSuffix(path, ".sock"):
		return &SocketError{path, "the name must end in .sock, or the engine takes it for a host"}
	case len(path) > MaxSocket:
		return &SocketError{path, fmt.Sprintf("the path has %d bytes and Linux allows %d; choose a shorter folder", len(path), MaxSocket)}
	case strings.ContainsRune(path, ','):
		return &SocketError{path, "a comma would make two addresses of it; choose another folder"}
	}
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &SocketError{path, err.Error()}
	}
	if info.Mode().Type() != fs.ModeSocket {
		return &SocketError{path, "something that is no socket is there; remove it"}
	}
	if conn, err := net.DialTimeout("unix", path, time.Second); err == nil {
		conn.Close()
		return &SocketError{path, "another engine serves it; stop that first"}
	}
	if err := os.Remove(path); err != nil {
		return &SocketError{path, err.Error()}
	}
	return nil
}
