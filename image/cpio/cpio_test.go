package cpio_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"assent.home.arpa/image/cpio"
)

// entry is what a reader finds.
type entry struct {
	Name                string
	Mode                uint64
	Links, Major, Minor uint64
	Data                string
}

// read takes an archive apart, field by field as the kernel's document has them.
func read(archive []byte) ([]entry, error) {
	var found []entry
	at := 0
	take := func(n int) (string, error) {
		if len(archive)-at < n {
			return "", io.ErrUnexpectedEOF
		}
		at += n
		return string(archive[at-n : at]), nil
	}
	align := func() { at = min((at+3)/4*4, len(archive)) }
	for {
		header, err := take(110)
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(header, "070701") {
			return nil, fmt.Errorf("magic %q", header[:6])
		}
		var f [13]uint64
		for i := range f {
			if f[i], err = strconv.ParseUint(header[6+8*i:14+8*i], 16, 32); err != nil {
				return nil, err
			}
		}
		name, err := take(int(f[11]))
		if err != nil {
			return nil, err
		}
		align()
		data, err := take(int(f[6]))
		if err != nil {
			return nil, err
		}
		align()
		name, ended := strings.CutSuffix(name, "\x00")
		if !ended {
			return nil, errors.New("a name does not end")
		}
		if name == "TRAILER!!!" {
			if at != len(archive) {
				return nil, errors.New("something follows the end")
			}
			return found, nil
		}
		if f[0] != uint64(len(found)+1) {
			return nil, fmt.Errorf("inode %d", f[0])
		}
		found = append(found, entry{Name: name, Mode: f[1], Links: f[4], Major: f[9], Minor: f[10], Data: data})
	}
}

func TestArchive(t *testing.T) {
	var out bytes.Buffer
	w := cpio.NewWriter(&out)
	for _, err := range []error{
		w.Dir("dev", 0o755),
		w.Char("dev/console", 0o600, 5, 1),
		w.File("init", 0o755, []byte("hello")),
		w.File("empty", 0o644, nil),
		w.Close(),
		w.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	got, err := read(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	want := []entry{
		{Name: "dev", Mode: 0o040755, Links: 2},
		{Name: "dev/console", Mode: 0o020600, Links: 1, Major: 5, Minor: 1},
		{Name: "init", Mode: 0o100755, Links: 1, Data: "hello"},
		{Name: "empty", Mode: 0o100644, Links: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// The first header, byte by byte, so that a reader and a writer with the same mistake do not agree.
	const first = "070701" + "00000001" + "000041ED" + "00000000" + "00000000" + "00000002" + "00000000" + "00000000" +
		"00000000" + "00000000" + "00000000" + "00000000" + "00000004" + "00000000" + "dev\x00" + "\x00\x00"
	if !strings.HasPrefix(out.String(), first) {
		t.Errorf("the archive begins with %q", out.String()[:len(first)])
	}
}

func TestAnyFilesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var out bytes.Buffer
		w := cpio.NewWriter(&out)
		var want []entry
		for i := range rapid.IntRange(0, 6).Draw(t, "files") {
			name := fmt.Sprintf("%d%s", i, strings.Repeat("x", rapid.IntRange(0, 9).Draw(t, "name")))
			data := rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "data")
			if err := w.File(name, 0o644, data); err != nil {
				t.Fatal(err)
			}
			want = append(want, entry{Name: name, Mode: 0o100644, Links: 1, Data: string(data)})
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := read(out.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRefused(t *testing.T) {
	for _, path := range []string{"", "/init", "a//b", "a/", "../init", "a/./b", "TRAILER!!!", "a\x00b", strings.Repeat("x", 5000)} {
		w := cpio.NewWriter(io.Discard)
		if err := w.File(path, 0o644, nil); !errors.Is(err, cpio.ErrEntry) {
			t.Errorf("path %.20q: %v", path, err)
		}
		if err := w.Close(); !errors.Is(err, cpio.ErrEntry) {
			t.Errorf("path %.20q: the archive was closed with %v", path, err)
		}
	}
	w := cpio.NewWriter(io.Discard)
	if err := w.File("init", 0o200000, nil); !errors.Is(err, cpio.ErrEntry) {
		t.Errorf("mode: %v", err)
	}
	w = cpio.NewWriter(io.Discard)
	if err := errors.Join(w.Close(), w.Dir("late", 0o755)); !errors.Is(err, cpio.ErrEntry) {
		t.Errorf("after the end: %v", err)
	}
}
