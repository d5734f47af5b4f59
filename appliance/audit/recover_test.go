package audit_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/capabilities"
)

const segment0 = "seg-00000000.cborseq"

// life is what somebody outside knows of a log: what was acknowledged, and what was executed because of it.
type life struct {
	acknowledged map[audit.Seq]audit.Kind
	executed     []audit.Seq // intents
	settled      map[audit.Seq]bool
}

func newLife() life {
	return life{acknowledged: map[audit.Seq]audit.Kind{}, settled: map[audit.Seq]bool{}}
}

// live starts a log and uses it until something fails: two calls, a barrier with blobs, an appended record.
func live(t *testing.T, disk *audittest.Disk) life {
	t.Helper()
	known := newLife()
	clk := clocktest.New()
	l, err := audit.Open(t.Context(), audittest.Options(clk, disk))
	if err != nil {
		return known
	}
	defer l.Close()
	for n := range byte(2) {
		c := audittest.Required(clk, n)
		i, err := l.Intend(t.Context(), c.Entries(), c.Intent, c.Inv)
		if err != nil {
			return known
		}
		known.acknowledged[i.Seq()], known.executed = audit.KindIntent, append(known.executed, i.Seq())
		seq, err := l.Effect(t.Context(), i, audit.EffectRecord{Status: capabilities.Done})
		if err != nil {
			return known
		}
		known.acknowledged[seq] = audit.KindEffect
		known.settled[i.Seq()] = true
	}
	e, _ := audit.BlobOf(audit.BlobRaw, [16]byte{}, bytes.Repeat([]byte("blob "), 2000))
	seqs, err := l.Barrier(t.Context(), e)
	if err != nil {
		return known
	}
	known.acknowledged[seqs[0]] = audit.KindBlob
	return known
}

// check opens a log after a crash and demands of it what its acknowledgements promised.
func (known life) check(t *testing.T, disk *audittest.Disk) {
	t.Helper()
	l, err := audit.Open(t.Context(), audittest.Options(clocktest.New(), disk))
	if err != nil {
		t.Fatalf("the log cannot be opened again: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	found := map[audit.Seq]audit.Kind{}
	effects := map[audit.Seq]capabilities.Status{}
	r := verify(t, disk, audit.VerifyOptions{AllSeals: true, Visit: func(e audit.Entered) error {
		found[e.Seq] = e.Kind
		if p, ok := e.Payload.(*audit.EffectRecord); ok {
			effects[p.Intent] = p.Status
		}
		return nil
	}})
	if r.Status != audit.Intact || len(r.Open) != 0 {
		t.Errorf("after a start the log is %s, %v, with %d effects that nobody recorded", r.Status, r.Problem, len(r.Open))
	}
	// What a start writes may take the place of what was lost, so the number alone proves nothing.
	for seq, kind := range known.acknowledged {
		if found[seq] != kind {
			t.Errorf("record %d, %s, was acknowledged; there is now %s", seq, kind, found[seq])
		}
	}
	for _, i := range known.executed {
		if s := effects[i]; (s != capabilities.Done && s != capabilities.Unknown) || (known.settled[i] && s != capabilities.Done) {
			t.Errorf("intent %d was executed, settled %v, and its effect is %s", i, known.settled[i], s)
		}
	}
}

// A failed write or sync is never tried again, and nothing is executed from then on.
func TestAFailedWriteEndsTheLog(t *testing.T) {
	for _, failure := range []error{syscall.EIO, syscall.ENOSPC, syscall.EROFS} {
		for at := range 2 { // write, sync
			for _, short := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v at %d short %v", failure, at, short), func(t *testing.T) {
					clk, disk := clocktest.New(), audittest.NewDisk()
					l := open(t, clk, disk)
					head := l.Head()
					disk.Arm(audittest.Fault{At: at + 1, Err: failure, Short: short})
					c := audittest.Automatic(1)
					i, err := l.Intend(t.Context(), c.Entries(), c.Intent, c.Inv)
					if !errors.Is(err, audit.ErrUnavailable) || !errors.Is(err, audit.ErrPoisoned) || !errors.Is(err, failure) || i.Valid() {
						t.Fatalf("got %v, intent valid %v", err, i.Valid())
					}
					ops := disk.Ops()
					if _, err := l.Intend(t.Context(), c.Entries(), c.Intent, c.Inv); !errors.Is(err, audit.ErrPoisoned) {
						t.Errorf("afterwards: %v", err)
					}
					if err := l.Append(t.Context(), audit.Entry{Payload: audit.Freeze{On: true, By: audit.ByBox}}); !errors.Is(err, audit.ErrUnavailable) {
						t.Errorf("append afterwards: %v", err)
					}
					if disk.Ops() != ops {
						t.Errorf("%d more operations after the failure", disk.Ops()-ops)
					}
					if d := cmp.Diff(head, l.Head()); d != "" {
						t.Error("the head moved to what is not on flash: ", d)
					}
					l.Close()
					disk.Arm(audittest.Fault{})
					life{}.check(t, disk)
				})
			}
		}
	}
}

