package audit_test

import (
	"bytes"
	"crypto/sha256"
	"testing"
	"testing/fstest"
	"time"
	"unicode"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/clock/clocktest"
)

// body adds a record with a body that the encoder would refuse, under a true link.
func (f *forger) body(r audit.Record) {
	f.t.Helper()
	body, err := audit.EncodeSlowly(r)
	if err != nil {
		f.t.Fatal(err)
	}
	frame := audit.RawFrame(f.link, 0, body)
	f.frames = append(f.frames, forged{seq: f.next, bytes: frame, body: body})
	f.link = audit.Digest(frame[len(frame)-32:])
	f.next++
}

// atLimits are logs under true links and seals that are just within a limit, or just beyond it.
func atLimits(t *testing.T) []specimen {
	t.Helper()
	var all []specimen
	freeze := func(name string, change func(*audit.Record, *audit.Freeze)) {
		f := newForger(t)
		p := audit.Freeze{On: true, By: audit.ByBox}
		r := f.record([16]byte{}, p)
		change(&r, &p)
		r.Payload = p
		f.body(r)
		f.seal()
		all = append(all, specimenOf(name, audit.VerifyOptions{}, f.segment()))
	}
	wall := func(ms int64) func(*audit.Record, *audit.Freeze) {
		return func(r *audit.Record, _ *audit.Freeze) { r.Wall, r.Clock = ms, clock.Synced }
	}
	freeze("the last wall time", wall(audit.MaxWall))
	freeze("a wall time too late", wall(audit.MaxWall+1))
	freeze("a wall time far too late", wall(9_000_000_000_000_000_000))
	freeze("a wall time before the epoch", wall(-1))
	text := func(r rune) func(*audit.Record, *audit.Freeze) {
		return func(_ *audit.Record, p *audit.Freeze) { p.Reason = "a" + string(r) + "b" }
	}
	freeze("a format character of Unicode 15", text(0x13439))
	freeze("a character that is not assigned", text(0x0378))
	freeze("a character of Unicode 16", text(0x1c89))

	anchored := func(f *forger) []byte {
		b := append([]byte{0x82, 0}, encoded(t, f.frames[0].body)...)
		b = append(append(b, 0x84, 1), encoded(t, f.frames[1].bytes[len(f.frames[1].bytes)-32:])...)
		return append(append(b, encoded(t, f.frames[2].body)...), encoded(t, f.frames[3].body)...)
	}
	for name, n := range map[string]int{"64 effects under way": 64, "65 effects under way": 65} {
		f := newForger(t)
		s := audit.Segment{
			Index: 1, First: f.next, PrevLink: f.link, Epoch: 1, SealKey: public(f.key),
			ReceiptKey: public(audittest.ReceiptKey()), GrantKey: public(audittest.GrantKey()), Pruned: 1,
		}
		for i := range n {
			s.Open = append(s.Open, audit.OpenIntent{Intent: audit.Seq(i + 1), Inv: audit.ID{1, byte(i)}})
		}
		begin := len(f.frames)
		f.body(f.record([16]byte{}, s))
		f.seal()
		all = append(all, specimen{name: name, files: map[string][]byte{
			segmentFile(1): render(f.frames[begin:], 1<<40), "anchors.cborseq": anchored(f),
		}})
	}

	f := newForger(t)
	content, anchors := f.segment(), anchored(f)
	genesis := append([]byte{0x82, 0}, encoded(t, f.frames[0].body)...)
	for name, tail := range map[string][]byte{
		"nothing": nil, "a byte of an entry": {0x84}, "a byte of none": {0x99}, "a link cut": {0x84, 1, 0x58, 32, 7}, "a short link": {0x84, 1, 0x41, 0, 0x61},
		"a long link cut": {0x84, 1, 0x58, 33, 7}, "a text cut": append(link32(), 0x78), "a body cut": append(link32(), 0x59, 0x10, 0x00, 7),
		"a body too long cut": append(link32(), 0x59, 0x10, 0x01, 7), "a body of 60,000 bytes": append(append(link32(), 0x59, 0xea, 0x60), make([]byte, 60000)...),
		"a length of eight bytes cut": append(link32(), 0x5b, 0), "a second genesis": genesis,
	} {
		all = append(all, specimen{name: "anchors: " + name, files: map[string][]byte{segmentFile(0): content, "anchors.cborseq": append(bytes.Clone(genesis), tail...)}})
	}
	for cut := 0; cut < len(anchors)*2/3; cut += 17 {
		bent := bytes.Clone(anchors)
		bent[len(bent)-1-cut] ^= 0x20
		all = append(all,
			specimen{name: "anchors: cut", files: map[string][]byte{segmentFile(0): content, "anchors.cborseq": anchors[:len(anchors)-cut]}},
			specimen{name: "anchors: bent", files: map[string][]byte{segmentFile(0): content, "anchors.cborseq": bent}},
			specimen{name: "anchors: bent and cut", files: map[string][]byte{segmentFile(0): content, "anchors.cborseq": bent[:len(bent)-cut/2]}})
	}
	all = append(all,
		specimenOf("two MiB", audit.VerifyOptions{}, append(bytes.Clone(content), content...)),
		specimen{name: "a name of nine digits", files: map[string][]byte{segmentFile(0): content, "seg-100000000.cborseq": content}})
	return all
}

