package export_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/export"
	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/clock/clocktest"
)

// D4: a copy holds the evidence byte for byte, verifies by itself, and explains itself.
func TestCopy(t *testing.T) {
	log := record(t, 150)
	last := newest(log)
	if last == "seg-00000000.cborseq" {
		t.Fatal("the log has one segment only")
	}
	log["seg-99999999.spare"] = &fstest.MapFile{Data: []byte("x")}
	log["key.cur"] = &fstest.MapFile{Data: []byte("secret")}
	vol, dir := stick(t)
	o := options()
	clk := clocktest.New()
	clk.SetWall(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), clock.Synced)
	o.Clock, o.Name = clk, "Kitchen\x1b[2J"
	var steps []export.Step
	o.Progress = func(s export.Step, done, total int64) {
		if len(steps) == 0 || steps[len(steps)-1] != s {
			steps = append(steps, s)
		}
		if done > total {
			t.Errorf("%s: %d of %d", s, done, total)
		}
	}
	r, err := export.Write(t.Context(), log, vol, o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Log.Status != audit.Intact || r.Dir != fmt.Sprintf("AUDIT-%s-%d", r.Log.Root.String()[:8], r.Log.Head.Seq) {
		t.Errorf("%+v", r)
	}
	if fmt.Sprint(steps) != fmt.Sprint([]export.Step{export.StepCheck, export.StepCopy, export.StepView, export.StepRead}) {
		t.Errorf("steps: %s", steps)
	}
	files := contents(t, filepath.Join(dir, r.Dir))
	for name, f := range log {
		if !strings.HasSuffix(name, ".cborseq") {
			continue
		}
		if !bytes.Equal(files["log/"+name], f.Data) {
			t.Errorf("%s is not as it was", name)
		}
	}
	if r.FirstSegment != 0 || fmt.Sprintf("seg-%08d.cborseq", r.LastSegment) != last || len(files["log/anchors.cborseq"]) == 0 {
		t.Errorf("segments %d to %d, and the last is %s", r.FirstSegment, r.LastSegment, last)
	}
	for name := range files {
		if strings.Contains(name, "key") || strings.Contains(name, "spare") {
			t.Errorf("%s was handed over", name)
		}
	}
	sums := string(files["SHA256SUMS"])
	if sha256.Sum256([]byte(sums)) != r.Sums || strings.Count(sums, "\n") != len(files)-1 || len(files) != r.Files {
		t.Errorf("%d sums, %d files, %d reported", strings.Count(sums, "\n"), len(files), r.Files)
	}
	for line := range strings.Lines(sums) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if got := sha256.Sum256(files[name]); fmt.Sprintf("%x", got) != sum {
			t.Errorf("%s: the sum is another", name)
		}
	}
	for _, part := range []string{".", "log"} {
		sub := filepath.Join(dir, r.Dir, part)
		if v, err := audit.Verify(t.Context(), os.DirFS(sub), audit.VerifyOptions{AllSeals: true, Root: r.Log.Root, Head: r.Log.Head.Code()}); err != nil || v.Status != audit.Intact {
			t.Errorf("%s: %v %v", part, v.Status, err)
		}
	}
	if !bytes.Contains(files[fmt.Sprintf("log/seg-%08d.cborseq", r.LastSegment)], files["seal.cose"]) || len(files["seal.cose"]) < 64 {
		t.Error("seal.cose is no seal of this log")
	}
	readme := string(files["README.txt"])
	for _, want := range []string{"INTACT", r.Log.Root.String(), r.Log.Head.Code(), "assent audit verify", "assent_verify.py", "view/index.html", "no evidence", "2026-11-30 12:00:00 UTC", `"Kitchen\x1b[2J"`} {
		if !strings.Contains(readme, want) {
			t.Errorf("the README does not say %q:\n%s", want, readme)
		}
	}
	if !strings.Contains(readme, "the word of the computer that made this copy") || !bytes.Contains(files["view/data/about.js"], []byte(`"statement":"copy"`)) {
		t.Errorf("somebody else's copy passes for the box's own word:\n%s\n%s", readme, files["view/data/about.js"])
	}
	for _, name := range []string{"FORMAT.md", "audit.cddl", "view/index.html", "view/data/about.js", "view/events.csv", "view/events.jsonl"} {
		if len(files[name]) == 0 {
			t.Errorf("%s is missing", name)
		}
	}
}

