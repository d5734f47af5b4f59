package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/capabilities"
)

// calls writes pressed calls, with as much literal text as fills segments soon, until so many segments are full.
func calls(t *testing.T, segments int) *audittest.Disk {
	t.Helper()
	clk, disk := clocktest.New(), audittest.NewDisk()
	l := open(t, clk, disk)
	for n, more := byte(0), true; more; n++ {
		more = disk.Content(segmentFile(segments)) == nil
		c := audittest.Required(clk, n)
		raw, _ := audit.BlobOf(audit.BlobRaw, c.Inv, bytes.Repeat([]byte{n}, 50<<10))
		c.Blobs = append(c.Blobs, raw)
		i, err := l.Intend(t.Context(), c.Entries(), c.Intent, c.Inv)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Effect(t.Context(), i, audit.EffectRecord{Status: capabilities.Done}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return disk
}

func segmentFile(index int) string {
	return fmt.Sprintf("seg-%08d.cborseq", index)
}

// Segments are read ahead of their turn by several goroutines; what is reported is what one would have found.
func TestTheFirstProblemIsReportedHoweverFarAheadOthersWereSeen(t *testing.T) {
	disk := calls(t, 3)
	var contents [][]byte
	for i := range 4 {
		contents = append(contents, disk.Content(segmentFile(i)))
	}
	if r := judge(t, segmentFS(contents...), audit.VerifyOptions{}); r.Status != audit.Intact {
		t.Fatalf("%s, %v", r.Status, r.Problem)
	}
	// One bit in every segment, from the back to the front: the one in front is always the one that counts.
	for i := 3; i >= 0; i-- {
		contents[i] = bytes.Clone(contents[i])
		at := int64(2*audit.Block + 100)
		contents[i][at] ^= 1
		for range 3 {
			r := judge(t, segmentFS(contents...), audit.VerifyOptions{})
			if r.Status != audit.Altered || r.Problem.Segment != uint32(i) || r.Segments != i || r.Problem.Offset > at {
				t.Fatalf("damage in segments %d to 3: %s, %v, %d segments whole", i, r.Status, r.Problem, r.Segments)
			}
		}
	}
}

// A receipt that was verified ahead of its turn was verified with a key that nobody vouched for yet. It counts only if that
// is the key of the epoch, and only for those bytes.
func TestAReceiptVerifiedAheadCountsForItsKeyAlone(t *testing.T) {
	c := audittest.Required(clocktest.New(), 1)
	r := audit.Record{Kind: audit.KindApproval, Seq: 9, BootID: audittest.BootID(), Inv: c.Inv}
	panel, other := public(audittest.ReceiptKey()), public(audittest.GrantKey())
	good := c.Approval.Receipt
	bad := audittest.Sign(audittest.GrantKey(), c.Claims)
	for name, v := range map[string]struct {
		recorded, verified []byte
		key, with          audit.Digest
		want               bool
	}{
		"that receipt, with the epoch's key":          {good, good, panel, panel, true},
		"that receipt, with another key":              {good, good, other, panel, false},
		"with a key that a segment only claims":       {bad, bad, panel, other, false},
		"another receipt, with the epoch's key":       {bad, good, panel, panel, false},
		"another that is not as good, the same press": {good, bad, panel, other, true}, // verified again, with the right key
	} {
		a := c.Approval
		a.Receipt = v.recorded
		if err := audit.Approve(c.Proposal, r, &a, v.key, v.verified, v.with); (err == nil) != v.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestVerifyingEndsWithItsContext(t *testing.T) {
	disk := calls(t, 2)
	fsys, stop := disk.FS(), errors.New("enough")
	// The bubble does not end before its goroutines have.
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := audit.Verify(ctx, fsys, audit.VerifyOptions{Visit: func(e audit.Entered) error {
			if e.Segment == 1 {
				cancel()
			}
			return nil
		}})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled on the way: %v", err)
		}
		if _, err := audit.Verify(ctx, fsys, audit.VerifyOptions{}); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled before: %v", err)
		}
		_, err = audit.Verify(t.Context(), fsys, audit.VerifyOptions{Visit: func(audit.Entered) error { return stop }})
		if !errors.Is(err, stop) {
			t.Errorf("ended by its visitor: %v", err)
		}
	})
}

// Verifying takes the same memory for any length of log: what lives on the heap at its worst does not grow.
func TestVerifyingALongLogTakesNoMoreMemoryThanAShortOne(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2)) // as many segments are in memory as processors are at work, and two more
	long := calls(t, 15)
	peak := func(segments int) (most uint64) {
		var contents [][]byte
		for i := range segments {
			contents = append(contents, long.Content(segmentFile(i)))
		}
		fsys := segmentFS(contents...)
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		before := stats.HeapAlloc
		n := 0
		r, err := audit.Verify(t.Context(), fsys, audit.VerifyOptions{Visit: func(audit.Entered) error {
			if n++; n%97 == 0 {
				runtime.GC()
				runtime.ReadMemStats(&stats)
				most = max(most, stats.HeapAlloc-min(before, stats.HeapAlloc))
			}
			return nil
		}})
		if err != nil || r.Segments != segments {
			t.Fatalf("%+v, %v", r, err)
		}
		return most
	}
	short, full := peak(5), peak(15)
	if full > short+2*audit.SegmentSize {
		t.Errorf("%d KiB for fifteen segments, %d KiB for five", full>>10, short>>10)
	}
}