// A full disk: nothing new begins, what is under way can still be settled, and it passes when there is room again.
func TestAFullDiskRefusesNewCallsAndKeepsOutcomes(t *testing.T) {
	clk, disk := clocktest.New(), audittest.NewDisk()
	o := audittest.Options(clk, disk)
	o.Quota = 3 * audit.SegmentSize
	l, err := audit.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var under []audit.Intent
	for n := range byte(60) {
		under = append(under, intend(t, l, audittest.Automatic(n)))
	}
	fill := func() error {
		for {
			e, _ := audit.BlobOf(audit.BlobRaw, [16]byte{}, make([]byte, audit.MaxBlob))
			if _, err := l.Barrier(t.Context(), e); err != nil {
				return err
			}
		}
	}
	if err := fill(); !errors.Is(err, audit.ErrUnavailable) || !errors.Is(err, audit.ErrFull) || errors.Is(err, audit.ErrPoisoned) {
		t.Fatalf("got %v", err)
	}
	c := audittest.Automatic(200)
	if _, err := l.Intend(t.Context(), c.Entries(), c.Intent, c.Inv); !errors.Is(err, audit.ErrFull) {
		t.Errorf("a new call: %v", err)
	}
	for range 3000 { // counted, or refused; in no case does it take the room of outcomes
		if err := l.Append(t.Context(), audit.Entry{Payload: audit.Claim{From: audit.ByGateway, Class: audit.ClaimProtocol, Text: make([]byte, audit.MaxClaimText)}}); err != nil {
			if !errors.Is(err, audit.ErrFull) {
				t.Errorf("append: %v", err)
			}
			break
		}
	}
	for _, i := range under {
		if _, err := l.Effect(t.Context(), i, audit.EffectRecord{Status: capabilities.Done}); err != nil {
			t.Fatalf("an outcome does not fit: %v", err)
		}
	}
	intact(t, disk)
}

func TestNoRoomForASpareRefusesNewCallsUntilThereIs(t *testing.T) {
	clk, disk := clocktest.New(), audittest.NewDisk()
	l := open(t, clk, disk)
	names, err := disk.List()
	if err != nil || !slices.Contains(names, "seg-00000001.spare") {
		t.Fatalf("no spare is held: %v, %v", names, err)
	}
	disk.Arm(audittest.Fault{Full: true})
	// The first blobs use up the segment and the spare; then there is none.
	var used error
	for n := byte(0); used == nil && n < 40; n++ {
		e, _ := audit.BlobOf(audit.BlobRaw, [16]byte{}, bytes.Repeat([]byte{n}, audit.MaxBlob))
		_, used = l.Barrier(t.Context(), e)
	}
	c := audittest.Automatic(1)
	_, err = l.Intend(t.Context(), c.Entries(), c.Intent, c.Inv)
	for _, err := range []error{used, err} {
		if !errors.Is(err, audit.ErrUnavailable) || !errors.Is(err, audit.ErrFull) || errors.Is(err, audit.ErrPoisoned) {
			t.Fatalf("got %v", err)
		}
	}
	disk.Arm(audittest.Fault{})
	intend(t, l, c)
	intact(t, disk)
}