// Damage is evidence: it is copied as it is, and everything that is written about it says what is wrong.
func TestDamagedLogIsCopiedAsItIs(t *testing.T) {
	log := record(t, 3)
	for _, c := range []struct {
		event  string
		log    fstest.MapFS
		status audit.Status
	}{
		{"a byte changed", changed(log, "seg-00000000.cborseq", 9000), audit.Altered},
		{"a torn tail", changed(log, "seg-00000000.cborseq", audit.SegmentSize-9), audit.Incomplete},
		{"a segment of another size", fstest.MapFS{"seg-00000000.cborseq": {Data: append(bytes.Clone(log["seg-00000000.cborseq"].Data), 7, 7)}}, 0},
	} {
		t.Run(c.event, func(t *testing.T) {
			vol, dir := quick(t)
			r, err := export.Write(t.Context(), c.log, vol, options())
			if err != nil {
				t.Fatal(err)
			}
			if c.status != 0 && r.Log.Status != c.status || r.Log.Status == audit.Intact {
				t.Errorf("the verdict is %s", r.Log.Status)
			}
			files := contents(t, filepath.Join(dir, r.Dir))
			if !bytes.Equal(files["log/seg-00000000.cborseq"], c.log["seg-00000000.cborseq"].Data) {
				t.Error("the evidence was changed")
			}
			want := strings.ToUpper(r.Log.Status.String())
			if readme := string(files["README.txt"]); !strings.Contains(readme, want) || !strings.Contains(readme, r.Log.Problem.String()) {
				t.Errorf("the README does not say %s and where:\n%s", want, readme)
			}
			if !strings.Contains(string(files["view/data/about.js"]), r.Log.Status.String()) {
				t.Error("the view does not say it")
			}
		})
	}
}

// B13, W7: without the literal texts a copy still verifies, and no part of it has one of them.
func TestRedactedCopy(t *testing.T) {
	log := record(t, 150)
	torn := changed(log, newest(log), audit.SegmentSize-9)
	copy(torn[newest(log)].Data[audit.SegmentSize-1000:], literal)
	for event, log := range map[string]fstest.MapFS{"whole": log, "torn": torn} {
		t.Run(event, func(t *testing.T) {
			vol, dir := quick(t)
			o := options()
			o.Redact = true
			r, err := export.Write(t.Context(), log, vol, o)
			if err != nil {
				t.Fatal(err)
			}
			if r.Log.Status != audit.Intact || r.Log.Withheld != 3*150 || !r.Redacted || !strings.HasSuffix(r.Dir, "-redacted") {
				t.Errorf("%+v", r)
			}
			copied := os.DirFS(filepath.Join(dir, r.Dir))
			v, err := audit.Verify(t.Context(), copied, audit.VerifyOptions{AllSeals: true})
			if err != nil || v.Status != audit.Incomplete || v.Withheld != 450 {
				t.Errorf("whoever was not told sees %v, %v", v.Status, err)
			}
			v, err = audit.Verify(t.Context(), copied, audit.VerifyOptions{AllSeals: true, Withheld: true})
			if err != nil || v.Status != audit.Intact {
				t.Errorf("whoever was told sees %v, %v", v.Problem, err)
			}
			for name, b := range contents(t, filepath.Join(dir, r.Dir)) {
				for _, text := range []string{literal, "tide%20times"} {
					if bytes.Contains(b, []byte(text)) {
						t.Errorf("%s holds %q", name, text)
					}
				}
			}
			if sub, err := fs.Sub(copied, "log"); err != nil || !export.Redacted(sub) || export.Redacted(log) {
				t.Error("the copy does not say that it is redacted, or the log does")
			}
			// All but the literal texts is as it was.
			records := func(log fs.FS) (all []audit.Entered) {
				_, err := audit.Verify(t.Context(), log, audit.VerifyOptions{Visit: func(e audit.Entered) error {
					all = append(all, e)
					return nil
				}})
				if err != nil {
					t.Fatal(err)
				}
				return all
			}
			before, after := records(log), records(copied)
			if len(before) != len(after) {
				t.Fatalf("%d records of %d", len(after), len(before))
			}
			for i := range before {
				if before[i].Link != after[i].Link || after[i].Redacted != (before[i].Kind == audit.KindBlob) {
					t.Fatalf("record %d is another", i)
				}
			}
		})
	}
	t.Run("altered", func(t *testing.T) {
		vol, dir := quick(t)
		o := options()
		o.Redact = true
		if _, err := export.Write(t.Context(), changed(log, "seg-00000000.cborseq", 9000), vol, o); !errors.Is(err, export.ErrUnredactable) || !empty(t, dir) {
			t.Errorf("%v", err)
		}
	})
}

