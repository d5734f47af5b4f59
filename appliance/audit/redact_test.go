package audit_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/capabilities"
)

// secret is content that no other blob has a piece of.
func secret(n int) string { return fmt.Sprintf("what somebody wants to forget, number %06d", n) }

func keep(t *testing.T, l *audit.Log, content []byte) audit.Seq {
	t.Helper()
	e, _ := audit.BlobOf(audit.BlobView, [16]byte{}, content)
	seqs, err := l.Barrier(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return seqs[0]
}

// nextSegment makes the log begin another segment.
func nextSegment(t *testing.T, l *audit.Log, disk *audittest.Disk) {
	t.Helper()
	segments := func() (n int) {
		names, err := disk.List()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasPrefix(name, "seg-") && strings.HasSuffix(name, ".cborseq") {
				n++
			}
		}
		return n
	}
	// More than fits in any segment: the log tries the next one before it says so, which leaves little to read.
	var entries []audit.Entry
	for range audit.SegmentSize/audit.MaxBlob + 1 {
		e, _ := audit.BlobOf(audit.BlobRaw, [16]byte{}, make([]byte, audit.MaxBlob))
		entries = append(entries, e)
	}
	before := segments()
	if _, err := l.Barrier(t.Context(), entries...); !errors.Is(err, audit.ErrTooLarge) {
		t.Fatal(err)
	}
	for segments() == before {
		keep(t, l, make([]byte, audit.MaxBlob))
	}
}

// frame is a record as it is on flash.
type frame struct {
	kind     audit.Kind
	redacted bool
	bytes    string
	body     audit.Digest
}

// frames is every record of the log as it is on flash, and the verdict on it.
func frames(t interface{ Fatal(...any) }, fsys fs.FS) (map[audit.Seq]frame, audit.Report) {
	all := map[audit.Seq]frame{}
	segments := map[uint32][]byte{}
	r := judge(t, fsys, audit.VerifyOptions{Visit: func(e audit.Entered) error {
		b, ok := segments[e.Segment]
		if !ok {
			b = content(t, fsys, fmt.Sprintf("seg-%08d.cborseq", e.Segment))
			segments[e.Segment] = b
		}
		content, _, redacted, size, _ := audit.ParseFrame(b[e.Offset:])
		f := frame{kind: e.Kind, redacted: redacted, bytes: string(b[e.Offset : e.Offset+int64(size)]), body: sha256.Sum256(content)}
		if redacted {
			f.body = audit.Digest(content)
		}
		all[e.Seq] = f
		return nil
	}})
	if r.Status != audit.Intact {
		t.Fatal("the log is ", r.Status, ": ", r.Problem)
	}
	return all, r
}

