package audit_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/capabilities"
)

const secondVerifier = "verify/assent_verify.py"

// needPython skips a test where nothing can run the second verifier.
func needPython(t *testing.T) (interpreter string) {
	t.Helper()
	interpreter = os.Getenv("ASSENT_PYTHON")
	if interpreter == "" {
		t.Skip("ASSENT_PYTHON names no Python 3 with the package cryptography; make test finds one")
	}
	return interpreter
}

// python runs the second verifier's interpreter.
func python(t *testing.T, stdin []byte, args ...string) []byte {
	t.Helper()
	interpreter := needPython(t)
	cmd := exec.CommandContext(t.Context(), interpreter, args...)
	cmd.Stdin = bytes.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", interpreter, err, stderr.Bytes())
	}
	return out
}

// specimen is a log, sound or not, that both verifiers judge.
type specimen struct {
	name  string
	files map[string][]byte
	o     audit.VerifyOptions
}

// log names segments from 0.
func specimenOf(name string, o audit.VerifyOptions, segments ...[]byte) specimen {
	s := specimen{name: name, files: map[string][]byte{}, o: o}
	for i, b := range segments {
		s.files[fmt.Sprintf("seg-%08d.cborseq", i)] = b
	}
	return s
}

// verdict is what the second verifier prints with --json.
type verdict struct {
	Verdict  string
	Problem  string
	Head     string
	Root     string
	Seals    uint64
	First    uint64
	Sealed   uint64
	Unsealed uint64
	Redacted int
	Withheld int
	Epoch    uint32
	At       *struct {
		Segment uint32
		Offset  int64
		Record  uint64
	}
}