// A log is copied while it is written, and each copy ends with a seal.
func TestCopyWhileItIsWritten(t *testing.T) {
	h := newHouse(t)
	h.call()
	written := make(chan struct{})
	go func() {
		defer close(written)
		for range 300 {
			h.call()
		}
	}()
	seen := audit.Seq(0)
	for done := false; !done; {
		select {
		case <-written:
			done = true
		default:
		}
		vol, _ := quick(t)
		r, err := export.Write(t.Context(), h.disk.FS(), vol, options())
		if err != nil {
			t.Fatal(err)
		}
		if r.Log.Status != audit.Intact {
			t.Errorf("a copy is %s: %s", r.Log.Status, r.Log.Problem)
		}
		if r.Log.Head.Seq < seen {
			t.Error("a later copy ends earlier")
		}
		seen = r.Log.Head.Seq
	}
}

// halfWritten is a log whose newest batch is half there for whoever reads it first.
type halfWritten struct {
	fstest.MapFS
	half  []byte
	reads *int
	halfs map[int]bool // readings, by number, that find a half
}

func (h halfWritten) Open(name string) (fs.File, error) {
	if name == "seg-00000000.cborseq" {
		if *h.reads++; h.halfs[*h.reads] {
			return fstest.MapFS{name: {Data: h.half}}.Open(name)
		}
	}
	return h.MapFS.Open(name)
}

func TestBatchUnderWayIsWaitedFor(t *testing.T) {
	log := record(t, 2)
	whole := log["seg-00000000.cborseq"].Data
	used := len(bytes.TrimRight(whole, "\x00"))
	half := bytes.Clone(whole)
	clear(half[used-100:]) // its seal
	for _, c := range []struct {
		event  string
		halfs  int // readings that find a half, once copying has begun
		copies int
	}{
		{"for two readings", 2, 1},
		{"for so long that it seems torn", 4, 2},
	} {
		t.Run(c.event, func(t *testing.T) {
			vol, _ := quick(t)
			reads, copies, halfs := 0, 0, map[int]bool{}
			o := options()
			o.Progress = func(s export.Step, done, _ int64) {
				if s != export.StepCopy {
					return
				}
				if copies++; copies == 1 {
					for i := range c.halfs {
						halfs[reads+1+i] = true
					}
				}
			}
			r, err := export.Write(t.Context(), halfWritten{log, half, &reads, halfs}, vol, o)
			if err != nil || r.Log.Status != audit.Intact || copies != c.copies {
				t.Errorf("%v: %v after %d copies", err, r.Log.Problem, copies)
			}
		})
	}
}

// pruned is a log whose first segments go while it is copied.
type pruned struct {
	fstest.MapFS
	opened map[string]int
}

func (p pruned) Open(name string) (fs.File, error) {
	if p.opened[name]++; name == "seg-00000000.cborseq" && p.opened[name] == 2 {
		delete(p.MapFS, name)
	}
	return p.MapFS.Open(name)
}

func TestSegmentsPrunedMeanwhileAreLeftOut(t *testing.T) {
	vol, dir := quick(t)
	r, err := export.Write(t.Context(), pruned{record(t, 150), map[string]int{}}, vol, options())
	if err != nil {
		t.Fatal(err)
	}
	files := contents(t, filepath.Join(dir, r.Dir))
	if _, ok := files["log/seg-00000000.cborseq"]; ok || r.FirstSegment != 1 || len(files["log/seg-00000001.cborseq"]) != audit.SegmentSize {
		t.Errorf("segments from %d", r.FirstSegment)
	}
}

// Whatever fails, and wherever: there is no copy, and nothing is left of it.
func TestFailureLeavesNothing(t *testing.T) {
	log := record(t, 2)
	vol, _ := quick(t)
	count := &failing{Volume: vol}
	if _, err := export.Write(t.Context(), log, count, options()); err != nil {
		t.Fatal(err)
	}
	if count.ops < 60 {
		t.Fatalf("only %d operations", count.ops)
	}
	// The last operation makes the new name durable, which nobody can take back.
	for k := 1; k < count.ops; k++ {
		broken := []error{syscall.ENOSPC, syscall.EIO}[k%2]
		vol, dir := quick(t)
		_, err := export.Write(t.Context(), log, &failing{Volume: vol, fail: k, err: broken}, options())
		var room *export.NoRoomError
		switch {
		case err == nil:
			t.Errorf("operation %d failed, and nobody says so", k)
		case broken == syscall.ENOSPC && (!errors.As(err, &room) || room.Need < audit.SegmentSize):
			t.Errorf("operation %d: %v", k, err)
		case broken == syscall.EIO && !errors.Is(err, syscall.EIO):
			t.Errorf("operation %d: %v", k, err)
		}
		if !empty(t, dir) {
			t.Errorf("operation %d failed with %v, and something is left", k, broken)
		}
	}
}

