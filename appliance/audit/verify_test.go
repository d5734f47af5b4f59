package audit_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"io/fs"
	"slices"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/capabilities"
)

// lived is the bytes of a segment in which two runs were recorded, and where its frames and batches are.
type lived struct {
	content []byte
	frames  []span // all, in order
	ends    []int  // of batches, padding included
	heads   []string
}

type span struct{ from, to int }

func livedLog(t *testing.T) lived {
	t.Helper()
	disk := audittest.NewDisk()
	live(t, disk)
	l := open(t, clocktest.New(), disk)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	log := lived{content: disk.Content(segment0)}
	for _, e := range records(t, disk) {
		_, _, _, size, ok := audit.ParseFrame(log.content[e.Offset:])
		if !ok {
			t.Fatal("a frame does not parse")
		}
		log.frames = append(log.frames, span{int(e.Offset), int(e.Offset) + size})
		if e.Kind == audit.KindSeal {
			log.ends = append(log.ends, (int(e.Offset)+size+audit.Block-1)/audit.Block*audit.Block)
			log.heads = append(log.heads, audit.Head{Link: e.Link}.Code())
		}
	}
	return log
}

func segmentFS(contents ...[]byte) fs.FS {
	files := fstest.MapFS{}
	for i, c := range contents {
		files[segmentFile(i)] = &fstest.MapFile{Data: c}
	}
	return files
}

