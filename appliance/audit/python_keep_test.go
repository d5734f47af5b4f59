package audit_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fxamacker/cbor/v2"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
)

// kept is what a verifier looks at of a disk.
func kept(disk *audittest.Disk) map[string][]byte {
	files := map[string][]byte{}
	for name, f := range disk.FS().(fstest.MapFS) {
		if strings.HasSuffix(name, ".cborseq") {
			files[name] = f.Data
		}
	}
	return files
}

// Pruned logs, logs that were rolled back, and what was kept elsewhere of them.
func TestTheVerifiersAgreeOnWhatAnchorsProve(t *testing.T) {
	needPython(t)
	t.Parallel()
	disk, clk := prunedLog(t)
	files := kept(disk)
	var seals []audit.Bytes
	visit := func(e audit.Entered) error {
		if p, ok := e.Payload.(*audit.Seal); ok {
			seals = append(seals, p.Sign1)
		}
		return nil
	}
	whole, err := audit.Verify(t.Context(), disk.FS(), audit.VerifyOptions{Visit: visit})
	if err != nil {
		t.Fatal(err)
	}
	newest := [][]byte{seals[len(seals)-1]}
	l := open(t, clk, disk)
	later := [][]byte{l.Head().Seal}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	longer := kept(disk)
	other, _ := prunedLog(t)
	names := slices.Sorted(maps.Keys(files))
	anchors, first, last := names[0], names[1], names[len(names)-1]
	with := func(files map[string][]byte, name string, content []byte) map[string][]byte {
		changed := maps.Clone(files)
		if changed[name] = content; content == nil {
			delete(changed, name)
		}
		return changed
	}
	all := []specimen{
		{"pruned", files, audit.VerifyOptions{AllSeals: true}},
		{"pruned, its root", files, audit.VerifyOptions{Root: whole.Root}},
		{"pruned, another root", files, audit.VerifyOptions{Root: audit.Digest{1}}},
		{"without anchors", with(files, anchors, nil), audit.VerifyOptions{}},
		{"without anchors, its root", with(files, anchors, nil), audit.VerifyOptions{Root: whole.Root}},
		{"with another log's anchors", with(files, anchors, kept(other)[anchors]), audit.VerifyOptions{}},
		{"anchors of a longer log", with(files, anchors, longer[anchors]), audit.VerifyOptions{}},
		{"anchors that lag", with(longer, anchors, files[anchors]), audit.VerifyOptions{}},
		{"an empty file of anchors", with(files, anchors, []byte{}), audit.VerifyOptions{}},
		{"zeros after the anchors", with(files, anchors, append(bytes.Clone(files[anchors]), 0, 0)), audit.VerifyOptions{}},
		{"anchors twice", with(files, anchors, append(bytes.Clone(files[anchors]), files[anchors]...)), audit.VerifyOptions{}},
		{"more is gone than was pruned", with(files, first, nil), audit.VerifyOptions{}},
		{"the last segment is gone", with(files, last, nil), audit.VerifyOptions{}},
		{"the newest seal", files, audit.VerifyOptions{Anchors: newest}},
		{"an older seal", longer, audit.VerifyOptions{Anchors: newest}},
		{"a later seal", files, audit.VerifyOptions{Anchors: later}},
		{"a seal of another log", kept(other), audit.VerifyOptions{Anchors: newest}},
		{"many seals", longer, audit.VerifyOptions{Anchors: append(slices.Clone(newest), later...)}},
		{"the newest seal of a log that lost a segment", with(files, last, nil), audit.VerifyOptions{Anchors: newest}},
		{"a seal of a part that was pruned", files, audit.VerifyOptions{Anchors: [][]byte{early(t, seals[0])}}},
		{"a seal that never was", files, audit.VerifyOptions{Anchors: [][]byte{forkOf(t, seals[len(seals)/2])}}},
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	for i := range 100 {
		b := bytes.Clone(files[anchors])
		at := rnd.IntN(len(b))
		if i%3 == 0 {
			b = b[:at]
		} else {
			b[at] ^= 1 << rnd.IntN(8)
		}
		all = append(all, specimen{fmt.Sprintf("anchors %d, at %d", i, at), with(files, anchors, b), audit.VerifyOptions{}})
	}
	given := agree(t, all)
	t.Logf("%d logs: %v", len(all), given)
	if given[audit.Intact] < 10 || given[audit.Altered] < 40 || given[audit.Incomplete] < 10 {
		t.Errorf("%v", given)
	}
}

// early is a seal of a batch long before the one that is given.
func early(t *testing.T, signed audit.Bytes) []byte {
	return resealed(t, signed, func(c *audit.SealClaims) { c.Size = 3 })
}

// forkOf is a seal in the same place of another log.
func forkOf(t *testing.T, signed audit.Bytes) []byte {
	return resealed(t, signed, func(c *audit.SealClaims) { c.Link[0]++ })
}

func resealed(t *testing.T, signed audit.Bytes, change func(*audit.SealClaims)) []byte {
	t.Helper()
	var tag cbor.Tag
	if err := cbor.Unmarshal(signed, &tag); err != nil {
		t.Fatal(err)
	}
	var claims audit.SealClaims
	if err := cbor.Unmarshal(tag.Content.([]any)[2].([]byte), &claims); err != nil {
		t.Fatal(err)
	}
	change(&claims)
	return audittest.Sign1(audittest.GrantKey(), "application/assent-seal+cbor", "assent/seal/v1", encoded(t, claims))
}

// A thief with all keys writes a log whose first segment was pruned, and the anchors that go with it.
func TestTheVerifiersAgreeOnAPrunedLogOfAThief(t *testing.T) {
	needPython(t)
	t.Parallel()
	front, rest := prunedLogParts(t)
	var all []specimen
	write := func(name string, th thief, rest []part, change func([]byte) []byte, o audit.VerifyOptions) {
		sound := thief{t: t, key: newForger(t).key}
		sound.write(front)
		sound.stale, sound.lie = th.stale, th.lie
		segment := sound.write(rest)[0]
		files := map[string][]byte{"seg-00000001.cborseq": segment, "anchors.cborseq": change(sound.anchors)}
		all = append(all, specimen{name, files, o})
	}
	same := func(b []byte) []byte { return b }
	write("sound", thief{}, rest, same, audit.VerifyOptions{AllSeals: true})
	for i := range rest {
		write(fmt.Sprintf("without record %d", i), thief{}, slices.Delete(slices.Clone(rest), i, i+1), same, audit.VerifyOptions{})
		write(fmt.Sprintf("record %d twice", i), thief{}, slices.Insert(slices.Clone(rest), i, part{class: rest[i].class, body: rest[i].body}), same, audit.VerifyOptions{})
		write(fmt.Sprintf("the first %d", i+1), thief{}, rest[:i+1], same, audit.VerifyOptions{})
	}
	// Records of calls whose beginning is gone, before the first start and after it.
	calls := slices.DeleteFunc(slices.Clone(front), func(p part) bool {
		return !slices.Contains([]audit.Kind{audit.KindDecision, audit.KindApproval, audit.KindIntent, audit.KindEffect, audit.KindWithdraw}, p.kindOf())
	})
	for i, p := range calls {
		for _, at := range []int{3, len(rest)} {
			for n, more := range [][]part{{p}, {p, p}, {p, rest[2], p}, calls[i:]} {
				log := append(append(slices.Clone(rest[:at]), more...), rest[2])
				write(fmt.Sprintf("call record %d, %s, at %d in way %d", i, p.kindOf(), at, n), thief{}, log, same, audit.VerifyOptions{})
			}
		}
	}
	for _, field := range []int{1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12} {
		lied := slices.Clone(rest)
		lied[0].body = withPayload(t, lied[0].body, field, nil)
		write(fmt.Sprintf("segment field %d", field), thief{}, lied, same, audit.VerifyOptions{})
	}
	rnd := rand.New(rand.NewPCG(5, 6))
	for i := range 100 {
		name, changed, th := twist(t, rnd, rest)
		write(fmt.Sprintf("twist %d, %s", i, name), th, changed, same, audit.VerifyOptions{AllSeals: i%2 == 0})
	}
	given := agree(t, all)
	t.Logf("%d logs: %v", len(all), given)
	if given[audit.Intact] < 20 || given[audit.Altered] < 80 || given[audit.Incomplete] < 5 {
		t.Errorf("%v", given)
	}
}