// full is a volume without room.
type full struct{ export.Volume }

func (full) Free() (int64, bool) { return 4096, true }

func TestNoRoomIsSaidBeforeAnythingIsWritten(t *testing.T) {
	vol, dir := quick(t)
	_, err := export.Write(t.Context(), record(t, 1), full{vol}, options())
	if err == nil || err.Error() != "export: no room: the copy needs about 4 MB, and 0 MB are free; make room or use another medium" || !empty(t, dir) {
		t.Errorf("%v", err)
	}
}

// liar is a medium that gives back other bytes.
type liar struct{ export.Volume }

func (l liar) Open(name string) (fs.File, error) {
	if strings.HasSuffix(name, "README.txt") {
		return fstest.MapFS{"x": {Data: []byte("other")}}.Open("x")
	}
	return l.Volume.Open(name)
}

func TestMediumThatGivesBackOtherBytes(t *testing.T) {
	vol, dir := quick(t)
	if _, err := export.Write(t.Context(), record(t, 1), liar{vol}, options()); !errors.Is(err, export.ErrReadBack) || !empty(t, dir) {
		t.Errorf("%v", err)
	}
}

// What has a copy's name may be anything. It is neither believed nor touched, and the copy is made beside it.
func TestCopyIsMadeBesideWhatHasItsName(t *testing.T) {
	log := record(t, 1)
	vol, dir := quick(t)
	plain, err := export.Write(t.Context(), log, vol, options())
	if err != nil || plain.Beside != "" {
		t.Fatalf("%+v, %v", plain, err)
	}
	const forged = "somebody else's"
	seal := filepath.Join(dir, plain.Dir, "seal.cose")
	if err := os.WriteFile(seal, []byte(forged), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"-2", "-3"} {
		r, err := export.Write(t.Context(), log, vol, options())
		if err != nil || r.Dir != plain.Dir+suffix || r.Beside != plain.Dir {
			t.Fatalf("%+v, %v", r, err)
		}
		if v, err := audit.Verify(t.Context(), os.DirFS(filepath.Join(dir, r.Dir, "log")), audit.VerifyOptions{AllSeals: true}); err != nil || v.Status != audit.Intact {
			t.Errorf("%s: %v, %v", r.Dir, v.Problem, err)
		}
	}
	if b, err := os.ReadFile(seal); err != nil || string(b) != forged {
		t.Errorf("what was there now says %q, %v", b, err)
	}
}

// taken is a medium that has something of every name.
type taken struct{ export.Volume }

func (taken) Rename(_, to string) error {
	return &fs.PathError{Op: "rename", Path: to, Err: fs.ErrExist}
}

func TestMediumThatHasEveryName(t *testing.T) {
	vol, dir := quick(t)
	if _, err := export.Write(t.Context(), record(t, 1), taken{vol}, options()); !errors.Is(err, export.ErrExists) || !empty(t, dir) {
		t.Errorf("%v", err)
	}
}

func TestUnfinishedCopyIsReplaced(t *testing.T) {
	vol, dir := quick(t)
	if err := os.MkdirAll(filepath.Join(dir, "AUDIT-unfinished/log"), 0o755); err != nil {
		t.Fatal(err)
	}
	r, err := export.Write(t.Context(), record(t, 1), vol, options())
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 || entries[0].Name() != r.Dir {
		t.Errorf("%v %v", entries, err)
	}
}

func TestCancelledCopyLeavesNothing(t *testing.T) {
	log := record(t, 1)
	for _, at := range []export.Step{export.StepCheck, export.StepCopy, export.StepView, export.StepRead} {
		vol, dir := quick(t)
		ctx, cancel := context.WithCancel(t.Context())
		o := options()
		o.Progress = func(s export.Step, _, _ int64) {
			if s == at {
				cancel()
			}
		}
		if _, err := export.Write(ctx, log, vol, o); !errors.Is(err, context.Canceled) || !empty(t, dir) {
			t.Errorf("%s: %v", at, err)
		}
	}
}

func TestThereIsNoLog(t *testing.T) {
	vol, dir := quick(t)
	if _, err := export.Write(t.Context(), fstest.MapFS{"photo.jpg": {}}, vol, options()); !errors.Is(err, fs.ErrNotExist) || !empty(t, dir) {
		t.Errorf("%v", err)
	}
}