func judge(t interface{ Fatal(...any) }, fsys fs.FS, o audit.VerifyOptions) audit.Report {
	r, err := audit.Verify(context.Background(), fsys, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestEveryDamagedByteOfALogIsSeen(t *testing.T) {
	t.Parallel()
	log := livedLog(t)
	last := log.ends[len(log.ends)-1]
	lastBatch := log.ends[len(log.ends)-2]
	for at := 0; at < last+2*audit.Block; at += step(307) {
		damaged := bytes.Clone(log.content)
		damaged[at] ^= 1 << (at % 8)
		r := judge(t, segmentFS(damaged), audit.VerifyOptions{})
		switch {
		case at < lastBatch && r.Status != audit.Altered:
			t.Errorf("byte %d, with a seal after it: %s", at, r.Status)
		case r.Status == audit.Intact:
			t.Errorf("byte %d: nothing was seen", at)
		case r.Problem.Offset > int64(at) || int64(at)-r.Problem.Offset > audit.MaxBlob:
			t.Errorf("byte %d: located at %d", at, r.Problem.Offset)
		}
	}
}

// step is from one byte that is tried to the next.
func step(usual int) int {
	if *every {
		return 1
	}
	return usual * thin
}

func TestALogCutAnywhere(t *testing.T) {
	t.Parallel()
	log := livedLog(t)
	for at := 0; at < log.ends[len(log.ends)-1]; at += step(509) {
		for _, zeros := range []bool{false, true} {
			cut := bytes.Clone(log.content[:at])
			if zeros {
				cut = append(cut, make([]byte, audit.SegmentSize-at)...)
			}
			r := judge(t, segmentFS(cut), audit.VerifyOptions{})
			whole := 0
			for i := range log.ends {
				if seal(log, i).to <= at {
					whole++
				}
			}
			if int(r.Seals) != whole {
				t.Errorf("cut at %d, zeros %v: %d whole batches, %d found", at, zeros, whole, r.Seals)
			}
			// With zeros after it, a cut between batches is a rollback, which nothing inside shows.
			if between := zeros && whole > 0 && log.ends[whole-1] >= at; (r.Status == audit.Intact) != between {
				t.Errorf("cut at %d, zeros %v: %s, %v", at, zeros, r.Status, r.Problem)
			}
			if r.Status == audit.Altered {
				t.Errorf("cut at %d, zeros %v: a cut is taken for an alteration: %v", at, zeros, r.Problem)
			}
		}
	}
}

func seal(log lived, batch int) span {
	for i := len(log.frames) - 1; i >= 0; i-- {
		if log.frames[i].to <= log.ends[batch] {
			return log.frames[i]
		}
	}
	return span{}
}

// A rollback to an earlier seal cannot be seen from inside; who wrote down a later head sees it.
func TestARollbackIsSeenByWhoKnowsALaterHead(t *testing.T) {
	log := livedLog(t)
	back := append(bytes.Clone(log.content[:log.ends[3]]), make([]byte, audit.SegmentSize-log.ends[3])...)
	if r := judge(t, segmentFS(back), audit.VerifyOptions{AllSeals: true}); r.Status != audit.Intact {
		t.Fatalf("the rolled back log is %s: %v", r.Status, r.Problem)
	}
	if r := judge(t, segmentFS(back), audit.VerifyOptions{Head: log.heads[3]}); r.Status != audit.Intact {
		t.Errorf("with the head that it has: %s", r.Status)
	}
	if r := judge(t, segmentFS(back), audit.VerifyOptions{Head: log.heads[4]}); r.Status != audit.Incomplete || r.Status.ExitCode() != 2 {
		t.Errorf("with a later head: %s", r.Status)
	}
	if r := judge(t, segmentFS(log.content), audit.VerifyOptions{Head: log.heads[2]}); r.Status != audit.Intact {
		t.Errorf("with an earlier head: %s", r.Status)
	}
	if r := judge(t, segmentFS(log.content), audit.VerifyOptions{Root: audit.Digest{1}}); r.Status != audit.Altered || r.Status.ExitCode() != 1 {
		t.Errorf("with another root: %s", r.Status)
	}
}

func TestFramesThatWereMovedRepeatedOrTakenOutAreSeen(t *testing.T) {
	log := livedLog(t)
	// The frames of a batch in the middle, and what a forger may make of them.
	first := slices.IndexFunc(log.frames, func(s span) bool { return s.from == log.ends[2] })
	end := first
	for log.frames[end].to < log.ends[3]-audit.Block {
		end++
	}
	for i := first; i < end; i++ {
		for name, order := range map[string][]int{
			"swapped":  {i + 1, i},
			"repeated": {i, i, i + 1},
			"removed":  {i + 1},
		} {
			batch := bytes.Clone(log.content[log.ends[2]:log.frames[i].from])
			for _, k := range order {
				batch = append(batch, log.content[log.frames[k].from:log.frames[k].to]...)
			}
			batch = append(batch, log.content[log.frames[i+1].to:log.ends[3]]...)
			batch = bytes.TrimRight(batch, "\x00")
			batch = append(batch, make([]byte, (audit.Block-len(batch)%audit.Block)%audit.Block)...)
			forged := append(bytes.Clone(log.content[:log.ends[2]]), batch...)
			forged = append(forged, log.content[log.ends[3]:]...)
			if len(forged) > audit.SegmentSize {
				forged = forged[:audit.SegmentSize]
			}
			forged = append(forged, make([]byte, audit.SegmentSize-len(forged))...)
			if r := judge(t, segmentFS(forged), audit.VerifyOptions{}); r.Status != audit.Altered {
				t.Errorf("frame %d %s: %s, %v", i, name, r.Status, r.Problem)
			}
		}
	}
	// A whole batch taken out, so that all frames are whole.
	forged := append(bytes.Clone(log.content[:log.ends[2]]), log.content[log.ends[3]:]...)
	forged = append(forged, make([]byte, audit.SegmentSize-len(forged))...)
	if r := judge(t, segmentFS(forged), audit.VerifyOptions{}); r.Status != audit.Altered {
		t.Errorf("a batch removed: %s", r.Status)
	}
}

// A forger who can rewrite everything but has no key: all links are made true again.
func TestALogThatWasWrittenAnewIsSeen(t *testing.T) {
	log := livedLog(t)
	change := func(want audit.Kind, edit func(*audit.Record)) []byte {
		var out []byte
		var link audit.Digest
		done := false
		for _, s := range log.frames {
			if pad := len(out) % audit.Block; s.from%audit.Block == 0 && pad != 0 {
				out = append(out, make([]byte, audit.Block-pad)...)
			}
			r, _, err := audit.DecodeBody(log.content[s.from:s.to])
			if err != nil {
				t.Fatal(err)
			}
			if r.Kind == want && !done {
				edit(&r)
				done = true
			}
			frame, _, err := audit.EncodeFrame(r, link)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, frame...)
			link = audit.Digest(frame[len(frame)-32:])
		}
		if !done {
			t.Fatalf("there is no %s", want)
		}
		return append(out, make([]byte, audit.SegmentSize-len(out))...)
	}
	if r := judge(t, segmentFS(change(audit.KindBoot, func(*audit.Record) {})), audit.VerifyOptions{AllSeals: true}); r.Status != audit.Intact {
		t.Fatalf("an unchanged copy is %s: %v", r.Status, r.Problem)
	}
	for k, edit := range map[audit.Kind]func(*audit.Record){
		audit.KindGenesis:  func(r *audit.Record) { r.Payload.(*audit.Genesis).Root[0] ^= 1 },
		audit.KindProposal: func(r *audit.Record) { r.Payload.(*audit.Proposal).Slot++ },
		audit.KindDecision: func(r *audit.Record) { r.Payload.(*audit.Decision).Rule = "quiet" },
		audit.KindEffect:   func(r *audit.Record) { r.Payload.(*audit.EffectRecord).Status = capabilities.Failed },
		audit.KindSeal:     func(r *audit.Record) { r.Salt[0]++ },
		audit.KindEpoch:    func(r *audit.Record) { r.Payload.(*audit.Epoch).SealKey[0] ^= 1 },
		audit.KindBoot:     func(r *audit.Record) { r.Boot++ },
	} {
		if r := judge(t, segmentFS(change(k, edit)), audit.VerifyOptions{}); r.Status != audit.Altered {
			t.Errorf("%s: %s, %v", k, r.Status, r.Problem)
		}
	}
}

// The last seal has nothing after it that covers it, so it covers its own record.
func TestTheLastSealsOwnRecordIsSigned(t *testing.T) {
	f := newForger(t)
	if r := judge(t, segmentFS(f.segment()), audit.VerifyOptions{}); r.Status != audit.Intact {
		t.Fatalf("%s, %v", r.Status, r.Problem)
	}
	last := &f.frames[len(f.frames)-1]
	r, _, err := audit.DecodeBody(last.bytes)
	if err != nil {
		t.Fatal(err)
	}
	prev := audit.Digest(f.frames[len(f.frames)-2].bytes[len(f.frames[len(f.frames)-2].bytes)-32:])
	r.Boot++
	if last.bytes, _, err = audit.EncodeFrame(r, prev); err != nil {
		t.Fatal(err)
	}
	if r := judge(t, segmentFS(f.segment()), audit.VerifyOptions{}); r.Status == audit.Intact {
		t.Error("the time of the last seal was changed, and nothing was seen")
	}
}

// Everything that a signature can vouch for is right, and the calls are not.
func TestCrossLinksAreCheckedEvenUnderTrueSeals(t *testing.T) {
	clk := clocktest.New()
	ok := audittest.Required(clk, 1)
	for name, change := range map[string]func([]audit.Payload) []audit.Payload{
		"nothing":            func(p []audit.Payload) []audit.Payload { return p },
		"no approval":        func(p []audit.Payload) []audit.Payload { return slices.Delete(p, 2, 3) },
		"no decision":        func(p []audit.Payload) []audit.Payload { return slices.Delete(p, 1, 2) },
		"no proposal":        func(p []audit.Payload) []audit.Payload { return slices.Delete(p, 0, 1) },
		"no intent":          func(p []audit.Payload) []audit.Payload { return slices.Delete(p, 3, 4) },
		"effect in barrier1": func(p []audit.Payload) []audit.Payload { return append(p[:4:4], p[5], p[4]) },
		"two effects":        func(p []audit.Payload) []audit.Payload { return append(p, p[5]) },
		"receipt by the seal key": func(p []audit.Payload) []audit.Payload {
			a := p[2].(audit.Approval)
			a.Receipt = audittest.Sign(audittest.GrantKey(), ok.Claims)
			p[2] = a
			return p
		},
		"approved by the gateway": func(p []audit.Payload) []audit.Payload {
			a := p[2].(audit.Approval)
			a.By = audit.ByGateway
			p[2] = a
			return p
		},
		"approved by nobody": func(p []audit.Payload) []audit.Payload {
			a := p[2].(audit.Approval)
			a.By = 0
			p[2] = a
			return p
		},
		"intent refers to other records": func(p []audit.Payload) []audit.Payload {
			i := p[3].(audit.IntentRecord)
			i.Decision--
			p[3] = i
			return p
		},
		"intent names another receipt": func(p []audit.Payload) []audit.Payload {
			i := p[3].(audit.IntentRecord)
			i.ReceiptDigest[0]++
			p[3] = i
			return p
		},
		"policy allowed, no press": func(p []audit.Payload) []audit.Payload {
			d := p[1].(audit.Decision)
			d.Verdict = audit.Allow
			p[1] = d
			return p
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newForger(t)
			intent := ok.Intent
			intent.Proposal, intent.Decision, intent.Approval = f.next, f.next+1, f.next+2
			intent.ReceiptDigest = sha256.Sum256(ok.Approval.Receipt)
			steps := change([]audit.Payload{ok.Proposal, ok.Decision, ok.Approval, intent, nil, audit.EffectRecord{Intent: f.next + 3, Status: capabilities.Done}})
			for _, p := range steps {
				if p == nil {
					f.seal()
					continue
				}
				f.add(ok.Inv, p)
			}
			f.seal()
			r := judge(t, segmentFS(f.segment()), audit.VerifyOptions{AllSeals: true})
			if want := name == "nothing"; (r.Status == audit.Intact) != want {
				t.Errorf("%s: %v", r.Status, r.Problem)
			}
			if name != "nothing" && r.Status != audit.Altered {
				t.Errorf("%s: %v", r.Status, r.Problem)
			}
		})
	}
}