func TestATornTailIsSetAsideAndSaidSo(t *testing.T) {
	for name, junk := range map[string][]byte{
		"a frame cut midway, and junk": append([]byte{0x83, 0x00, 0x59, 0x01, 0x00}, bytes.Repeat([]byte{0xff}, 700)...),
		"junk alone":                   []byte("not a frame"),
		"one byte":                     {0x83},
	} {
		t.Run(name, func(t *testing.T) {
			disk := audittest.NewDisk()
			known := live(t, disk)
			content := disk.Content(segment0)
			end := endOf(content)
			copy(content[end:], junk)
			disk.Put(segment0, content)
			if r := verify(t, disk, audit.VerifyOptions{}); r.Status != audit.Incomplete || r.Problem.Offset != int64(end) {
				t.Errorf("before recovery: %s %v", r.Status, r.Problem)
			}
			known.check(t, disk)
			var boots []*audit.Boot
			for _, e := range records(t, disk) {
				if p, ok := e.Payload.(*audit.Boot); ok {
					boots = append(boots, p)
				}
			}
			if len(boots) != 2 || boots[1].TailBytes != uint64(len(junk)) || boots[1].TailDigest != audittest.Sum(string(junk)) {
				t.Fatalf("boots %+v", boots)
			}
			names, err := disk.List()
			if err != nil {
				t.Fatal(err)
			}
			kept := slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, "torn-") })
			if len(kept) != 1 || !bytes.Equal(disk.Content(kept[0]), junk) {
				t.Errorf("set aside: %v", kept)
			}
		})
	}
}

// endOf is the offset after the last batch.
func endOf(content []byte) int {
	n := len(bytes.TrimRight(content, "\x00"))
	return (n + audit.Block - 1) / audit.Block * audit.Block
}

func TestCorruptionIsNotRepaired(t *testing.T) {
	whole := audittest.NewDisk()
	live(t, whole)
	content := whole.Content(segment0)
	for at := 1; at < endOf(content)-5*audit.Block; at += 911 {
		disk := whole.Copy()
		damaged := disk.Content(segment0)
		damaged[at] ^= 0x10
		disk.Put(segment0, damaged)
		_, err := audit.Open(t.Context(), audittest.Options(clocktest.New(), disk))
		if !errors.Is(err, audit.ErrCorrupt) {
			t.Fatalf("bit flipped at %d: %v", at, err)
		}
		if !bytes.Equal(damaged, disk.Content(segment0)) {
			t.Fatalf("bit flipped at %d: the evidence was changed", at)
		}
	}
}

func TestALogWhoseFilesWereTakenIsNotBegunAnew(t *testing.T) {
	for name, take := range map[string]func(*audittest.Disk) error{
		"segments": func(d *audittest.Disk) error { return d.Remove(segment0) },
		"segments and seal key": func(d *audittest.Disk) error {
			return errors.Join(d.Remove(segment0), d.Remove("key.cur"))
		},
		"segments, and the seal key damaged": func(d *audittest.Disk) error {
			d.Put("key.cur", []byte{0xa0})
			return d.Remove(segment0)
		},
		"seal key":   func(d *audittest.Disk) error { return d.Remove("key.cur") },
		"root":       func(d *audittest.Disk) error { return d.Remove("root.pub") },
		"other root": func(d *audittest.Disk) error { d.Put("root.pub", []byte(audit.Digest{1}.String()+"\n")); return nil },
		"other key":  func(d *audittest.Disk) error { d.Put("key.cur", []byte{0xa0}); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			disk := audittest.NewDisk()
			live(t, disk)
			if err := take(disk); err != nil {
				t.Fatal(err)
			}
			if _, err := audit.Open(t.Context(), audittest.Options(clocktest.New(), disk)); !errors.Is(err, audit.ErrCorrupt) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAnEffectNobodyRecordedIsUnknownAfterARestart(t *testing.T) {
	clk, disk := clocktest.New(), audittest.NewDisk()
	l := open(t, clk, disk)
	i := intend(t, l, audittest.Required(clk, 1))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = open(t, clk, disk)
	var boot *audit.Boot
	var effect *audit.EffectRecord
	for _, e := range records(t, disk) {
		switch p := e.Payload.(type) {
		case *audit.Boot:
			boot = p
		case *audit.EffectRecord:
			effect = p
		}
	}
	want := &audit.EffectRecord{Intent: i.Seq(), Status: capabilities.Unknown, Code: capabilities.CodeInterrupted, Cause: audit.CauseRecovery}
	if d := cmp.Diff(want, effect); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]audit.ID{i.Inv()}, boot.Unresolved); d != "" {
		t.Error(d)
	}
	if _, err := l.Effect(t.Context(), i, audit.EffectRecord{Status: capabilities.Done}); !errors.Is(err, audit.ErrSettled) {
		t.Errorf("the old run's intent: %v", err)
	}
}
