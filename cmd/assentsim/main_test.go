package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDrawnPanelIsForThisMachineAlone(t *testing.T) {
	t.Setenv("ENGINE", filepath.Join(t.TempDir(), "none")) // what is not refused must end as well
	for _, c := range []struct {
		name string
		args []string
	}{
		{"every address", []string{"run", "-panel", "0.0.0.0:8597"}},
		{"every address, by leaving it out", []string{"run", "-panel", ":8597"}},
		{"every IPv6 address", []string{"run", "-panel", "[::]:8597"}},
		{"an address of the LAN", []string{"run", "-panel", "192.168.1.20:8597"}},
		{"a name", []string{"run", "-panel", "localhost.example:8597"}},
		{"no port", []string{"run", "-panel", "127.0.0.1"}},
		{"phones of a demonstration", []string{"demo", "-listen", "0.0.0.0:8597"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			state := filepath.Join(t.TempDir(), "state")
			var out, errs bytes.Buffer
			code := run(append(c.args, "-state", state, "-scripted"), nil, &out, &errs)
			if code != 3 || !strings.Contains(errs.String(), c.args[1]+" "+c.args[2]+": ") || !strings.Contains(errs.String(), "127.0.0.1") {
				t.Errorf("exit %d: %s", code, &errs)
			}
			if _, err := os.Stat(state); err == nil {
				t.Error("the box was begun")
			}
		})
	}
	for _, address := range []string{"127.0.0.1:0", "127.8.0.1:8481", "[::1]:8481", "localhost:8481"} {
		if !isLoopback(address) {
			t.Errorf("%s is refused", address)
		}
	}
}

func TestTerminalIsAskedForBeforeTheBoxStarts(t *testing.T) {
	t.Setenv("ENGINE", filepath.Join(t.TempDir(), "none"))
	none, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	state := filepath.Join(t.TempDir(), "state")
	var out, errs bytes.Buffer
	code := run([]string{"run", "-terminal", "-state", state, "-scripted", "-listen", "127.0.0.1:0", "-panel", "127.0.0.1:0"}, none, &out, &errs)
	if code != 3 || !strings.Contains(errs.String(), "-terminal needs a terminal") {
		t.Errorf("exit %d: %s", code, &errs)
	}
	if _, err := os.Stat(state); err == nil {
		t.Error("the box was begun")
	}
}