// Everything is as it should be but the signature: a forger without the key.
func TestSealsByAnotherKeyAreSeen(t *testing.T) {
	for _, all := range []bool{false, true} {
		f := newForger(t)
		f.add([16]byte{}, audit.Freeze{On: true, By: audit.ByBox})
		f.seal()
		if r := judge(t, segmentFS(f.segment()), audit.VerifyOptions{AllSeals: all}); r.Status != audit.Intact {
			t.Fatalf("with the key: %s, %v", r.Status, r.Problem)
		}
		f.key = audittest.GrantKey()
		f.add([16]byte{}, audit.Freeze{By: audit.ByBox})
		f.seal()
		if r := judge(t, segmentFS(f.segment()), audit.VerifyOptions{AllSeals: all}); r.Status == audit.Intact {
			t.Errorf("all seals %v: a seal by another key is taken for the box's", all)
		}
	}
}

func TestNumbersThatWereLeftOutAreSeen(t *testing.T) {
	f := newForger(t)
	f.next += 3
	f.first = f.next
	f.add([16]byte{}, audit.Freeze{On: true, By: audit.ByBox})
	f.seal()
	if r := judge(t, segmentFS(f.segment()), audit.VerifyOptions{}); r.Status != audit.Altered {
		t.Errorf("%s, %v", r.Status, r.Problem)
	}
}