// content is a file's bytes, not to be changed.
func content(t interface{ Fatal(...any) }, fsys fs.FS, name string) []byte {
	if files, ok := fsys.(fstest.MapFS); ok { // as it is: megabytes are not copied for nothing
		return files[name].Data
	}
	b, err := fs.ReadFile(fsys, name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// onlyGone demands that after is before without the bodies of gone, and what was added since.
func onlyGone(t interface {
	Fatal(...any)
	Errorf(string, ...any)
}, before, after map[audit.Seq]frame, gone []audit.Seq,
) {
	for seq, was := range before {
		is := after[seq]
		if slices.Contains(gone, seq) {
			if !is.redacted || is.body != was.body || is.bytes[len(is.bytes)-32:] != was.bytes[len(was.bytes)-32:] {
				t.Errorf("record %d is not redacted as it should be", seq)
			}
			continue
		}
		if is != was {
			t.Errorf("record %d, %s, is not what it was", seq, was.kind)
		}
	}
}

// holding lists the files in which text is.
func holding(t interface{ Fatal(...any) }, fsys fs.FS, text string) (names []string) {
	err := fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if bytes.Contains(content(t, fsys, name), []byte(text)) {
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// B13: on a real directory, the literal payloads of a call go, in the segment that is being written, and nothing else does.
// The chain is whole, the log goes on, and the removal is on record.
func TestALiteralPayloadIsRemovedAndTheChainStaysWhole(t *testing.T) {
	clk := clocktest.New()
	l, dir := audittest.New(t, clk)
	call := audittest.Required(clk, 1)
	under := intend(t, l, call)
	const words = "tide%20times"
	if len(holding(t, os.DirFS(dir), words)) != 1 {
		t.Fatal("the request is not on record")
	}
	var blobs []audit.Seq
	for _, e := range audittest.Records(t, dir) {
		if e.Kind == audit.KindBlob {
			blobs = append(blobs, e.Seq)
		}
	}
	before, _ := frames(t, os.DirFS(dir))
	seqs, err := l.Barrier(t.Context(), audit.Entry{Payload: audit.Admin{Action: audit.AdminRedact, Outcome: audit.Approved, By: audit.ByBox}})
	if err != nil {
		t.Fatal(err)
	}
	report, err := l.Redact(t.Context(), audit.RedactOptions{Seqs: blobs, By: audit.ByBox, Reason: "asked for", Admin: seqs[0]})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(audit.RedactReport{Redacted: len(blobs), Segments: 1}, report); d != "" {
		t.Error(d)
	}
	if names := holding(t, os.DirFS(dir), words); len(names) != 0 {
		t.Errorf("still in %v", names)
	}
	if _, err := l.Effect(t.Context(), under, audit.EffectRecord{Status: capabilities.Done}); err != nil {
		t.Errorf("the call that was under way: %v", err)
	}
	after, r := frames(t, os.DirFS(dir))
	onlyGone(t, before, after, blobs)
	if len(r.Open) != 0 {
		t.Error("what was recorded after the redaction is not in the log")
	}
	if r.Redacted != len(blobs) || r.Withheld != 0 || int(r.Kinds[audit.KindRedact]) != len(blobs) {
		t.Errorf("redacted %d, withheld %d, on record %d of %d", r.Redacted, r.Withheld, r.Kinds[audit.KindRedact], len(blobs))
	}
	for _, e := range audittest.Records(t, dir) {
		if p, ok := e.Payload.(*audit.Redact); ok && p.Seq == blobs[0] {
			want := &audit.Redact{Seq: blobs[0], Body: before[blobs[0]].body, By: audit.ByBox, Purpose: audit.BlobArguments, Reason: "asked for", Admin: seqs[0]}
			if d := cmp.Diff(want, p); d != "" {
				t.Error(d)
			}
		}
	}
	report, err = l.Redact(t.Context(), audit.RedactOptions{Seqs: blobs, By: audit.ByBox})
	if d := cmp.Diff(audit.RedactReport{Gone: len(blobs)}, report); d != "" || err != nil {
		t.Error("once more: ", d, err)
	}
}

// threeSegments is a closed log with two secrets in each of three segments, an effect that nobody recorded, and the
// places of the secrets.
func threeSegments(t *testing.T) (*audittest.Disk, []audit.Seq) {
	t.Helper()
	clk, disk := clocktest.New(), audittest.NewDisk()
	l := open(t, clk, disk)
	var seqs []audit.Seq
	for n := range 6 {
		seqs = append(seqs, keep(t, l, []byte(secret(n))))
		if n%2 == 1 && n < 5 {
			nextSegment(t, l, disk)
		}
	}
	intend(t, l, audittest.Automatic(1))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return disk, seqs
}

// B13: power is lost at any operation of a redaction, and again while it is being finished. It happened or it did not,
// and where it was acknowledged it did: every body that was to go is nowhere in the directory, and every other is as it was.
func TestPowerLossWhileRedacting(t *testing.T) {
	t.Parallel()
	base, seqs := threeSegments(t)
	gone := []audit.Seq{seqs[0], seqs[2], seqs[5]}
	before, _ := frames(t, base.FS())
	redact := func(disk *audittest.Disk, fault audittest.Fault) (ops int, err error) {
		l := open(t, clocktest.New(), disk)
		disk.Arm(fault)
		_, err = l.Redact(context.Background(), audit.RedactOptions{Seqs: gone, By: audit.ByBox})
		ops = disk.Ops()
		l.Close()
		return ops, err
	}
	total, err := redact(base.Copy(), audittest.Fault{})
	if err != nil || total < 20 {
		t.Fatalf("%d operations without a crash, %v", total, err)
	}
	dead := errors.New("the power is gone")
	random := rand.New(rand.NewPCG(5, 6))
	nothing, everything := func(int) int { return 0 }, func(n int) int { return n - 1 }
	outcomes := map[int]int{}
	for at := 1; at <= total+1; at++ {
		for how, choose := range [][]func(int) int{{nothing, random.IntN}, {random.IntN}, {everything}}[at%3] {
			disk := base.Copy()
			_, err := redact(disk, audittest.Fault{At: at, Err: dead, Dead: true, Short: at%2 == 0})
			image := disk.Crash(choose)
			if at%3 > 0 { // again, while recovering
				image.Arm(audittest.Fault{At: 1 + random.IntN(40), Err: dead, Dead: true, Short: true})
				if l, err := audit.Open(t.Context(), audittest.Options(clocktest.New(), image)); err == nil {
					l.Close()
				}
				image = image.Crash(random.IntN)
			}
			open(t, clocktest.New(), image).Close()
			files := image.FS()
			after, r := frames(t, files)
			outcomes[r.Redacted]++
			left := gone
			switch {
			case r.Withheld != 0 || (r.Redacted != 0 && r.Redacted != len(gone)) || int(r.Kinds[audit.KindRedact]) != r.Redacted:
				t.Errorf("%d redacted, %d withheld, %d on record", r.Redacted, r.Withheld, r.Kinds[audit.KindRedact])
			case err == nil && r.Redacted == 0:
				t.Error("an acknowledged redaction did not happen")
			case r.Redacted == 0:
				left = nil
			}
			onlyGone(t, before, after, left)
			for n, seq := range seqs {
				names := holding(t, files, secret(n))
				if want := !slices.Contains(left, seq); len(names) > 0 != want {
					t.Errorf("secret %d is in %v", n, names)
				}
			}
			for _, name := range []string{"redact.todo", "replace.tmp"} {
				if image.Content(name) != nil {
					t.Errorf("%s is left", name)
				}
			}
			if t.Failed() {
				t.Fatalf("power lost at operation %d of %d, way %d", at, total, how)
			}
		}
	}
	if outcomes[0] == 0 || outcomes[len(gone)] == 0 {
		t.Errorf("not both outcomes were seen: %v", outcomes)
	}
}

// Where there is no room, a redaction is told so and loses nothing; it is finished once there is. Any other failure ends
// the log, and the next start finishes it.
func TestARedactionThatFailsIsFinishedLater(t *testing.T) {
	t.Parallel()
	base, seqs := threeSegments(t)
	before, _ := frames(t, base.FS())
	for _, failure := range []error{syscall.ENOSPC, syscall.EIO} {
		resumed := 0
		for at := 1; ; at += 2 {
			clk, disk := clocktest.New(), base.Copy()
			l := open(t, clk, disk)
			disk.Arm(audittest.Fault{At: at, Err: failure, Short: at%4 == 1})
			_, err := l.Redact(t.Context(), audit.RedactOptions{Seqs: seqs, By: audit.ByTimer})
			if disk.Ops() < at {
				break // it was done before the fault
			}
			if !errors.Is(err, audit.ErrUnavailable) || !errors.Is(err, failure) {
				t.Fatalf("%v at operation %d: %v", failure, at, err)
			}
			disk.Arm(audittest.Fault{})
			promised := disk.Content("redact.todo") != nil
			var report audit.RedactReport
			if errors.Is(err, audit.ErrPoisoned) {
				l.Close()
				l = open(t, clk, disk)
			} else {
				if failure != syscall.ENOSPC || !errors.Is(err, audit.ErrFull) {
					t.Fatalf("%v at operation %d did not end the log: %v", failure, at, err)
				}
				if disk.Content("replace.tmp") != nil {
					t.Errorf("%v at operation %d: room is taken by what cannot be finished", failure, at)
				}
				if report, err = l.Redact(t.Context(), audit.RedactOptions{Seqs: seqs[:1], By: audit.ByTimer}); err != nil {
					t.Fatal(err)
				}
				resumed++
			}
			// Where the promise cannot be seen, it was not made, or its removal is what failed.
			after, r := frames(t, disk.FS())
			gone := seqs[:report.Redacted]
			if promised || r.Redacted == len(seqs) {
				gone = seqs
			}
			if r.Redacted != len(gone) || (promised && report.Redacted != 0) {
				t.Errorf("%v at operation %d: promised %v, %d redacted, %+v", failure, at, promised, r.Redacted, report)
			}
			onlyGone(t, before, after, gone)
			l.Close()
		}
		if (resumed > 3) != (failure == syscall.ENOSPC) {
			t.Errorf("%v: %d redactions went on without a restart", failure, resumed)
		}
	}
}

// A disk that stays full: the log works, and starts, with the redaction undone.
func TestAFullDiskPutsARedactionOff(t *testing.T) {
	base, seqs := threeSegments(t)
	var whole *audittest.Disk
	for at := 1; whole == nil; at++ {
		disk := base.Copy()
		l := open(t, clocktest.New(), disk)
		disk.Arm(audittest.Fault{At: at, Err: syscall.ENOSPC})
		_, err := l.Redact(t.Context(), audit.RedactOptions{Seqs: seqs, By: audit.ByTimer})
		if err == nil {
			t.Fatal("there is no operation at which a promised redaction finds no room")
		}
		if !errors.Is(err, audit.ErrPoisoned) && disk.Content("redact.todo") != nil {
			keep(t, l, []byte("the log goes on"))
			whole = disk
		}
		l.Close()
	}
	// Room for a start and for nothing of the redaction.
	var disk *audittest.Disk
	var l *audit.Log
	for at := 1; l == nil; at++ {
		disk = whole.Copy()
		disk.Arm(audittest.Fault{At: at, Err: syscall.ENOSPC})
		opened, err := audit.Open(t.Context(), audittest.Options(clocktest.New(), disk))
		switch {
		case err != nil:
		case disk.Ops() < at:
			t.Fatal("there is no operation at which a start finds no room for the redaction")
		case disk.Content("redact.todo") == nil:
			opened.Close()
		default:
			l = opened
		}
	}
	if r := intact(t, disk); r.Redacted != 0 {
		t.Errorf("%d redacted", r.Redacted)
	}
	keep(t, l, []byte("the log goes on"))
	l.Close()
	open(t, clocktest.New(), disk)
	if r := intact(t, disk); r.Redacted != len(seqs) || int(r.Kinds[audit.KindRedact]) != len(seqs) {
		t.Errorf("%d redacted, %d on record, of %d", r.Redacted, r.Kinds[audit.KindRedact], len(seqs))
	}
}

// Retention: whole closed segments whose times are all older. One whose clock was never set is as old as a later one.
func TestOldSegmentsLoseTheirBlobs(t *testing.T) {
	clk, disk := clocktest.New(), audittest.NewDisk()
	l := open(t, clk, disk)
	day := func(n int) time.Time { return time.Date(2026, 11, n, 12, 0, 0, 0, time.UTC) }
	var seqs []audit.Seq
	for n := range 5 { // never set; day 1; day 2; day 3; being written, day 1
		switch n {
		case 1, 2, 3:
			clk.SetWall(day(n), clock.Synced)
		case 4:
			clk.SetWall(day(1), clock.Synced)
		}
		seqs = append(seqs, keep(t, l, []byte(secret(n))))
		if n < 4 {
			nextSegment(t, l, disk)
		}
	}
	// How many of the secrets are gone, oldest first.
	gone := func() (n int) {
		files := disk.FS()
		for i := range seqs {
			switch present := len(holding(t, files, secret(i))) > 0; {
			case !present && i == n:
				n++
			case !present:
				t.Fatalf("secret %d is gone and an older one is not", i)
			}
		}
		return n
	}
	named := keep(t, l, []byte("named, in the segment that is being written"))
	for _, c := range []struct {
		before time.Time
		gone   int
	}{
		{day(1), 0}, {day(2), 2}, {day(2), 2}, {day(4), 4}, {day(30), 4},
	} {
		was := gone()
		report, err := l.Redact(t.Context(), audit.RedactOptions{Before: c.before, By: audit.ByTimer, Reason: "retention"})
		if err != nil {
			t.Fatal(err)
		}
		if gone() != c.gone || report.Segments != c.gone-was || (report.Redacted > 0) != (c.gone > was) {
			t.Errorf("before %v: %d gone where %d were due, %+v", c.before, gone(), c.gone, report)
		}
		if r := intact(t, disk); r.Withheld != 0 {
			t.Errorf("%d withheld", r.Withheld)
		}
	}
	report, err := l.Redact(t.Context(), audit.RedactOptions{Seqs: []audit.Seq{named}, Before: day(30), By: audit.ByBox})
	if d := cmp.Diff(audit.RedactReport{Redacted: 1, Segments: 1}, report); d != "" || err != nil || gone() != 4 {
		t.Errorf("one by name, and %d that are old: %s, %v", gone(), d, err)
	}
}

func TestOnlyTheUnknownPastIsNotOld(t *testing.T) {
	clk, disk := clocktest.New(), audittest.NewDisk()
	l := open(t, clk, disk)
	keep(t, l, []byte(secret(1)))
	nextSegment(t, l, disk)
	report, err := l.Redact(t.Context(), audit.RedactOptions{Before: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), By: audit.ByTimer})
	if err != nil || report.Redacted != 0 {
		t.Errorf("segments whose time nobody knows: %+v, %v", report, err)
	}
}

func TestWhatCannotBeRedactedIsRefusedAndNothingChanges(t *testing.T) {
	clk, disk := clocktest.New(), audittest.NewDisk()
	l := open(t, clk, disk)
	blob := keep(t, l, []byte(secret(1)))
	for name, c := range map[string]struct {
		o    audit.RedactOptions
		want error
	}{
		"the genesis":         {audit.RedactOptions{Seqs: []audit.Seq{blob, 0}, By: audit.ByBox}, audit.ErrMalformed},
		"a seal":              {audit.RedactOptions{Seqs: []audit.Seq{blob, blob + 1}, By: audit.ByBox}, audit.ErrMalformed},
		"what is not there":   {audit.RedactOptions{Seqs: []audit.Seq{blob, blob + 2}, By: audit.ByBox}, audit.ErrMalformed},
		"by nobody":           {audit.RedactOptions{Seqs: []audit.Seq{blob}}, audit.ErrMalformed},
		"by no such actor":    {audit.RedactOptions{Seqs: []audit.Seq{blob}, By: audit.ByConsole + 1}, audit.ErrMalformed},
		"reason with escapes": {audit.RedactOptions{Seqs: []audit.Seq{blob}, By: audit.ByBox, Reason: "\x1b[2J"}, audit.ErrMalformed},
		"too many":            {audit.RedactOptions{Seqs: make([]audit.Seq, audit.MaxRedact+1), By: audit.ByBox}, audit.ErrTooLarge},
	} {
		head, content := l.Head(), disk.Content(segment0)
		report, err := l.Redact(t.Context(), c.o)
		if !errors.Is(err, c.want) || report != (audit.RedactReport{}) {
			t.Errorf("%s: %+v, %v", name, report, err)
		}
		if d := cmp.Diff(head, l.Head()); d != "" || !bytes.Equal(content, disk.Content(segment0)) {
			t.Errorf("%s: something was written: %s", name, d)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Redact(ctx, audit.RedactOptions{Seqs: []audit.Seq{blob}, By: audit.ByBox}); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that gave up: %v", err)
	}
	if r := intact(t, disk); r.Redacted != 0 {
		t.Errorf("%d redacted", r.Redacted)
	}
}

// A damaged segment is evidence: it is not written anew.
func TestADamagedSegmentIsNotRedacted(t *testing.T) {
	disk, seqs := threeSegments(t)
	b := disk.Content(segment0)
	at := bytes.Index(b, []byte(secret(1)))
	b[at] ^= 1
	disk.Put(segment0, b)
	l := open(t, clocktest.New(), disk) // which reads the last two segments
	before := map[string][]byte{}
	names, err := disk.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		before[n] = disk.Content(n)
	}
	if _, err := l.Redact(t.Context(), audit.RedactOptions{Seqs: seqs, By: audit.ByBox}); !errors.Is(err, audit.ErrCorrupt) {
		t.Errorf("got %v", err)
	}
	for n, b := range before {
		if !bytes.Equal(b, disk.Content(n)) {
			t.Errorf("%s was changed", n)
		}
	}
}

// A torn tail may hold a piece of what is to go.
func TestTornTailsGoWithARedaction(t *testing.T) {
	disk := audittest.NewDisk()
	live(t, disk)
	content := disk.Content(segment0)
	copy(content[endOf(content):], secret(7))
	disk.Put(segment0, content)
	l := open(t, clocktest.New(), disk)
	seq := keep(t, l, []byte(secret(7)))
	if names := holding(t, disk.FS(), secret(7)); len(names) != 2 {
		t.Fatalf("in %v", names)
	}
	if _, err := l.Redact(t.Context(), audit.RedactOptions{Seqs: []audit.Seq{seq}, By: audit.ByBox}); err != nil {
		t.Fatal(err)
	}
	if names := holding(t, disk.FS(), secret(7)); len(names) != 0 {
		t.Errorf("still in %v", names)
	}
}

// A last segment without bodies is recovered as any other: intents, presses and seals need no literal payload.
func TestARedactedLastSegmentIsRecovered(t *testing.T) {
	clk, disk := clocktest.New(), audittest.NewDisk()
	l := open(t, clk, disk)
	i := intend(t, l, audittest.Required(clk, 1))
	var blobs []audit.Seq
	all, _ := frames(t, disk.FS())
	for seq, f := range all {
		if f.kind == audit.KindBlob {
			blobs = append(blobs, seq)
		}
	}
	if r, err := l.Redact(t.Context(), audit.RedactOptions{Seqs: blobs, By: audit.ByBox}); err != nil || r.Redacted != 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	l.Close()
	content := disk.Content(segment0)
	copy(content[endOf(content):], "a torn tail")
	disk.Put(segment0, content)
	known := newLife()
	known.acknowledged[i.Seq()], known.executed = audit.KindIntent, []audit.Seq{i.Seq()}
	known.check(t, disk)
	if r := intact(t, disk); r.Redacted != 3 || r.Withheld != 0 {
		t.Errorf("redacted %d, withheld %d", r.Redacted, r.Withheld)
	}
}

// Any part of any log can be redacted, at any time and more than once: the log is intact, what was named is gone, and every
// other record has the bytes that it had.
func TestWhateverIsRedactedTheRestStays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		clk, disk := clocktest.New(), audittest.NewDisk()
		start := func() *audit.Log {
			l, err := audit.Open(context.Background(), audittest.Options(clk, disk))
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		l := start()
		var gone []audit.Seq
		for n := range rapid.IntRange(1, 2).Draw(t, "steps") {
			for range rapid.IntRange(0, 3).Draw(t, "blobs") {
				size := rapid.SampledFrom([]int{0, 10, 5000}).Draw(t, "size")
				e, _ := audit.BlobOf(audit.BlobRaw, [16]byte{}, make([]byte, size))
				if err := l.Append(context.Background(), e); err != nil {
					t.Fatal(err)
				}
			}
			c := audittest.Required(clk, byte(n))
			if _, err := l.Intend(context.Background(), c.Entries(), c.Intent, c.Inv); err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "restart") {
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
				l = start()
			}
			before, _ := frames(t, disk.FS())
			var chosen []audit.Seq
			for seq := range audit.Seq(len(before)) {
				if before[seq].kind == audit.KindBlob && rapid.Bool().Draw(t, "redact") {
					chosen = append(chosen, seq)
				}
			}
			report, err := l.Redact(context.Background(), audit.RedactOptions{Seqs: chosen, By: audit.ByBox})
			if err != nil || report.Redacted+report.Gone != len(chosen) {
				t.Fatalf("%+v of %d, %v", report, len(chosen), err)
			}
			after, _ := frames(t, disk.FS())
			onlyGone(t, before, after, chosen)
			gone = append(gone, chosen...)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		start().Close()
		slices.Sort(gone)
		r := judge(t, disk.FS(), audit.VerifyOptions{AllSeals: true})
		if r.Status != audit.Intact || r.Withheld != 0 || r.Redacted != len(slices.Compact(gone)) {
			t.Fatalf("%s, %v, %d redacted of %d, %d withheld", r.Status, r.Problem, r.Redacted, len(slices.Compact(gone)), r.Withheld)
		}
	})
}

// TestAPlantedPromiseIsNotSignedInAnybodysName: nothing signs redact.todo, so whoever had the flash may have written it.
func TestAPlantedPromiseIsNotSignedInAnybodysName(t *testing.T) {
	clk, disk := clocktest.New(), audittest.NewDisk()
	l := open(t, clk, disk)
	e, _ := audit.BlobOf(audit.BlobRaw, [16]byte{}, []byte("a secret"))
	if _, err := l.Barrier(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	head := l.Head()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	planted := make([]byte, 16)
	binary.BigEndian.PutUint64(planted[8:], 1<<62)
	mode, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		t.Fatal(err)
	}
	b, err := mode.Marshal(map[int]any{1: uint8(audit.ByBox), 2: "asked for at the box", 4: uint64(head.Seq) + 1, 5: planted})
	if err != nil {
		t.Fatal(err)
	}
	disk.Put("redact.todo", b)
	open(t, clk, disk)
	found := 0
	for _, r := range records(t, disk) {
		if p, ok := r.Payload.(*audit.Redact); ok {
			found++
			if p.By != audit.ByGuard || p.Reason != "resumed" {
				t.Errorf("recorded as %+v", p)
			}
		}
	}
	if found == 0 {
		t.Error("the promise was not read as one: the test plants something else")
	}
}