func link32() []byte { return append([]byte{0x84, 1, 0x58, 32}, make([]byte, 32)...) }

func TestLimitsAreLimits(t *testing.T) {
	want := map[string]audit.Status{
		"the last wall time": audit.Intact, "a wall time too late": audit.Altered, "a wall time far too late": audit.Altered, "a wall time before the epoch": audit.Altered,
		"a format character of Unicode 15": audit.Altered, "a character that is not assigned": audit.Intact, "a character of Unicode 16": audit.Intact,
		"64 effects under way": audit.Intact, "65 effects under way": audit.Altered,
		"anchors: nothing": audit.Intact, "anchors: a byte of an entry": audit.Intact, "anchors: a byte of none": audit.Altered, "anchors: a link cut": audit.Intact,
		"anchors: a short link": audit.Altered, "anchors: a long link cut": audit.Altered, "anchors: a text cut": audit.Altered, "anchors: a body cut": audit.Intact,
		"anchors: a body too long cut": audit.Altered, "anchors: a body of 60,000 bytes": audit.Altered, "anchors: a length of eight bytes cut": audit.Altered,
		"anchors: a second genesis": audit.Altered, "anchors: cut": audit.Intact, "two MiB": audit.Incomplete, "a name of nine digits": audit.Intact,
	}
	for _, s := range atLimits(t) {
		files := fstest.MapFS{}
		for name, content := range s.files {
			files[name] = &fstest.MapFile{Data: content}
		}
		r := judge(t, files, s.o)
		if w, ok := want[s.name]; ok && r.Status != w {
			t.Errorf("%s: %s, %v", s.name, r.Status, r.Problem)
		}
	}
}

func TestTheVerifiersAgreeOnLimits(t *testing.T) {
	needPython(t)
	t.Parallel()
	agree(t, atLimits(t))
}

// The list of characters is the format's own. Where Go's tables are of the same Unicode, it is theirs.
func TestTheBarredCharactersAreUnicodes(t *testing.T) {
	if unicode.Version != "15.0.0" {
		t.Skip("Go has other tables: ", unicode.Version)
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		want := unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co)
		if got := audit.Barred(r); got != want {
			t.Fatalf("%U: %v", r, got)
		}
	}
}

// manyMissing is a log of which n blobs were redacted, and no record says why.
func manyMissing(t *testing.T, n int) specimen {
	t.Helper()
	f := newForger(t)
	starts, size := []int{0}, 0
	for range n {
		digest := sha256.Sum256([]byte{byte(f.next), byte(f.next >> 8), byte(f.next >> 16)})
		body := append(append(make([]byte, 0, 80), 0x83, 1, 0x81, 0x58, 32), digest[:]...)
		f.link = audit.LinkOf(f.link, 1, digest)
		f.frames = append(f.frames, forged{seq: f.next, bytes: append(append(body, 0x58, 32), f.link[:]...)})
		f.next++
		if size++; size%1_000 > 0 {
			continue
		}
		if f.seal(); size%12_000 > 0 {
			continue
		}
		starts = append(starts, len(f.frames))
		f.add([16]byte{}, audit.Segment{
			Index: uint32(len(starts) - 1), First: f.next, PrevLink: f.link, Epoch: 1, SealKey: public(f.key),
			ReceiptKey: public(audittest.ReceiptKey()), GrantKey: public(audittest.GrantKey()),
		})
		f.seal()
	}
	f.add([16]byte{}, audit.Freeze{By: audit.ByBox})
	f.seal()
	s := specimen{name: "many missing", files: map[string][]byte{}, o: audit.VerifyOptions{Withheld: true}}
	starts = append(starts, len(f.frames))
	for i := range len(starts) - 1 {
		s.files[segmentFile(i)] = render(f.frames[starts[i]:starts[i+1]], 1<<40)
	}
	return s
}

// Whoever wants one blob gone unseen could hide it behind 65,536 that were removed by the book. What cannot be counted is not
// intact.
func TestMissingBlobsThatNobodyCanCountAreNotAccepted(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]audit.Status{1 << 16: audit.Intact, 1<<16 + 1: audit.Incomplete} {
		s := manyMissing(t, n)
		files := fstest.MapFS{}
		for name, content := range s.files {
			files[name] = &fstest.MapFile{Data: content}
		}
		if r := judge(t, files, s.o); r.Status != want {
			t.Errorf("%d blobs: %s, %v", n, r.Status, r.Problem)
		}
	}
}

func TestTheVerifiersAgreeOnHowManyBlobsMayBeMissing(t *testing.T) {
	needPython(t)
	t.Parallel()
	agree(t, []specimen{manyMissing(t, 1<<16+1)})
}

func TestATimeThatNobodyCanShowIsNotWritten(t *testing.T) {
	disk := audittest.NewDisk()
	clk := clocktest.New()
	clk.SetWall(time.UnixMilli(audit.MaxWall+1), clock.Synced)
	l := open(t, clk, disk)
	if err := l.Append(t.Context(), audit.Entry{Payload: audit.Freeze{By: audit.ByBox}}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, r := range records(t, disk) {
		if r.Wall != 0 || r.Clock != clock.Unset {
			t.Fatalf("%s says %d", r.Kind, r.Wall)
		}
	}
}