// Who begins to read at a segment record must begin with the truth.
func TestASegmentRecordThatLiesIsSeen(t *testing.T) {
	c := audittest.Automatic(1)
	for name, lie := range map[string]func(*audit.Segment){
		"the truth":         func(*audit.Segment) {},
		"index":             func(s *audit.Segment) { s.Index = 2 },
		"first":             func(s *audit.Segment) { s.First++ },
		"previous link":     func(s *audit.Segment) { s.PrevLink[0]++ },
		"epoch":             func(s *audit.Segment) { s.Epoch++ },
		"seal key":          func(s *audit.Segment) { s.SealKey[0]++ },
		"receipt key":       func(s *audit.Segment) { s.ReceiptKey[0]++ },
		"grant key":         func(s *audit.Segment) { s.GrantKey[0]++ },
		"an intent hidden":  func(s *audit.Segment) { s.Open = nil },
		"an intent made up": func(s *audit.Segment) { s.Open = append(s.Open, audit.OpenIntent{Intent: 1, Inv: audit.ID{1}}) },
	} {
		f := newForger(t)
		intent := c.Intent
		intent.Proposal, intent.Decision = f.next, f.next+1
		f.add(c.Inv, c.Proposal)
		f.add(c.Inv, c.Decision)
		f.add(c.Inv, intent)
		f.seal()
		s := audit.Segment{
			Index: 1, First: f.next, PrevLink: f.link, Epoch: 1, SealKey: audit.Digest(f.key.Public().(ed25519.PublicKey)),
			ReceiptKey: audit.Digest(audittest.ReceiptKey().Public().(ed25519.PublicKey)),
			GrantKey:   audit.Digest(audittest.GrantKey().Public().(ed25519.PublicKey)),
			Open:       []audit.OpenIntent{{Intent: f.next - 2, Inv: c.Inv}},
		}
		lie(&s)
		cut := len(f.frames)
		f.add([16]byte{}, s)
		f.seal()
		r := judge(t, segmentFS(render(f.frames[:cut], 1<<40), render(f.frames[cut:], 1<<40)), audit.VerifyOptions{})
		if want := map[bool]audit.Status{true: audit.Intact, false: audit.Altered}[name == "the truth"]; r.Status != want {
			t.Errorf("%s: %s, %v", name, r.Status, r.Problem)
		}
	}
}

