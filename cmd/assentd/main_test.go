package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCommandLine(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("good.toml", "[turn]\nproposals = 4\n")
	nowhere := write("nowhere.toml", "[panel]\nbus = \"nowhere\"\n")
	roomy := write("roomy.toml", "[audit]\nquota_mb = 500\n")
	bad := write("bad.toml", "[panel]\nauto_approve = true\n")
	for _, tc := range []struct {
		name   string
		args   []string
		status int
		out    string // in standard output
		err    string // in standard error
	}{
		{"nothing", nil, 3, "", "usage: assentd"},
		{"a cry for help", []string{"--help"}, 0, "panel-test         tries display", ""},
		{"help with one role", []string{"check-config", "-h"}, 0, "", "where it does not exist"},
		{"a role that is none", []string{"approve"}, 3, "", "usage: assentd"},
		{"an unknown flag", []string{"guard", "-simulate"}, 3, "", "not defined"},
		{"the effective configuration", []string{"check-config", "-config", good}, 0, "proposals = 4", ""},
		{"the configuration, explained", []string{"check-config", "-explain", "-config", good}, 0, "# calls that it may propose for one question; 1 to 32; default 6\nproposals = 4", ""},
		{"a record that does not fit", []string{"check-config", "-config", roomy}, 1, "", "audit.quota_mb can be at most 448 on a box"},
		{"a file without its flag", []string{"check-config", good}, 0, "proposals = 4", ""},
		{"a bad file without its flag", []string{"check-config", bad}, 1, "", "unknown key panel.auto_approve"},
		{"two files", []string{"check-config", good, bad}, 3, "", "check-config takes one file"},
		{"a file with its flag and one without", []string{"check-config", "-config", good, bad}, 3, "", "check-config takes one file"},
		{"another role explained", []string{"guard", "-explain"}, 3, "", "not defined"},
		{"an unknown key", []string{"check-config", "-config", bad}, 1, "", "unknown key panel.auto_approve"},
		{"a file that is not there", []string{"check-config", "-config", filepath.Join(dir, "none.toml")}, 1, "", "no such file"},
		{"the version", []string{"version"}, 0, "assentd", ""},
		{"a worker without a class", []string{"worker", "-config", good}, 3, "", "worker takes one class"},
		{"a worker of no class", []string{"worker", "-config", good, "root"}, 3, "", "worker takes one class"},
		{"settings of two files", []string{"settings", "-config", good, "a", "b"}, 3, "", "at most one file"},
		{"an import with arguments", []string{"import", "-config", good, "/dev/sda"}, 3, "", "takes nothing but -config"},
		{"a cable with arguments", []string{"cable", "-config", good, "/dev/sda"}, 3, "", "takes nothing but -config"},
		{"a gadget with arguments", []string{"gadget-setup", "-config", good, "hid"}, 3, "", "takes nothing but -config"},
		{"a gadget on a PC", []string{"gadget-setup", "-config", good}, 1, "", "no user assent-export"},
		{"a model with arguments", []string{"model", "-config", good, "x.gguf"}, 3, "", "takes nothing but -config"},
		{"a panel test with arguments", []string{"panel-test", "-config", good, "approve"}, 3, "", "takes nothing but -config"},
		{"a panel test of no panel", []string{"panel-test", "-config", nowhere}, 1, "", "i2c bus"},
		{"a guard on a PC", []string{"guard", "-config", good}, 1, "", "on a PC use assentsim"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			status := run(tc.args, os.Stdin, &out, &errs)
			if status != tc.status || !strings.Contains(out.String(), tc.out) || !strings.Contains(errs.String(), tc.err) {
				t.Fatalf("status %d\n%s\n%s", status, &out, &errs)
			}
		})
	}
}