// second has the second verifier judge all specimens in one process.
func second(t *testing.T, specimens []specimen) []verdict {
	t.Helper()
	var in bytes.Buffer
	dir := t.TempDir()
	for i, s := range specimens {
		at := filepath.Join(dir, fmt.Sprint(i))
		args := map[string]any{"path": at, "all_seals": s.o.AllSeals, "withheld": s.o.Withheld}
		if s.o.Head != "" {
			args["head"] = s.o.Head
		}
		if s.o.Root != (audit.Digest{}) {
			args["root"] = s.o.Root.String()
		}
		var kept []string
		for k, seal := range s.o.Anchors {
			kept = append(kept, filepath.Join(at, fmt.Sprintf("kept-%d", k)))
			writeSparse(t, kept[k], seal)
		}
		if kept != nil {
			args["anchors"] = kept
		}
		for name, content := range s.files {
			writeSparse(t, filepath.Join(at, name), content)
		}
		line, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		in.Write(append(line, '\n'))
	}
	lines := bufio.NewScanner(bytes.NewReader(python(t, in.Bytes(), secondVerifier, "--batch")))
	var all []verdict
	for lines.Scan() {
		var v verdict
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	if len(all) != len(specimens) {
		t.Fatalf("%d logs, %d verdicts", len(specimens), len(all))
	}
	return all
}

// writeSparse writes a file whose zeros at the end take no room.
func writeSparse(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, bytes.TrimRight(content, "\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, int64(len(content))); err != nil {
		t.Fatal(err)
	}
}

// agree demands the same verdict of both verifiers on every log: the same problem where something was altered, and where
// nothing is wrong the same account. It returns how often each verdict was given.
func agree(t *testing.T, specimens []specimen) map[audit.Status]int {
	t.Helper()
	given := map[audit.Status]int{}
	for i, got := range second(t, specimens) {
		s := specimens[i]
		files := fstest.MapFS{}
		for name, content := range s.files {
			files[name] = &fstest.MapFile{Data: content}
		}
		want := judge(t, files, s.o)
		given[want.Status]++
		if got.Verdict != want.Status.String() {
			t.Errorf("%s: the verdicts are %s and %s:\n  %v\n  %s", s.name, want.Status, got.Verdict, want.Problem, got.Problem)
			continue
		}
		switch want.Status {
		case audit.Altered:
			if got.At.Record != uint64(want.Problem.Seq) || got.At.Segment != want.Problem.Segment {
				t.Errorf("%s: altered in different places:\n  %v\n  %s", s.name, want.Problem, got.Problem)
			}
		case audit.Intact:
			mine := verdict{
				Verdict: "intact", Head: want.Head.Code(), Root: want.Root.String(), Seals: want.Seals, First: got.First,
				Sealed: want.Records, Redacted: want.Redacted, Withheld: want.Withheld, Epoch: want.Epochs,
			}
			if got != mine {
				t.Errorf("%s: other accounts:\n  %+v\n  %+v", s.name, mine, got)
			}
		}
	}
	return given
}

// What happens to bytes: flash that forgets, sectors that are swapped, tails that are torn, hands that know no key.
func TestTheVerifiersAgreeOnDamagedBytes(t *testing.T) {
	needPython(t)
	t.Parallel()
	log := livedLog(t)
	all := []specimen{
		specimenOf("two runs", audit.VerifyOptions{AllSeals: true}, log.content),
		specimenOf("another root", audit.VerifyOptions{Root: audit.Digest{1}}, log.content),
		specimenOf("all zeros", audit.VerifyOptions{}, make([]byte, audit.SegmentSize)),
		specimenOf("an empty file", audit.VerifyOptions{}, nil),
		specimenOf("a segment begun", audit.VerifyOptions{}, log.content, make([]byte, audit.SegmentSize)),
		specimenOf("an empty segment in between", audit.VerifyOptions{}, log.content, make([]byte, audit.SegmentSize), log.content),
		specimenOf("a byte too long", audit.VerifyOptions{}, append(bytes.Clone(log.content), 0)),
	}
	written := log.ends[len(log.ends)-1]
	for _, end := range log.ends {
		zeros := append(bytes.Clone(log.content[:end]), make([]byte, audit.SegmentSize-end)...)
		all = append(all,
			specimenOf(fmt.Sprintf("cut at %d", end), audit.VerifyOptions{}, log.content[:end]),
			specimenOf(fmt.Sprintf("zeros from %d", end), audit.VerifyOptions{}, zeros))
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		b := bytes.Clone(log.content)
		at := rnd.IntN(written)
		if rnd.IntN(3) == 0 { // near the end, where torn and altered are hard to tell apart
			at = log.ends[len(log.ends)-2] - audit.Block + rnd.IntN(3*audit.Block)
		}
		name := ""
		switch rnd.IntN(8) {
		case 0, 1:
			b[at] ^= 1 << rnd.IntN(8)
			name = fmt.Sprintf("a bit at %d", at)
		case 2:
			n := rnd.IntN(2000)
			for k := range n {
				b[at+k] = byte(rnd.Uint32())
			}
			name = fmt.Sprintf("%d bytes of noise at %d", n, at)
		case 3:
			clear(b[at/512*512 : at/512*512+512])
			name = fmt.Sprintf("a lost sector at %d", at)
		case 4:
			from := rnd.IntN(written) / 512 * 512
			copy(b[at/512*512:][:512], log.content[from:])
			name = fmt.Sprintf("sector %d at %d", from, at)
		case 5:
			clear(b[at:])
			name = fmt.Sprintf("zeros from %d", at)
		case 6:
			b = b[:at]
			name = fmt.Sprintf("cut at %d", at)
		case 7:
			x, y := pick(rnd, log.frames), pick(rnd, log.frames)
			if x.from > y.from {
				x, y = y, x
			}
			var swapped []byte
			for _, s := range []span{{0, x.from}, y, {x.to, max(x.to, y.from)}, x, {y.to, len(b)}} {
				swapped = append(swapped, log.content[s.from:s.to]...)
			}
			b = append(swapped, make([]byte, audit.SegmentSize)...)[:audit.SegmentSize]
			name = fmt.Sprintf("frames at %d and %d swapped", x.from, y.from)
		}
		all = append(all, specimenOf(fmt.Sprintf("damage %d, %s", i, name), audit.VerifyOptions{AllSeals: i%2 == 0}, b))
	}
	given := agree(t, all)
	t.Logf("%d logs: %v", len(all), given)
	if given[audit.Intact] < 5 || given[audit.Altered] < 150 || given[audit.Incomplete] < 20 {
		t.Errorf("%v", given)
	}
}

// A year of a box in small: calls of both sorts over several segments and starts.
func TestTheVerifiersAgreeOnALogOfManyCalls(t *testing.T) {
	needPython(t)
	t.Parallel()
	disk := audittest.NewDisk()
	clk := clocktest.New()
	for run := range 3 {
		l := open(t, clk, disk)
		for k := range byte(80) {
			n := byte(run)*80 + k // an invocation is used once
			c := audittest.Automatic(n)
			if k%3 == 0 {
				c = audittest.Required(clk, n)
			}
			i := intend(t, l, c)
			clk.Advance(time.Second)
			if k == 79 && run < 2 {
				break // power goes before the effect is known
			}
			e, _ := audit.BlobOf(audit.BlobView, c.Inv, bytes.Repeat([]byte{n}, 9000))
			if _, err := l.Effect(t.Context(), i, audit.EffectRecord{Status: capabilities.Done}, e); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var s [][]byte
	for i := 0; disk.Content(fmt.Sprintf("seg-%08d.cborseq", i)) != nil; i++ {
		s = append(s, disk.Content(fmt.Sprintf("seg-%08d.cborseq", i)))
	}
	if len(s) < 3 {
		t.Fatalf("%d segments", len(s))
	}
	bent := bytes.Clone(s[1])
	bent[500_000] ^= 1
	given := agree(t, []specimen{
		specimenOf("whole", audit.VerifyOptions{AllSeals: true}, s...),
		specimenOf("rolled back", audit.VerifyOptions{}, s[:2]...),
		specimenOf("one missing", audit.VerifyOptions{}, s[0], s[1], s[2][:0]),
		specimenOf("swapped", audit.VerifyOptions{}, s[0], s[2], s[1]),
		specimenOf("repeated", audit.VerifyOptions{}, s[0], s[1], s[1]),
		specimenOf("a bit in the middle", audit.VerifyOptions{}, s[0], bent, s[2]),
		specimenOf("a cut in the middle", audit.VerifyOptions{}, s[0], s[1][:len(s[1])/2], s[2]),
		{name: "the first is missing", files: map[string][]byte{"seg-00000001.cborseq": s[1], "seg-00000002.cborseq": s[2]}},
		{name: "the middle is missing", files: map[string][]byte{"seg-00000000.cborseq": s[0], "seg-00000002.cborseq": s[2]}},
		{name: "an export", files: map[string][]byte{"log/seg-00000000.cborseq": s[0], "README.txt": []byte("x")}},
	})
	if given[audit.Intact] != 3 || given[audit.Altered] != 4 || given[audit.Incomplete] != 3 {
		t.Errorf("%v", given)
	}
}

// What a person sees of the second verifier: a verdict, the first problem with its place, and an exit status.
func TestTheSecondVerifierAsACommand(t *testing.T) {
	interpreter := needPython(t)
	t.Parallel()
	files, list := storedLogs(t)
	dir := t.TempDir()
	for name, content := range files {
		writeSparse(t, filepath.Join(dir, name), content)
	}
	writeSparse(t, filepath.Join(dir, "kept.txt"), []byte("# kept by a phone\n\n"+base64.RawURLEncoding.EncodeToString(files["press.seal"])+"\n"))
	writeSparse(t, filepath.Join(dir, "none.txt"), []byte("hello\n"))
	writeSparse(t, filepath.Join(dir, "said/REDACTED.txt"), nil)
	writeSparse(t, filepath.Join(dir, "said/seg-00000000.cborseq"), files["withheld/seg-00000000.cborseq"])
	for name, c := range map[string]struct {
		args []string
		exit int
		says string
	}{
		"intact":          {[]string{"calls", "--all-seals"}, 0, "verdict: intact\n"},
		"its head":        {[]string{"calls"}, 0, "head: " + list[0].Head},
		"altered":         {[]string{"bit"}, 1, "problem: segment 0 offset 4268: record 5: a blob"},
		"incomplete":      {[]string{"torn"}, 2, "verdict: incomplete"},
		"json":            {[]string{"torn", "--json"}, 2, `{"verdict": "incomplete"`},
		"another root":    {[]string{"calls", "--root", strings.Repeat("ab", 32)}, 1, "root key"},
		"a kept seal":     {[]string{"rollback", "--anchor", "press.seal"}, 2, "rolled back"},
		"kept by a phone": {[]string{"rollback", "--anchor", "kept.txt"}, 2, "rolled back"},
		"and held":        {[]string{"press", "--anchor", "kept.txt"}, 0, "verdict: intact\n"},
		"a noted head":    {[]string{"calls", "--head", list[0].Head[:4] + "-" + strings.ToLower(list[0].Head[4:])}, 0, "verdict: intact\n"},
		"another head":    {[]string{"calls", "--head", "ZZZZ-ZZZZ"}, 2, "problem: no record has the code ZZZZZZZZ"},
		"no head":         {[]string{"calls", "--head", "12345"}, 3, "8 characters"},
		"withheld":        {[]string{"withheld", "--withheld"}, 0, "verdict: intact, but 1 literal text was left out of this copy, as --withheld accepts\n"},
		"it says nothing": {[]string{"withheld"}, 2, "verdict: incomplete"},
		"it says so":      {[]string{"said"}, 0, "verdict: intact, but 1 literal text was left out of this copy, as it says itself\n"},
		"so to programs":  {[]string{"said", "--json"}, 0, `"withheld": 1, "epoch": 1, "withheld_by": "copy"`},
		"no log":          {[]string{"nowhere"}, 2, "no segments here"},
		"no anchor":       {[]string{"calls", "--anchor", "nowhere"}, 2, "nowhere"},
		"a key of zeros":  {[]string{"calls", "--root", strings.Repeat("0", 64)}, 3, "not only zeros"},
		"no root key":     {[]string{"calls", "--root", "ab"}, 3, "64 hexadecimal digits"},
		"no seal":         {[]string{"calls", "--anchor", "none.txt"}, 3, "none.txt holds no seals"},
		"no such option":  {[]string{"calls", "--loud"}, 3, "--loud"},
		"nothing to read": {nil, 3, "directory"},
	} {
		script, err := filepath.Abs(secondVerifier)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), interpreter, append([]string{script}, c.args...)...)
		cmd.Dir = dir
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != c.exit || !strings.Contains(string(out), c.says) {
			t.Errorf("%s: exit %d\n%s", name, got, out)
		}
	}
}

// Both read the same payloads: each field of each kind is set to values of every type and size, and left out.
func TestTheVerifiersAgreeOnTheLimitsOfEveryField(t *testing.T) {
	needPython(t)
	t.Parallel()
	frames := bent(t)
	var in strings.Builder
	for _, f := range frames {
		in.WriteString(hex.EncodeToString(f.bytes) + "\n")
	}
	const driver = `
import sys
import assent_verify as v
for line in sys.stdin:
    try:
        v.Frame(bytes.fromhex(line), 0).record()
        print("yes")
    except v.Malformed as why:
        print("no:", why)
`
	answers := strings.Split(strings.TrimSpace(string(python(t, []byte(in.String()), "-c", "import sys; sys.path.insert(0, 'verify')"+driver))), "\n")
	if len(answers) != len(frames) {
		t.Fatalf("%d frames, %d answers", len(frames), len(answers))
	}
	accepted := 0
	for i, f := range frames {
		_, _, err := audit.DecodeBody(f.bytes)
		if err == nil {
			accepted++
		}
		if (err == nil) != (answers[i] == "yes") {
			t.Errorf("%s: %v, and %s", f.name, err, answers[i])
		}
	}
	t.Logf("%d of %d are accepted", accepted, len(frames))
	if accepted < len(frames)/20 || accepted > len(frames)/2 {
		t.Errorf("%d of %d are accepted: the values are not chosen well", accepted, len(frames))
	}
}
