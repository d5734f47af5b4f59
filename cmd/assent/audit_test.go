package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/rogpeppe/go-internal/testscript"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/capabilities"
)

func TestAuditScripts(t *testing.T) {
	shared := t.TempDir()
	head, err := logs(shared)
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/audit",
		UpdateScripts: *update,
		Cmds:          map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		Setup: func(env *testscript.Env) error {
			env.Setenv("HEAD", head.code)
			env.Setenv("ROOT", head.root)
			// Nothing writes to them, so all scripts read the same.
			made, err := os.ReadDir(shared)
			if err != nil {
				return err
			}
			for _, d := range made {
				if err := os.Symlink(filepath.Join(shared, d.Name()), filepath.Join(env.WorkDir, d.Name())); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

// noted is what a person noted of a log.
type noted struct {
	code, root string
	seal       []byte
}

const firstSegment = "seg-00000000.cborseq"

// hostileBytes command a terminal, reorder, hide, and would be a formula.
const hostileBytes = "=cmd\x1b]52;c;aGk=\x07\u202e\u200bb"

// logs leaves logs in directories of their own, and returns what a person would have noted of whole:
//
//	whole     of a day: a call that was refused, a claim, and a call that was pressed
//	state     the same as a box keeps it, below its state directory
//	altered   whole, with a bit flipped before the pressed call
//	late      whole, with a bit flipped after it, in the last batch but one
//	torn      whole, with a bit set after its end
//	withheld  whole, with its literal texts left out
//	redacted  the same, with records that say so
//	long      of three segments
//	gap       long, with its middle segment missing
//	pruned    long, with its first segment pruned after a press at the box
//	anchors   files with seals of whole, of a shorter log, of another log, and what is none
//	earlier   whole, rolled back to before its last batch
//	empty     nothing
func logs(in string) (noted, error) {
	dir := func(name string) string { return filepath.Join(in, name) }
	whole, head, err := recordDay(dir("whole"), false)
	if err != nil {
		return head, err
	}
	flipped := func(at int) []byte {
		b := append([]byte{}, whole...)
		b[at] ^= 1
		return b
	}
	removed, other, err := recordDay(dir("redacted"), true)
	if err != nil {
		return head, err
	}
	end := lastSeal(whole)
	for name, segment := range map[string][]byte{
		"state/guard/audit": whole, "altered": flipped(8300), "late": flipped(end/audit.Block*audit.Block - audit.Block + 100), "torn": flipped(audit.SegmentSize - 9),
		"withheld": withoutTexts(whole), "redacted": withoutTexts(removed), "whole": whole,
	} {
		if err := os.MkdirAll(dir(name), 0o755); err != nil {
			return head, err
		}
		if err := os.WriteFile(filepath.Join(dir(name), firstSegment), segment, 0o644); err != nil {
			return head, err
		}
	}
	for _, name := range []string{"long", "gap", "pruned"} {
		if err := recordMuch(dir(name), name == "pruned"); err != nil {
			return head, err
		}
	}
	if err := os.Mkdir(dir("anchors"), 0o755); err != nil {
		return head, err
	}
	text := base64.RawURLEncoding.EncodeToString(head.seal)
	for name, content := range map[string]string{
		"raw": string(head.seal), "lines": "# kept by a phone\n\n" + text + "\n" + base64.StdEncoding.EncodeToString(head.seal) + "\r\n",
		"none": "hello\n", "empty": "\n", "spoiled": text[:40] + "\n", "other": string(other.seal),
	} {
		if err := os.WriteFile(filepath.Join(dir("anchors"), name), []byte(content), 0o644); err != nil {
			return head, err
		}
	}
	// The log as it was before its last batch, as somebody would put it back.
	block := (end - 1) / audit.Block * audit.Block
	earlier := append(append([]byte{}, whole[:block]...), make([]byte, audit.SegmentSize-block)...)
	if err := os.Mkdir(dir("earlier"), 0o755); err != nil {
		return head, err
	}
	if err := os.WriteFile(filepath.Join(dir("earlier"), firstSegment), earlier, 0o644); err != nil {
		return head, err
	}
	if err := os.Remove(filepath.Join(dir("gap"), "seg-00000001.cborseq")); err != nil {
		return head, err
	}
	return head, os.Mkdir(dir("empty"), 0o755)
}

// recordDay records a day in dir and returns its one segment. With removal, records at its end say that its literal texts
// were removed.
func recordDay(dir string, removal bool) (segment []byte, head noted, err error) {
	ctx := context.Background()
	clk := clocktest.New()
	o := audittest.Options(clk, nil)
	o.Dir = dir
	l, err := audit.Open(ctx, o)
	if err != nil {
		return nil, head, err
	}
	defer l.Close()
	clk.SetWall(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), clock.Synced)
	refused := audittest.Automatic(1)
	refused.Proposal.Name, refused.Proposal.Capability, refused.Proposal.Version = []byte(hostileBytes), "", 0
	if _, err := l.Barrier(ctx,
		audit.Entry{Inv: refused.Inv, Payload: refused.Proposal},
		audit.Entry{Inv: refused.Inv, Payload: audit.Decision{
			Stage: capabilities.StageResolve, Verdict: audit.Refuse, Status: capabilities.Rejected, Code: capabilities.CodeUnknownCapability,
			Reason: "there is no capability of exactly that name",
		}},
		audit.Entry{Payload: audit.Claim{
			From: audit.ByGateway, Class: audit.ClaimParseFailure, Code: capabilities.CodeMalformed, Text: []byte("\x1b[2J"), Ask: audit.ID{3},
		}},
		audit.Entry{Payload: audit.Admin{Action: audit.AdminPairing, Outcome: audit.Approved, By: audit.ByBox, On: audit.Yes}},
	); err != nil {
		return nil, head, err
	}
	call := audittest.Required(clk, 2)
	raw, digest := audit.BlobOf(audit.BlobRaw, call.Inv, []byte("{\"query\":\"tide times\"}\x1b[2J"))
	view, viewDigest := audit.BlobOf(audit.BlobView, call.Inv, []byte("Search Wikipedia for\n=tide\u202e times\nwikipedia.org"))
	call.Proposal.RawDigest, call.Proposal.ArgsView = digest, viewDigest
	call.Blobs = append(call.Blobs, raw, view)
	i, err := l.Intend(ctx, call.Entries(), call.Intent, call.Inv)
	if err != nil {
		return nil, head, err
	}
	clk.Advance(24 * time.Hour)
	turn := audit.Claim{
		From: audit.ByGateway, Class: audit.ClaimTurn, Ask: call.Proposal.Ask, AskDigest: audittest.Sum("When is the tide?"), Slot: 2,
		Count: 2, Offered: []string{"system_health__v1", "web_search__v1"},
	}
	if _, err := l.Effect(ctx, i, audit.EffectRecord{Status: capabilities.Done, Sent: true, HTTPStatus: 200}, audit.Entry{Payload: turn}); err != nil {
		return nil, head, err
	}
	for _, on := range []bool{true, false} {
		if _, err := l.Barrier(ctx, audit.Entry{Payload: audit.Freeze{On: on, By: audit.ByBox}}); err != nil {
			return nil, head, err
		}
	}
	if removal {
		segment, err := os.ReadFile(filepath.Join(dir, firstSegment))
		if err != nil {
			return nil, head, err
		}
		if _, err := l.Barrier(ctx, removals(segment)...); err != nil {
			return nil, head, err
		}
	}
	head = noted{l.Head().Code(), l.Root().String(), l.Head().Seal}
	if err := l.Close(); err != nil {
		return nil, head, err
	}
	segment, err = os.ReadFile(filepath.Join(dir, firstSegment))
	return segment, head, err
}

// recordMuch records more than two segments, and gives the first one up if told to.
func recordMuch(dir string, prune bool) error {
	o := audittest.Options(clocktest.New(), nil)
	o.Dir = dir
	l, err := audit.Open(context.Background(), o)
	if err != nil {
		return err
	}
	defer l.Close()
	for i := range 40 {
		blob, _ := audit.BlobOf(audit.BlobTool, [16]byte{}, append(make([]byte, audit.MaxBlob-1), byte(i)))
		if err := l.Append(context.Background(), blob); err != nil {
			return err
		}
	}
	if prune {
		seqs, err := l.Barrier(context.Background(), audit.Entry{Payload: audit.Admin{Action: audit.AdminPrune, Outcome: audit.Approved, By: audit.ByBox}})
		if err != nil {
			return err
		}
		if err := l.Prune(context.Background(), 0, seqs[0]); err != nil {
			return err
		}
	}
	return l.Close()
}

// rawFrame is a frame of a log as FORMAT.md describes it: class, body, link.
type rawFrame struct {
	_     struct{} `cbor:",toarray"`
	Class uint8
	Body  cbor.RawMessage
	Link  []byte
}

// frames takes a segment apart.
func frames(segment []byte) (all []rawFrame) {
	for at := 0; at < len(segment); {
		if segment[at] == 0 {
			at = (at/audit.Block + 1) * audit.Block
			continue
		}
		var f rawFrame
		rest, err := cbor.UnmarshalFirst(segment[at:], &f)
		if err != nil {
			panic(err)
		}
		all = append(all, f)
		at = len(segment) - len(rest)
	}
	return all
}

func (f rawFrame) body() (b []byte) {
	if err := cbor.Unmarshal(f.Body, &b); err != nil {
		panic(err)
	}
	return b
}

func (f rawFrame) seal() bool { return f.Class == 0 && f.body()[2] == byte(audit.KindSeal) }

// lastSeal is where the last seal of a segment ends.
func lastSeal(segment []byte) int {
	end := len(segment)
	for end > 0 && segment[end-1] == 0 {
		end--
	}
	return end
}

// removals says of each literal text of a segment that it was removed.
func removals(segment []byte) (all []audit.Entry) {
	for seq, f := range frames(segment) {
		if f.Class == 1 {
			all = append(all, audit.Entry{Payload: audit.Redact{Seq: audit.Seq(seq), Body: sha256.Sum256(f.body()), By: audit.ByTimer}})
		}
	}
	return all
}

// withoutTexts lays a segment out anew with the bodies of its blobs replaced by their digests.
func withoutTexts(segment []byte) []byte {
	var out []byte
	for _, f := range frames(segment) {
		if f.Class == 1 {
			digest := sha256.Sum256(f.body())
			f.Body = encoded([][]byte{digest[:]})
		}
		out = append(out, encoded(f)...)
		if f.seal() {
			out = append(out, make([]byte, (audit.Block-len(out)%audit.Block)%audit.Block)...)
		}
	}
	return append(out, make([]byte, audit.SegmentSize-len(out))...)
}

func encoded(v any) []byte {
	b, err := cbor.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
