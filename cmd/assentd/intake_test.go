package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assent.home.arpa/appliance/config"
	"assent.home.arpa/appliance/notice"
)

// Issue 5, bad input: a broken assent.toml is shown on the panel and in the journal, and the box starts with the last good one.
func TestABrokenFileOnTheCard(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	where := write("where.toml", "[paths]\nstate = \""+dir+"/state\"\nruntime = \""+dir+"/run\"\n")
	published := filepath.Join(dir, "run", "settings", "assent.toml")
	take := func(drop string) (journal string) {
		t.Helper()
		var out, errs bytes.Buffer
		if status := run([]string{"settings", "-config", where, drop}, os.Stdin, &out, &errs); status != 0 {
			t.Fatalf("status %d\n%s", status, &errs)
		}
		return errs.String()
	}
	notices := func() string {
		t.Helper()
		all, err := notice.Read(filepath.Join(dir, "run", "notices"))
		if err != nil || len(all) > 1 {
			t.Fatalf("%+v, %v", all, err)
		}
		if len(all) == 0 {
			return ""
		}
		return all[0].Text
	}

	take(write("assent.toml", "[box]\nname = \"Kitchen\"\n"))
	if c, err := config.Load(published); err != nil || c.Box.Name != "Kitchen" || notices() != "" {
		t.Fatalf("%q, %v, notice %q", c.Box.Name, err, notices())
	}
	journal := take(write("assent.toml", "[box]\nname = \"Attic\"\ncolour = \"red\"\n"))
	if c, err := config.Load(published); err != nil || c.Box.Name != "Kitchen" {
		t.Errorf("%q, %v", c.Box.Name, err)
	}
	const want = "assent.toml on the card is not valid: unknown key box.colour"
	if !strings.Contains(notices(), want) || !strings.Contains(journal, want) {
		t.Errorf("the panel says %q, the journal\n%s", notices(), journal)
	}
	// A file whose words are foreign to the panel must not keep it from saying that something is wrong.
	take(write("assent.toml", "[gateway]\nlisten = \"\U0001f600\"\n"))
	if !strings.Contains(notices(), "is not valid: gateway.listen") {
		t.Errorf("the panel says %q", notices())
	}
	take(filepath.Join(dir, "none.toml"))
	if c, err := config.Load(published); err != nil || c.Box.Name != "Kitchen" || notices() != "" {
		t.Errorf("%q, %v, notice %q", c.Box.Name, err, notices())
	}
}
