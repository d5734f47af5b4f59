package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assent.home.arpa/appliance/ipc"
)

func TestStartTellsWhatIsWrongWithTheRecord(t *testing.T) {
	root := bytes.Repeat([]byte{0xab}, 32)
	for _, c := range []struct {
		name   string
		status ipc.Status
		want   []string
		not    string
	}{
		{"all is well", ipc.Status{Root: root}, []string{"verify DIR", strings.Repeat("ab", 32)}, "nothing but talk"},
		{"a damaged log", ipc.Status{Trouble: ipc.AuditDamaged}, []string{"verify DIR", "IT IS DAMAGED"}, "root key"},
		{"a full disk", ipc.Status{Trouble: ipc.AuditFull, Root: root}, []string{"IT IS FULL"}, "UNKNOWN"},
		{"no disk", ipc.Status{Trouble: ipc.AuditLost}, []string{"CANNOT BE WRITTEN"}, "DAMAGED"},
		{"a call cut off", ipc.Status{Root: root, Unknown: 1}, []string{"1 call is UNKNOWN"}, "nothing but talk"},
		{"calls cut off", ipc.Status{Root: root, Unknown: 3}, []string{"3 calls are UNKNOWN"}, "nothing but talk"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			tellRecord(&out, "DIR", &c.status)
			for _, want := range c.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is not said: %s", want, &out)
				}
			}
			if strings.Contains(out.String(), c.not) {
				t.Errorf("%q is said: %s", c.not, &out)
			}
		})
	}
}

// What a killed run left behind goes with the next one, and nothing else does.
func TestSocketsOfAKilledRunAreRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	state, precious := t.TempDir(), filepath.Join(t.TempDir(), "assentsim-precious")
	left := filepath.Join(os.TempDir(), "assentsim-1234")
	other := filepath.Join(os.TempDir(), "other")
	for _, dir := range []string{left, precious, other} {
		if err := os.MkdirAll(filepath.Join(dir, "gateway-guard"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, named := range []string{left, precious, other, "", "assentsim-", os.TempDir() + "/"} {
		if err := os.WriteFile(filepath.Join(state, "lock"), []byte(named), 0o600); err != nil {
			t.Fatal(err)
		}
		s := &sim{cancel: func() {}}
		if err := s.claim(state); err != nil {
			t.Fatal(err)
		}
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(left); err == nil {
		t.Error("the sockets are still there")
	}
	for _, dir := range []string{precious, other} {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
}
