package audit_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"assent.home.arpa/appliance/audit"
)

// What stands in the place of a file can make a reader wait for ever, or read for ever. Each of these is a test that does
// not end where it is opened all the same.
func strangers() map[string]func(name string) error {
	return map[string]func(name string) error{
		"a pipe":             func(name string) error { return unix.Mkfifo(name, 0o600) },
		"a link to a pipe":   func(name string) error { return linkTo(name, func(to string) error { return unix.Mkfifo(to, 0o600) }) },
		"a link to a device": func(name string) error { return os.Symlink("/dev/zero", name) },
		"a directory":        func(name string) error { return os.Mkdir(name, 0o700) },
		"a socket":           func(name string) error { return unix.Mknod(name, unix.S_IFSOCK|0o600, 0) },
		"a link to a directory": func(name string) error {
			return linkTo(name, func(to string) error { return os.Mkdir(to, 0o700) })
		},
	}
}

func linkTo(name string, make func(string) error) error {
	to := filepath.Join(filepath.Dir(name), "elsewhere")
	if err := make(to); err != nil {
		return err
	}
	return os.Symlink(to, name)
}

// strange calls see with a log in which the file name is a stranger.
func strange(t *testing.T, see func(t *testing.T, dir, name string)) {
	f := newForger(t)
	f.add([16]byte{}, audit.Freeze{By: audit.ByBox})
	f.seal()
	content := f.segment()
	for what, put := range strangers() {
		for _, name := range []string{segmentFile(0), segmentFile(1), "anchors.cborseq"} {
			t.Run(what+" as "+name, func(t *testing.T) {
				dir := t.TempDir()
				if name != segmentFile(0) {
					writeSparse(t, filepath.Join(dir, segmentFile(0)), content)
				}
				if err := put(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
				see(t, dir, name)
			})
		}
	}
}

func TestOnlyFilesAreRead(t *testing.T) {
	strange(t, func(t *testing.T, dir, name string) {
		_, err := audit.Verify(context.Background(), os.DirFS(dir), audit.VerifyOptions{})
		if err == nil || !strings.Contains(err.Error(), name+" is not a file") {
			t.Error(err)
		}
	})
}

func TestTheSecondVerifierReadsFilesOnly(t *testing.T) {
	interpreter := needPython(t)
	t.Parallel()
	strange(t, func(t *testing.T, dir, name string) {
		out, err := exec.CommandContext(t.Context(), interpreter, secondVerifier, dir).CombinedOutput()
		exit, _ := err.(*exec.ExitError)
		if exit == nil || exit.ExitCode() != 2 || !strings.Contains(string(out), name+": not a file") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// A file of many terabytes takes no room, and no memory either.
func TestTheSecondVerifierReadsNoMoreThanASegmentHas(t *testing.T) {
	interpreter := needPython(t)
	f := newForger(t)
	dir := t.TempDir()
	for _, name := range []string{segmentFile(0), "anchors.cborseq"} {
		writeSparse(t, filepath.Join(dir, name), f.segment())
		if err := os.Truncate(filepath.Join(dir, name), 1<<42); err != nil {
			t.Skip("the file system has no such files: ", err)
		}
	}
	out, err := exec.CommandContext(t.Context(), interpreter, secondVerifier, dir).CombinedOutput()
	exit, _ := err.(*exec.ExitError)
	if exit == nil || exit.ExitCode() != audit.Altered.ExitCode() {
		t.Errorf("%v\n%s", err, out)
	}
}
