package main

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"assent.home.arpa/inference/model/modeltest"
)

var update = flag.Bool("update", false, "rewrite the scripts' expected output")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"assent": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Cmds:          commands(),
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, "cache"))
			env.Setenv("HOME", env.WorkDir)
			// A model that no manifest names, whose own name would command a terminal.
			gguf := modeltest.GGUF(10, "general.architecture", "test", "general.name", "Nice\x1b]52;c;aGk=\x07\u009b2J model")
			return os.WriteFile(filepath.Join(env.WorkDir, "mine.gguf"), gguf, 0o644)
		},
	})
}

// commands are what the scripts know besides testscript's own.
func commands() map[string]func(*testscript.TestScript, bool, []string) {
	all := cardCommands()
	all["exits"] = exits
	return all
}

// exits STATUS PROGRAM ARGS... is exec for programs that must end with a given status.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits status program [args...]")
	}
	status := "0"
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		status = strconv.Itoa(exit.ExitCode())
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if status != args[0] {
		ts.Fatalf("exit status %s, want %s", status, args[0])
	}
}