func TestSegmentsThatAreMissingStrangeOrSwapped(t *testing.T) {
	many := func(fill byte) *audittest.Disk {
		disk := audittest.NewDisk()
		l := open(t, clocktest.New(), disk)
		for i := range 32 {
			e, _ := audit.BlobOf(audit.BlobRaw, [16]byte{}, append(bytes.Repeat([]byte{fill}, audit.MaxBlob-1), byte(i)))
			if _, err := l.Barrier(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return disk
	}
	a, b := many(1), many(2)
	s := func(d *audittest.Disk, i int) []byte {
		return d.Content("seg-0000000" + string(rune('0'+i)) + ".cborseq")
	}
	if s(a, 2) == nil {
		t.Fatal("there are not three segments")
	}
	for name, c := range map[string]struct {
		fsys fs.FS
		want audit.Status
	}{
		"whole":               {segmentFS(s(a, 0), s(a, 1), s(a, 2)), audit.Intact},
		"last missing":        {segmentFS(s(a, 0), s(a, 1)), audit.Intact}, // a rollback; see the head
		"first missing":       {fstest.MapFS{"seg-00000001.cborseq": {Data: s(a, 1)}, "seg-00000002.cborseq": {Data: s(a, 2)}}, audit.Incomplete},
		"middle missing":      {fstest.MapFS{"seg-00000000.cborseq": {Data: s(a, 0)}, "seg-00000002.cborseq": {Data: s(a, 2)}}, audit.Incomplete},
		"middle cut":          {segmentFS(s(a, 0), s(a, 1)[:audit.SegmentSize/2], s(a, 2)), audit.Altered},
		"swapped":             {segmentFS(s(a, 0), s(a, 2), s(a, 1)), audit.Altered},
		"repeated":            {segmentFS(s(a, 0), s(a, 1), s(a, 1)), audit.Altered},
		"from another device": {segmentFS(s(a, 0), s(b, 1), s(b, 2)), audit.Altered},
		"too long":            {segmentFS(append(s(a, 0), 0), s(a, 1), s(a, 2)), audit.Altered},
	} {
		if r := judge(t, c.fsys, audit.VerifyOptions{AllSeals: true}); r.Status != c.want {
			t.Errorf("%s: %s, %v", name, r.Status, r.Problem)
		}
	}
	if _, err := audit.Verify(t.Context(), fstest.MapFS{}, audit.VerifyOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no segments: %v", err)
	}
	export := fstest.MapFS{"log/seg-00000000.cborseq": {Data: s(a, 0)}}
	if r := judge(t, export, audit.VerifyOptions{}); r.Segments != 1 {
		t.Errorf("an export: %+v", r)
	}
}

// B13: a blob's body can be removed and the chain stays whole; nothing else can be, and a removal that no record explains is seen.
func TestABlobCanBeRedactedAndNothingElse(t *testing.T) {
	log := livedLog(t)
	redact := func(index int) []byte {
		s := log.frames[index]
		content, class, _, _, _ := audit.ParseFrame(log.content[s.from:s.to])
		sum := sha256.Sum256(content)
		frame := append([]byte{0x83, class, 0x81, 0x58, 32}, sum[:]...)
		frame = append(frame, log.content[s.to-34:s.to]...)
		batch := slices.IndexFunc(log.ends, func(end int) bool { return s.from < end })
		start := 0
		if batch > 0 {
			start = log.ends[batch-1]
		}
		out := append(bytes.Clone(log.content[:s.from]), frame...)
		out = append(out, bytes.TrimRight(log.content[s.to:log.ends[batch]], "\x00")...)
		out = append(out, make([]byte, (audit.Block-(len(out)-start)%audit.Block)%audit.Block)...)
		out = append(out, log.content[log.ends[batch]:]...)
		if len(out) > audit.SegmentSize {
			t.Fatal("redacting made it longer")
		}
		return append(out, make([]byte, audit.SegmentSize-len(out))...)
	}
	for i, s := range log.frames {
		_, class, _, _, _ := audit.ParseFrame(log.content[s.from:s.to])
		r := judge(t, segmentFS(redact(i)), audit.VerifyOptions{Withheld: true})
		if class == 1 && (r.Status != audit.Intact || r.Withheld != 1) {
			t.Errorf("frame %d, a blob: %s, %v", i, r.Status, r.Problem)
		}
		// Whether the last seal is torn or altered, nothing can tell.
		if class == 0 && r.Status != audit.Altered && (i < len(log.frames)-1 || r.Status != audit.Incomplete) {
			t.Errorf("frame %d, no blob, was redacted: %s", i, r.Status)
		}
		if class == 1 && judge(t, segmentFS(redact(i)), audit.VerifyOptions{}).Status != audit.Incomplete {
			t.Errorf("frame %d: a blob was left out, no record says why, and nobody is told", i)
		}
	}
}

// A redaction that the log itself records leaves it intact.
func TestARecordedRedactionIsIntact(t *testing.T) {
	f := newForger(t)
	blob, _ := audit.BlobOf(audit.BlobRaw, [16]byte{}, []byte("what somebody wants to forget"))
	seq := f.next
	body := f.add(blob.Inv, blob.Payload)
	f.seal()
	f.add([16]byte{}, audit.Redact{Seq: seq, Body: sha256.Sum256(body), By: audit.ByBox})
	f.seal()
	content := f.segment()
	if bytes.Contains(f.redacted(seq), []byte("forget")) || !bytes.Contains(content, []byte("forget")) {
		t.Fatal("the redaction is none")
	}
	if r := judge(t, segmentFS(f.redacted(seq)), audit.VerifyOptions{AllSeals: true}); r.Status != audit.Intact || r.Redacted != 1 || r.Withheld != 0 {
		t.Errorf("%s %v, redacted %d, withheld %d", r.Status, r.Problem, r.Redacted, r.Withheld)
	}
}

// Any sequence of legal uses gives a log that verifies, over any number of starts.
func TestWhateverIsWrittenVerifies(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		if thin > 1 && rapid.IntRange(1, thin).Draw(t, "one in some") > 1 {
			return
		}
		clk, disk := clocktest.New(), audittest.NewDisk()
		var l *audit.Log
		start := func() {
			var err error
			if l, err = audit.Open(context.Background(), audittest.Options(clk, disk)); err != nil {
				t.Fatal(err)
			}
		}
		start()
		n := byte(0)
		var under []audit.Intent
		for range rapid.IntRange(1, 5).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
				start()
				under = nil
			case 1, 2:
				n++
				c := audittest.Required(clk, n)
				i, err := l.Intend(context.Background(), c.Entries(), c.Intent, c.Inv)
				if err != nil {
					t.Fatal(err)
				}
				under = append(under, i)
			case 3:
				if len(under) == 0 {
					continue
				}
				if _, err := l.Effect(context.Background(), under[0], audit.EffectRecord{Status: capabilities.Done}); err != nil {
					t.Fatal(err)
				}
				under = under[1:]
			case 4:
				b := rapid.SliceOfN(rapid.Byte(), 0, 5000).Draw(t, "blob")
				e, _ := audit.BlobOf(audit.BlobRaw, [16]byte{}, b)
				if err := l.Append(context.Background(), e); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		r := judge(t, disk.FS(), audit.VerifyOptions{AllSeals: true})
		if r.Status != audit.Intact || len(r.Open) != len(under) {
			t.Fatalf("%s, %v, %d open of %d", r.Status, r.Problem, len(r.Open), len(under))
		}
	})
}
