package audit_test

import (
	"bytes"
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/capabilities"
)

const anchors = "anchors.cborseq"

// fillUpTo writes blobs until the log has begun the segment of that index.
func fillUpTo(t *testing.T, l *audit.Log, disk *audittest.Disk, segment string) {
	t.Helper()
	for n := byte(0); disk.Content(segment) == nil; n++ {
		e, _ := audit.BlobOf(audit.BlobRaw, [16]byte{}, bytes.Repeat([]byte{n}, audit.MaxBlob))
		if _, err := l.Barrier(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

// export records that a copy of everything up to now was handed over.
func export(t *testing.T, l *audit.Log, last audit.Seq) audit.Seq {
	t.Helper()
	seqs, err := l.Barrier(t.Context(), audit.Entry{Payload: audit.Export{LastSegment: 1 << 20, Last: last, OK: true}})
	if err != nil {
		t.Fatal(err)
	}
	return seqs[0]
}

// What somebody could read over a cable is in nobody's hands, as far as the box knows: no segment counts it as an export.
func TestAnOfferOverACableIsNoCopy(t *testing.T) {
	for _, cable := range []bool{false, true} {
		clk, disk := clocktest.New(), audittest.NewDisk()
		l := open(t, clk, disk)
		last := l.Head().Seq
		if _, err := l.Barrier(t.Context(), audit.Entry{Payload: audit.Export{Last: last, OK: true, Cable: cable}}); err != nil {
			t.Fatal(err)
		}
		fillUpTo(t, l, disk, "seg-00000001.cborseq")
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		var second audit.Segment
		if r, err := audit.Verify(t.Context(), disk.FS(), audit.VerifyOptions{Visit: func(e audit.Entered) error {
			if s, ok := e.Payload.(*audit.Segment); ok && s.Index == 1 {
				second = *s
			}
			return nil
		}}); err != nil || r.Status != audit.Intact {
			t.Fatal(r.Problem, err)
		}
		if want := map[bool]audit.Seq{false: last}[cable]; second.Index != 1 || second.Exported != want || (second.Export == 0) != cable {
			t.Errorf("cable %v: the next segment says that %d are exported by %d", cable, second.Exported, second.Export)
		}
	}
}

func approvePrune(t *testing.T, l *audit.Log) audit.Seq {
	t.Helper()
	seqs, err := l.Barrier(t.Context(), audit.Entry{Payload: audit.Admin{Action: audit.AdminPrune, Outcome: audit.Approved, By: audit.ByBox}})
	if err != nil {
		t.Fatal(err)
	}
	return seqs[0]
}

func without(fsys fs.FS, names ...string) fstest.MapFS {
	left := fstest.MapFS{}
	for name, f := range fsys.(fstest.MapFS) {
		left[name] = f
	}
	for _, n := range names {
		delete(left, n)
	}
	return left
}

// Who steals the present key can sign for a day, or for a segment, whichever is shorter.
func TestSealKeysAreChangedDailyAndWithEachSegment(t *testing.T) {
	clk, disk := clocktest.New(), audittest.NewDisk()
	l := open(t, clk, disk)
	barrier := func() {
		t.Helper()
		if _, err := l.Barrier(t.Context(), audit.Entry{Payload: audit.Freeze{On: true, By: audit.ByBox}}); err != nil {
			t.Fatal(err)
		}
	}
	barrier()
	clk.Advance(25 * time.Hour)
	barrier()
	barrier()
	fillUpTo(t, l, disk, "seg-00000001.cborseq")
	var got []audit.EpochReason
	r := verify(t, disk, audit.VerifyOptions{AllSeals: true, Visit: func(e audit.Entered) error {
		if p, ok := e.Payload.(*audit.Epoch); ok {
			got = append(got, p.Reason)
		}
		return nil
	}})
	if d := cmp.Diff([]audit.EpochReason{audit.EpochStart, audit.EpochDay, audit.EpochSegment}, got); d != "" || r.Status != audit.Intact {
		t.Error(r.Problem, d)
	}
	if names, _ := disk.List(); disk.Content("key.next") != nil {
		t.Errorf("the announced key is still there beside the present one: %v", names)
	}
}

// prunedLog has lost its first segment to a press.
func prunedLog(t *testing.T) (*audittest.Disk, *clocktest.Clock) {
	t.Helper()
	clk, disk := clocktest.New(), audittest.NewDisk()
	l, err := audit.Open(t.Context(), audittest.Options(clk, disk))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	fillUpTo(t, l, disk, "seg-00000002.cborseq")
	export(t, l, l.Head().Seq)
	if err := l.Prune(t.Context(), 0, approvePrune(t, l)); err != nil {
		t.Fatal(err)
	}
	fillUpTo(t, l, disk, "seg-00000003.cborseq")
	c := audittest.Required(clk, 1)
	i := intend(t, l, c)
	if _, err := l.Effect(t.Context(), i, audit.EffectRecord{Status: capabilities.Done}); err != nil {
		t.Fatal(err)
	}
	return disk, clk
}

func TestAPrunedLogGoesOn(t *testing.T) {
	disk, clk := prunedLog(t)
	if disk.Content(segment0) != nil {
		t.Fatal("nothing was pruned")
	}
	r := verify(t, disk, audit.VerifyOptions{AllSeals: true})
	if r.Status != audit.Intact || r.Pruned == 0 || r.First == 0 || r.Root == (audit.Digest{}) || r.Status.ExitCode() != 0 {
		t.Fatalf("%+v, %v", r, r.Problem)
	}
	l := open(t, clk, disk)
	if l.Root() != r.Root {
		t.Error("another root key")
	}
	intend(t, l, audittest.Automatic(9))
	if again := intact(t, disk); again.Root != r.Root || again.Pruned != r.Pruned {
		t.Errorf("after a restart: %+v", again)
	}
}

// What a copy is said to hold stays, too, however little room there is: who writes copies could say that of one that is none.
func TestNothingIsPrunedWithoutAPress(t *testing.T) {
	clk, disk := clocktest.New(), audittest.NewDisk()
	o := audittest.Options(clk, disk)
	o.Quota = 4 * audit.SegmentSize
	l, err := audit.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	fillUpTo(t, l, disk, "seg-00000002.cborseq")
	export(t, l, l.Head().Seq)
	if _, err := l.Barrier(t.Context(), audit.Entry{Payload: audit.Export{LastSegment: 1, Last: l.Head().Seq, OK: true, Cable: true}}); err != nil {
		t.Fatal(err)
	}
	for n := byte(0); err == nil; n++ {
		e, _ := audit.BlobOf(audit.BlobRaw, [16]byte{}, bytes.Repeat([]byte{n}, audit.MaxBlob))
		_, err = l.Barrier(t.Context(), e)
	}
	if !errors.Is(err, audit.ErrFull) || disk.Content(segment0) == nil {
		t.Fatalf("%v, and segment 0 is gone: %v", err, disk.Content(segment0) == nil)
	}
	for name, admin := range map[string]audit.Seq{"no record": 0, "another record": 5} {
		if err := l.Prune(t.Context(), 0, admin); !errors.Is(err, audit.ErrMalformed) {
			t.Errorf("%s approves: %v", name, err)
		}
	}
	if _, err := l.Barrier(t.Context(), audit.Entry{Payload: audit.Prune{Export: 1}}); !errors.Is(err, audit.ErrMalformed) {
		t.Errorf("a caller writes a prune record: %v", err)
	}
	if disk.Content(segment0) == nil {
		t.Error("segment 0 was pruned though nobody approved it")
	}
	if got := l.Room(); got.Used != o.Quota || got.Quota != o.Quota {
		t.Errorf("room: %+v", got)
	}
}

func TestSomebodyAtTheBoxMayPrune(t *testing.T) {
	clk, disk := clocktest.New(), audittest.NewDisk()
	l := open(t, clk, disk)
	fillUpTo(t, l, disk, "seg-00000003.cborseq")
	if err := l.Prune(t.Context(), 2, approvePrune(t, l)); !errors.Is(err, audit.ErrMalformed) {
		t.Errorf("the last two segments are needed to recover: %v", err)
	}
	if err := l.Prune(t.Context(), 1, approvePrune(t, l)); err != nil {
		t.Fatal(err)
	}
	if r := intact(t, disk); r.Pruned != 2 || r.Segments != 2 {
		t.Errorf("%+v", r)
	}
	for _, bad := range []audit.Admin{
		{Action: audit.AdminPrune, Outcome: audit.Approved, By: audit.ByPhone},
	} {
		if _, err := l.Barrier(t.Context(), audit.Entry{Payload: bad}); !errors.Is(err, audit.ErrMalformed) {
			t.Errorf("approved by a phone: %v", err)
		}
	}
}

// A log that begins in its middle is believed for its anchors, and for nothing else.
func TestAPrunedLogNeedsItsAnchors(t *testing.T) {
	disk, _ := prunedLog(t)
	whole := disk.FS()
	if r := judge(t, without(whole, anchors), audit.VerifyOptions{}); r.Status != audit.Incomplete {
		t.Errorf("without anchors: %s, %v", r.Status, r.Problem)
	}
	content, root := disk.Content(anchors), judge(t, whole, audit.VerifyOptions{}).Root
	for at := 0; at < len(content); at += 7 {
		damaged := without(whole)
		b := bytes.Clone(content)
		b[at] ^= 0x10
		damaged[anchors] = &fstest.MapFile{Data: b}
		// Of the genesis only what the root key signed is believed; its boot id and salt prove nothing, and are not used.
		if r := judge(t, damaged, audit.VerifyOptions{}); r.Status == audit.Intact && (at > 400 || r.Root != root) {
			t.Fatalf("byte %d of the anchors changed unseen", at)
		}
	}
	other, _ := prunedLog(t)
	foreign := without(whole)
	foreign[anchors] = &fstest.MapFile{Data: other.Content(anchors)}
	if r := judge(t, foreign, audit.VerifyOptions{}); r.Status != audit.Altered {
		t.Errorf("with another box's anchors: %s, %v", r.Status, r.Problem)
	}
	names, _ := disk.List()
	var first string
	for _, n := range names {
		if n[:4] == "seg-" {
			first = n
			break
		}
	}
	// More is gone than was pruned.
	if r := judge(t, without(whole, first), audit.VerifyOptions{}); r.Status != audit.Incomplete {
		t.Errorf("without %s: %s, %v", first, r.Status, r.Problem)
	}
}

// Anchors that know more than the log show a rollback even if nobody kept a seal.
func TestAnchorsBeyondTheLogShowARollback(t *testing.T) {
	clk, disk := clocktest.New(), audittest.NewDisk()
	if err := open(t, clk, disk).Close(); err != nil {
		t.Fatal(err)
	}
	before := disk.Content(segment0)
	if err := open(t, clk, disk).Close(); err != nil {
		t.Fatal(err)
	}
	rolled := without(disk.FS())
	rolled[segment0] = &fstest.MapFile{Data: before}
	if r := judge(t, rolled, audit.VerifyOptions{}); r.Status != audit.Incomplete {
		t.Errorf("%s, %v", r.Status, r.Problem)
	}
	if r := judge(t, without(rolled, anchors), audit.VerifyOptions{}); r.Status != audit.Intact {
		t.Errorf("nothing can show it without the anchors, and yet: %s, %v", r.Status, r.Problem)
	}
}

// Not all of the genesis is signed, so the anchors' copy of it can differ and still verify. The start goes by the log.
func TestAnchorsOfAnotherGenesisAreMadeAnew(t *testing.T) {
	clk, disk := clocktest.New(), audittest.NewDisk()
	if err := open(t, clk, disk).Close(); err != nil {
		t.Fatal(err)
	}
	content := disk.Content(anchors)
	boot := audittest.BootID()
	at := bytes.Index(content, boot[:])
	if at < 0 {
		t.Fatal("the anchors hold no genesis")
	}
	content[at+3] ^= 1
	disk.Put(anchors, content)
	if r := judge(t, disk.FS(), audit.VerifyOptions{}); r.Status != audit.Altered {
		t.Errorf("before the start: %s, %v", r.Status, r.Problem)
	}
	if err := open(t, clk, disk).Close(); err != nil {
		t.Fatal(err)
	}
	intact(t, disk)
}

func TestSealsKeptElsewhere(t *testing.T) {
	clk, disk := clocktest.New(), audittest.NewDisk()
	l := open(t, clk, disk)
	early := l.Head()
	image := disk.Content(segment0)
	intend(t, l, audittest.Automatic(1))
	late := l.Head()
	r := verify(t, disk, audit.VerifyOptions{Anchors: [][]byte{early.Seal, late.Seal}})
	want := []audit.AnchorReport{{Seq: early.Seq, State: audit.AnchorHeld}, {Seq: late.Seq, State: audit.AnchorHeld}}
	if d := cmp.Diff(want, r.Anchors); d != "" || r.Status != audit.Intact {
		t.Error(r.Problem, d)
	}
	rolled := segmentFS(image)
	r = judge(t, rolled, audit.VerifyOptions{Anchors: [][]byte{early.Seal, late.Seal}})
	want[1].State = audit.AnchorBeyond
	if d := cmp.Diff(want, r.Anchors); d != "" || r.Status != audit.Incomplete {
		t.Error("rolled back:", r.Status, r.Problem, d)
	}
	other := audittest.NewDisk()
	ol := open(t, clocktest.New(), other)
	intend(t, ol, audittest.Automatic(1))
	if r := verify(t, other, audit.VerifyOptions{Anchors: [][]byte{early.Seal}}); r.Status != audit.Altered {
		t.Errorf("another box's seal: %s, %v", r.Status, r.Problem)
	}
	if _, err := audit.Verify(t.Context(), disk.FS(), audit.VerifyOptions{Anchors: [][]byte{[]byte("junk")}}); !errors.Is(err, audit.ErrMalformed) {
		t.Errorf("junk as an anchor: %v", err)
	}
	pruned, _ := prunedLog(t)
	// Nothing in the log can be held against a seal of a part that was pruned, and that is no proof of anything.
	for accepted, status := range map[bool]audit.Status{false: audit.Incomplete, true: audit.Intact} {
		r := verify(t, pruned, audit.VerifyOptions{Anchors: [][]byte{early.Seal}, Pruned: accepted})
		if len(r.Anchors) != 1 || r.Anchors[0].State != audit.AnchorPruned || r.Status != status {
			t.Errorf("of a part that was pruned: %s, %+v", r.Status, r.Anchors)
		}
	}
}

// A flood of what nobody at the box asked for cannot take the room of what somebody approves: records are counted, calls
// refused.
func TestHalfTheQuotaIsForWhatSomebodyApproves(t *testing.T) {
	clk, disk := clocktest.New(), audittest.NewDisk()
	o := audittest.Options(clk, disk)
	o.Quota = 4 * audit.SegmentSize
	l, err := audit.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	const flood = 6000
	for range flood {
		text := bytes.Repeat([]byte("x"), audit.MaxClaimText)
		if err := l.Append(t.Context(), audit.Entry{Payload: audit.Claim{From: audit.ByGateway, Class: audit.ClaimProtocol, Text: text}}); err != nil {
			t.Fatal(err)
		}
	}
	room := l.Room()
	if !room.Collapsed || room.Used > 3*audit.SegmentSize {
		t.Errorf("room after the flood: %+v", room)
	}
	own := audittest.Automatic(250)
	if _, err := l.Intend(t.Context(), own.Entries(), own.Intent, own.Inv); !errors.Is(err, audit.ErrShare) || errors.Is(err, audit.ErrUnavailable) {
		t.Errorf("a call that nobody at the box asked for: %v", err)
	}
	for n := range byte(60) {
		i := intend(t, l, audittest.Required(clk, n))
		if _, err := l.Effect(t.Context(), i, audit.EffectRecord{Status: capabilities.Done}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	claims, counted := 0, uint64(0)
	for _, e := range records(t, disk) {
		switch p := e.Payload.(type) {
		case *audit.Claim:
			claims++
		case *audit.Suppressed:
			if p.Of != audit.KindClaim || p.Class != uint8(audit.ClaimProtocol) {
				t.Errorf("counted as %+v", p)
			}
			counted += p.Count
		}
	}
	if claims == 0 || uint64(claims)+counted != flood {
		t.Errorf("%d claims written and %d counted, of %d", claims, counted, flood)
	}
	// The share survives a restart.
	l, err = audit.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if room := l.Room(); !room.Collapsed {
		t.Errorf("after a restart: %+v", room)
	}
	intact(t, disk)
}

func TestCallsThatRunByThemselvesShareTheirHalf(t *testing.T) {
	clk, disk := clocktest.New(), audittest.NewDisk()
	o := audittest.Options(clk, disk)
	o.Quota = 4 * audit.SegmentSize
	l, err := audit.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	for ; err == nil; n++ {
		c := audittest.Automatic(byte(n))
		c.Inv[1], c.Inv[2] = byte(n>>8), 9
		var i audit.Intent
		if i, err = l.Intend(t.Context(), c.Entries(), c.Intent, c.Inv); err == nil {
			_, err = l.Effect(t.Context(), i, audit.EffectRecord{Status: capabilities.Done})
		}
	}
	if !errors.Is(err, audit.ErrShare) || n < 100 {
		t.Fatalf("after %d calls: %v", n, err)
	}
	i := intend(t, l, audittest.Required(clk, 1))
	if _, err := l.Effect(t.Context(), i, audit.EffectRecord{Status: capabilities.Done}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	// The share is counted the same way after a restart.
	l, err = audit.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := audittest.Automatic(7)
	c.Inv[2] = 1
	if _, err := l.Intend(t.Context(), c.Entries(), c.Intent, c.Inv); !errors.Is(err, audit.ErrShare) {
		t.Errorf("after a restart: %v", err)
	}
	intend(t, l, audittest.Required(clk, 2))
	intact(t, disk)
}

// Each start takes a block, and a log that is full must still open, so that somebody can make room in it.
func TestAFullLogOpensAgainAndAgain(t *testing.T) {
	clk, disk := clocktest.New(), audittest.NewDisk()
	o := audittest.Options(clk, disk)
	o.Quota = 3 * audit.SegmentSize
	fill := func(l *audit.Log) {
		t.Helper()
		var err error
		for n := audit.MaxBlob; err == nil || n > 1; n = max(1, n/2) { // to the last block
			e, _ := audit.BlobOf(audit.BlobRaw, [16]byte{}, make([]byte, n))
			_, err = l.Barrier(t.Context(), e)
		}
		if !errors.Is(err, audit.ErrFull) {
			t.Fatal(err)
		}
	}
	l, err := audit.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	fill(l)
	for range 40 {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if l, err = audit.Open(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	defer l.Close()
	admin := approvePrune(t, l)
	if err := l.Prune(t.Context(), 0, admin); err != nil {
		t.Errorf("making room by a press: %v", err)
	}
	intact(t, disk)
}

// What somebody does at the box is recorded even when nothing new may begin.
func TestAPanicIsRecordedInAFullLog(t *testing.T) {
	clk, disk := clocktest.New(), audittest.NewDisk()
	o := audittest.Options(clk, disk)
	o.Quota = 3 * audit.SegmentSize
	l, err := audit.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for n := 0; err == nil; n++ {
		c := audittest.Required(clk, byte(n))
		c.Inv[1] = byte(n >> 8)
		c.Claims.Inv = c.Inv
		c.Approval.Receipt = audittest.Sign(audittest.ReceiptKey(), c.Claims)
		var i audit.Intent
		if i, err = l.Intend(t.Context(), c.Entries(), c.Intent, c.Inv); err == nil {
			_, err = l.Effect(t.Context(), i, audit.EffectRecord{Status: capabilities.Done})
		}
	}
	if !errors.Is(err, audit.ErrFull) {
		t.Fatal(err)
	}
	if _, err := l.Barrier(t.Context(), audit.Entry{Payload: audit.Freeze{On: true, By: audit.ByBox}}); err != nil {
		t.Errorf("a panic: %v", err)
	}
	if _, err := l.Barrier(t.Context(), audit.Entry{Payload: audit.Fault{Class: audit.FaultDisplay}}); !errors.Is(err, audit.ErrFull) {
		t.Errorf("what can wait: %v", err)
	}
	if r := intact(t, disk); r.Kinds[audit.KindFreeze] != 1 {
		t.Error("the panic is not in the log")
	}
}

func TestUnknownEffectsAreListedUntilSomebodyLookedForGood(t *testing.T) {
	clk, disk := clocktest.New(), audittest.NewDisk()
	l := open(t, clk, disk)
	c := audittest.Required(clk, 1)
	view, digest := audit.BlobOf(audit.BlobView, c.Inv, []byte("Search for\ntide times"))
	c.Blobs, c.Proposal.ArgsView = append(c.Blobs, view), digest
	i := intend(t, l, c)
	if got := l.Unknown(); len(got) != 0 {
		t.Errorf("under way is not unknown: %+v", got)
	}
	disk = disk.Crash(func(int) int { return 0 })
	for range 2 { // a second start finds it as well
		l = open(t, clk, disk)
		got := l.Unknown()
		if len(got) != 1 || got[0].Inv != audit.ID(c.Inv) || got[0].Proposal.Capability != "web.search" || !bytes.HasPrefix(got[0].View, []byte("Search for")) ||
			got[0].Intent != i.Seq() || got[0].Cause != audit.CauseRecovery || got[0].Code != capabilities.CodeInterrupted || !bytes.HasPrefix(got[0].Arguments, []byte(`{"query"`)) {
			t.Fatalf("got %+v", got)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	l = open(t, clk, disk)
	seen := audit.Observe{Intent: i.Seq(), Matches: audit.NotKnown, Final: true, By: audit.ByPhone, Slot: 2}
	if _, err := l.Barrier(t.Context(), audit.Entry{Inv: c.Inv, Payload: seen}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := open(t, clk, disk).Unknown(); len(got) != 0 {
		t.Errorf("still listed: %+v", got)
	}
}
