package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"assent.home.arpa/image/card/cardtest"
	"assent.home.arpa/image/flash/flashtest"
)

// cardCommands are what scripts about cards need: image FILE makes an image, size FILE BYTES an empty disk, zeros FILE demands
// that nothing is on it, boot DISK NAME FILE that its boot partition holds a file.
func cardCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"image": func(ts *testscript.TestScript, _ bool, args []string) {
			ts.Check(cardtest.Image(ts.MkAbs(args[0]), cardtest.Parts()))
		},
		"size": func(ts *testscript.TestScript, _ bool, args []string) {
			n, err := strconv.ParseInt(args[1], 10, 64)
			ts.Check(err)
			ts.Check(os.WriteFile(ts.MkAbs(args[0]), nil, 0o644))
			ts.Check(os.Truncate(ts.MkAbs(args[0]), n))
		},
		"zeros": func(ts *testscript.TestScript, _ bool, args []string) {
			if b := ts.ReadFile(args[0]); strings.Trim(b, "\x00") != "" {
				ts.Fatalf("something was written to %s", args[0])
			}
		},
		"boot": func(ts *testscript.TestScript, _ bool, args []string) {
			f, err := os.Open(ts.MkAbs(args[0]))
			ts.Check(err)
			defer f.Close()
			got, err := flashtest.ReadBoot(f, args[1])
			ts.Check(err)
			if string(got) != ts.ReadFile(args[2]) {
				ts.Fatalf("%s holds %q", args[1], got)
			}
		},
	}
}

// runFlash runs the command on a computer of the test's.
func runFlash(t *testing.T, args ...string) (out, errs string, err error) {
	t.Helper()
	m, err := flashtest.Machine(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var o, e bytes.Buffer
	a := &app{in: strings.NewReader(""), out: &o, err: &e}
	cmd := a.flashCmd(m)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return o.String(), e.String(), err
}

func TestDisksAreListed(t *testing.T) {
	out, _, err := runFlash(t)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"sdb      32.0 GB    Generic SD Reader", `R\x1b[31m1`, "yes", "no: this computer runs from it", "no: it is built in"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing:\n%s", want, out)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Error("a disk commands the terminal")
	}
}

// Issue 5: refused without anything being opened, let alone written.
func TestDisksThatAreRefused(t *testing.T) {
	for name, want := range map[string]string{
		"nvme0n1": "this computer runs from it",
		"sda":     "it is built in",
		"sdc":     "it is in use: /media/me/My Backup",
		"sde":     "it is in use: part of vault",
		"sdb1":    "it is a partition; the whole disk is sdb",
		"sdh":     "it is write-protected",
	} {
		_, _, err := runFlash(t, "box.img", name, "--yes", name)
		var exit *exitError
		if !errors.As(err, &exit) || exit.status != exitWrongCall || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

func TestTheShellCompletesDisksThatCanBeWritten(t *testing.T) {
	m, err := flashtest.Machine(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Join((&app{}).diskNames(m), "\n")
	if names != "mmcblk0\tSC32G\nsdb\tGeneric SD Reader" {
		t.Errorf("got %q", names)
	}
}

func TestAFileThatIsAttachedIsRefused(t *testing.T) {
	dir := t.TempDir()
	m, err := flashtest.Machine(dir)
	if err != nil {
		t.Fatal(err)
	}
	image := filepath.Join(t.TempDir(), "box.img")
	if err := cardtest.Image(image, cardtest.Parts()); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link.img")
	if err := os.Link(filepath.Join(dir, "core.snap"), link); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		filepath.Join(dir, "core.snap"): "it is in use as loop0; detach it first: losetup -d /dev/loop0",
		link:                            "it is in use as loop0",
		filepath.Join(dir, "free.img"):  "too small",
	} {
		var out bytes.Buffer
		a := &app{in: strings.NewReader(""), out: &out, err: &out}
		cmd := a.flashCmd(m)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs([]string{"--file", image, file, "--yes", filepath.Base(file)})
		var exit *exitError
		if err := cmd.ExecuteContext(t.Context()); !errors.As(err, &exit) || exit.status != exitWrongCall || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
}
