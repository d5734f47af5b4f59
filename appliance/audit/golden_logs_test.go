package audit_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/capabilities"
)

const goldenLogs = "../../testdata/audit/logs"

// vector is one line of verdicts.json: how to look at a log, and what to say of it.
type vector struct {
	Log      string `json:"log"`
	Why      string `json:"why"`
	Root     string `json:"root,omitempty"` // the root key that was noted
	Kept     string `json:"kept,omitempty"` // file of a seal that was kept elsewhere
	AllSeals bool   `json:"all_seals,omitempty"`
	Withheld bool   `json:"accept_withheld,omitempty"`
	Verdict  string `json:"verdict"`
	Segment  uint32 `json:"segment,omitempty"` // where it is altered
	Record   uint64 `json:"record,omitempty"`  // where it is altered
	Head     string `json:"head,omitempty"`    // where it is intact
}

// vectors are what a second implementation must say. Head is filled in from the log; everything else is said here.
func vectors() []vector {
	const root = "4cb5abf6ad79fbf5abbccafcc269d85cd2651ed4b885b5869f241aedf0a5ba29"
	return []vector{
		{Log: "calls", Why: "a call with a press, one that was denied, one that was open when the box started again; a recorded redaction; two segments", Verdict: "intact", AllSeals: true},
		{Log: "calls", Why: "the root key is the one that was noted", Root: root, Verdict: "intact"},
		{Log: "calls", Why: "the root key is another one", Root: "01" + root[2:], Verdict: "altered"},
		{Log: "press", Why: "one call with a press", Verdict: "intact"},
		{Log: "withheld", Why: "a blob was left out and no record says why", Verdict: "incomplete"},
		{Log: "withheld", Why: "the same, where that was expected", Withheld: true, Verdict: "intact"},
		{Log: "torn", Why: "the last batch was not written to its end", Verdict: "incomplete"},
		{Log: "begun", Why: "power went before the first batch of a segment", Verdict: "intact"},
		{Log: "bit", Why: "one bit of a request changed", Verdict: "altered", Record: 5},
		{Log: "encoding", Why: "a number is longer than need be, under true links and seals", Verdict: "altered", Record: 11},
		{Log: "unpressed", Why: "policy asked for a press, and none was given, under true links and seals", Verdict: "altered", Record: 9},
		{Log: "key", Why: "the last seal is by a key that is not the epoch's", Verdict: "altered", Record: 13},
		{Log: "pruned", Why: "segment 0 was pruned, and the anchors prove the keys", Root: root, Verdict: "intact"},
		{Log: "unanchored", Why: "segment 0 was pruned, and the anchors are missing", Verdict: "incomplete"},
		{Log: "press", Why: "the seal that was kept is the last", Kept: "press.seal", Verdict: "intact"},
		{Log: "rollback", Why: "intact from inside", Verdict: "intact"},
		{Log: "rollback", Why: "it ends before a seal that was kept", Kept: "press.seal", Verdict: "incomplete"},
		{Log: "fork", Why: "it holds another seal where one was kept", Kept: "press.seal", Verdict: "altered", Record: 13},
		{Log: "behind", Why: "the anchors know an epoch that the log does not reach", Verdict: "incomplete"},
	}
}

// madeLogs writes the logs of the vectors, file by file, and the seal that was kept.
func madeLogs(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	put := func(log string, anchors []byte, segments ...[]byte) {
		for i, s := range segments {
			if s != nil {
				files[fmt.Sprintf("%s/seg-%08d.cborseq", log, i)] = s
			}
		}
		if anchors != nil {
			files[log+"/anchors.cborseq"] = anchors
		}
	}
	key := newForger(t).key
	th := thief{t: t, key: key}
	put("calls", nil, th.write(richLog(t))...)
	files["calls/anchors.cborseq"] = th.anchors
	gone, rest := prunedLogParts(t)
	th = thief{t: t, key: key}
	first := th.write(gone)[0]
	left := th.write(rest)[0]
	put("pruned", th.anchors, nil, left)
	put("unanchored", nil, nil, left)
	put("behind", th.anchors, first)

	// Genesis, boot, epoch and seal are records 0 to 3; the blobs 4 to 6; proposal, decision, approval and intent 7 to 10; seal 11.
	pressed := func(change func(*audittest.Call, *audit.EffectRecord)) *forger {
		f := newForger(t)
		c := audittest.Required(clocktest.New(), 1)
		effect := audit.EffectRecord{Status: capabilities.Done}
		change(&c, &effect)
		for _, e := range c.Blobs {
			f.add(e.Inv, e.Payload)
		}
		i := c.Intent
		i.Proposal, i.Decision = f.next, f.next+1
		f.add(c.Inv, c.Proposal)
		f.add(c.Inv, c.Decision)
		if c.Approval.Outcome == audit.Approved {
			i.Approval, i.ReceiptDigest = f.next, sha256.Sum256(c.Approval.Receipt)
			f.add(c.Inv, c.Approval)
		}
		f.add(c.Inv, i)
		f.seal()
		effect.Intent = f.next - 2
		f.add(c.Inv, effect)
		return f
	}
	nothing := func(*audittest.Call, *audit.EffectRecord) {}
	f := pressed(nothing)
	put("rollback", nil, rollback(f))
	f.seal()
	press := f.segment()
	put("press", nil, press)
	last, _, err := audit.DecodeBody(f.frames[len(f.frames)-1].bytes)
	if err != nil {
		t.Fatal(err)
	}
	files["press.seal"] = last.Payload.(*audit.Seal).Sign1
	put("withheld", nil, f.redacted(4))
	torn := bytes.Clone(press)
	from := bytes.LastIndex(torn, []byte("assent-seal"))
	clear(torn[from:])
	put("torn", nil, torn)
	put("begun", nil, press, make([]byte, audit.SegmentSize))
	bit := bytes.Clone(press)
	bit[bytes.Index(bit, []byte("GET /w/"))] ^= 1
	put("bit", nil, bit)
	parts := partsOf(f)
	parts[11].body = bytes.Replace(parts[11].body, []byte{0xa7, 0, 10}, []byte{0xa7, 0, 0x18, 10}, 1)
	th = thief{t: t, key: key, stale: true}
	put("encoding", nil, th.write(parts)...)
	f = pressed(func(c *audittest.Call, _ *audit.EffectRecord) { c.Approval = audit.Approval{} })
	f.seal()
	put("unpressed", nil, f.segment())
	f = pressed(nothing)
	f.key = audittest.GrantKey()
	f.seal()
	put("key", nil, f.segment())
	f = pressed(func(_ *audittest.Call, e *audit.EffectRecord) { e.Status = capabilities.Failed })
	f.seal()
	put("fork", nil, f.segment())
	return files
}

