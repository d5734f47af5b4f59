package main

import (
	"os"
	"path/filepath"
	"testing"

	"assent.home.arpa/appliance/config"
)

// Settings that somebody wants to try before they go onto a card are what the simulated box runs with; where it lives stays its own.
func TestSettingsAreTriedOnThisPC(t *testing.T) {
	state := t.TempDir()
	file := filepath.Join(t.TempDir(), "my.toml")
	if err := os.WriteFile(file, []byte("[box]\nname = \"Kitchen\"\n[panel]\nlarge = true\n[paths]\nstate = \"/nowhere\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &sim{cancel: func() {}, model: chosen{dialect: "chatml-hermes", context: 4096}, search: search{config: config.Default().Search}}
	t.Cleanup(func() {
		for _, c := range s.closers {
			c()
		}
	})
	if err := s.claim(state); err != nil {
		t.Fatal(err)
	}
	published, err := s.configure(plan{state: state, listen: "127.0.0.1:8480", file: file})
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(published)
	if err != nil {
		t.Fatal(err)
	}
	if c.Box.Name != "Kitchen" || !c.Panel.Large || c.Paths.State != state {
		t.Errorf("%+v", c)
	}
}