func partsOf(f *forger) []part {
	var parts []part
	for _, frame := range f.frames {
		_, class, _, _, _ := audit.ParseFrame(frame.bytes)
		parts = append(parts, part{class: class, body: frame.body})
	}
	return parts
}

// rollback is the log without what no seal follows yet.
func rollback(f *forger) []byte {
	sealed := len(f.frames)
	for !f.frames[sealed-1].pad {
		sealed--
	}
	return render(f.frames[:sealed], 1<<40)
}

func isSegment(name string) bool { return strings.HasPrefix(filepath.Base(name), "seg-") }

// A stored segment lacks the zeros at its end, and a file of anchors or a seal nothing.
func padded(name string, content []byte) []byte {
	if isSegment(name) && len(content) < audit.SegmentSize {
		return append(bytes.Clone(content), make([]byte, audit.SegmentSize-len(content))...)
	}
	return content
}

// storedLogs reads the vectors as a second implementer finds them.
func storedLogs(t *testing.T) (files map[string][]byte, list []vector) {
	t.Helper()
	files = map[string][]byte{}
	err := filepath.WalkDir(goldenLogs, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(goldenLogs, path)
		files[filepath.ToSlash(name)] = padded(path, b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(files["verdicts.json"], &list); err != nil && !*update {
		t.Fatal(err)
	}
	delete(files, "verdicts.json")
	return files, list
}

func (v vector) specimen(t *testing.T, files map[string][]byte) specimen {
	t.Helper()
	s := specimen{name: v.Log + ": " + v.Why, files: map[string][]byte{}, o: audit.VerifyOptions{AllSeals: v.AllSeals, Withheld: v.Withheld}}
	for name, content := range files {
		if filepath.Dir(name) == v.Log {
			s.files[filepath.Base(name)] = content
		}
	}
	if v.Kept != "" {
		s.o.Anchors = [][]byte{files[v.Kept]}
	}
	if _, err := hex.Decode(s.o.Root[:], []byte(v.Root)); err != nil {
		t.Fatal(err)
	}
	return s
}

// Whole logs of the format, and what a verifier must say of them. They are stored, and stay as they are when tests make calls
// in another way.
func TestTheGoldenLogsAreJudgedAsTheTableSays(t *testing.T) {
	if *update {
		updateLogs(t)
	}
	files, list := storedLogs(t)
	want := vectors()
	for i, v := range want {
		s := v.specimen(t, files)
		if len(s.files) == 0 {
			t.Fatalf("there is no log %s", v.Log)
		}
		log := fstest.MapFS{}
		for name, content := range s.files {
			log[name] = &fstest.MapFile{Data: content}
		}
		r := judge(t, log, s.o)
		if r.Status == audit.Intact {
			want[i].Head = r.Head.Code()
		}
		if r.Status.String() != v.Verdict || (r.Status == audit.Altered && (uint64(r.Problem.Seq) != v.Record || r.Problem.Segment != v.Segment)) {
			t.Errorf("%s: %s, %v", s.name, r.Status, r.Problem)
		}
	}
	if *update {
		table, err := json.MarshalIndent(want, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		writeVector(t, "verdicts.json", append(table, '\n'))
		return
	}
	if d := cmp.Diff(want, list); d != "" {
		t.Error(d)
	}
}

func updateLogs(t *testing.T) {
	t.Helper()
	for name, content := range madeLogs(t) {
		if isSegment(name) {
			content = bytes.TrimRight(content, "\x00")
		}
		writeVector(t, name, content)
	}
}

func writeVector(t *testing.T, name string, content []byte) {
	t.Helper()
	path := filepath.Join(goldenLogs, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestTheVerifiersAgreeOnTheGoldenLogs(t *testing.T) {
	needPython(t)
	t.Parallel()
	files, list := storedLogs(t)
	var all []specimen
	for _, v := range list {
		all = append(all, v.specimen(t, files))
	}
	agree(t, all)
	for i, got := range second(t, all) {
		if got.Verdict != list[i].Verdict || got.Head != list[i].Head && got.Verdict == "intact" {
			t.Errorf("%s: %s, head %s", all[i].name, got.Verdict, got.Head)
		}
	}
}
