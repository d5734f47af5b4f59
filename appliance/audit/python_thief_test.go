package audit_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/confirm/receipt"
)

// A thief with all keys leaves no wrong link and no wrong seal, so what is left to find is what the records say.
func TestTheVerifiersAgreeOnWhatAThiefWrites(t *testing.T) {
	needPython(t)
	t.Parallel()
	parts := richLog(t)
	key := newForger(t).key
	var all []specimen
	write := func(name string, th thief, parts []part, o audit.VerifyOptions) {
		th.t, th.key = t, key
		all = append(all, specimenOf(name, o, th.write(parts)...))
	}
	write("sound", thief{}, parts, audit.VerifyOptions{AllSeals: true})
	for i := range parts {
		write(fmt.Sprintf("without record %d", i), thief{}, slices.Delete(slices.Clone(parts), i, i+1), audit.VerifyOptions{})
		write(fmt.Sprintf("record %d twice", i), thief{}, slices.Insert(slices.Clone(parts), i, part{parts[i].class, parts[i].body, parts[i].redacted, false}), audit.VerifyOptions{})
		redacted := slices.Clone(parts)
		redacted[i].redacted = !redacted[i].redacted
		write(fmt.Sprintf("record %d redacted or not", i), thief{}, redacted, audit.VerifyOptions{})
		blobs := slices.Insert(slices.Clone(parts), i, part{class: 1, body: []byte("x"), redacted: true})
		write(fmt.Sprintf("redacted blob before %d", i), thief{}, blobs, audit.VerifyOptions{Withheld: true})
	}
	begins := slices.IndexFunc(parts, func(p part) bool { return p.begins })
	seal := parts[begins-1]
	for i, p := range parts {
		p.begins = false
		write(fmt.Sprintf("record %d again in the run", i), thief{}, append(slices.Clone(parts[:begins]), p, seal), audit.VerifyOptions{Withheld: true})
		write(fmt.Sprintf("record %d again at the end", i), thief{}, append(slices.Clone(parts), p, seal), audit.VerifyOptions{})
	}
	exported := uint64(slices.IndexFunc(parts, func(p part) bool { return p.kindOf() == audit.KindExport }))
	approvedAt := uint64(slices.IndexFunc(parts, func(p part) bool { return p.kindOf() == audit.KindAdmin }))
	for i, p := range parts {
		if p.kindOf() == audit.KindPrune {
			both := slices.Clone(parts)
			both[i].body = withPayload(t, withPayload(t, p.body, 6, encoded(t, exported)), 8, encoded(t, approvedAt))
			write(fmt.Sprintf("prune %d with an export and an approval", i), thief{}, both, audit.VerifyOptions{})
		}
	}
	for name, lie := range map[string]func(*audit.SealClaims){
		"size":   func(c *audit.SealClaims) { c.Size++ },
		"link":   func(c *audit.SealClaims) { c.Link[0]++ },
		"epoch":  func(c *audit.SealClaims) { c.Epoch++ },
		"first":  func(c *audit.SealClaims) { c.First++ },
		"header": func(c *audit.SealClaims) { c.Header[0]++ },
		"tree":   func(c *audit.SealClaims) { c.Tree = audit.Digest{1} },
	} {
		write("seals lie about "+name, thief{lie: lie}, parts, audit.VerifyOptions{})
		th := thief{t: t, key: key}
		s := th.write(parts[:begins])
		th.lie = lie
		all = append(all, specimenOf("late seals lie about "+name, audit.VerifyOptions{}, s[0], th.write(parts[begins:])[0]))
	}
	for n := 1; n < len(parts); n++ {
		write(fmt.Sprintf("the first %d", n), thief{}, parts[:n], audit.VerifyOptions{})
	}
	for i, p := range parts {
		for name, body := range otherwise(t, p) {
			log := slices.Clone(parts)
			log[i].body = body
			write(fmt.Sprintf("record %d with %s", i, name), thief{follow: i < begins}, log, audit.VerifyOptions{})
		}
	}
	approved := slices.IndexFunc(parts, func(p part) bool { return p.kindOf() == audit.KindApproval })
	for name, c := range map[string]struct {
		claim, field int // keys of the receipt's claims and of the approval; 0 for none
		value        []byte
	}{
		"nothing":                    {11, 10, encoded(t, uint64(time.Hour))},
		"shown after pressed":        {11, 10, encoded(t, uint64(time.Hour+3*time.Second))},
		"pressed after completed":    {12, 11, encoded(t, uint64(2*time.Hour))},
		"completed after the end":    {14, 13, encoded(t, uint64(time.Hour))},
		"no end":                     {14, 0, []byte{0}},
		"another screen on both":     {3, 3, encoded(t, audit.Digest{1})},
		"no screen":                  {3, 0, encoded(t, audit.Digest{})},
		"no nonce":                   {9, 0, encoded(t, audit.Digest{})},
		"another nonce":              {9, 0, encoded(t, audit.Digest{1})},
		"another registry":           {16, 0, encoded(t, "r2")},
		"a long name of a registry":  {16, 0, encoded(t, strings.Repeat("r", 65))},
		"a control character":        {16, 0, encoded(t, "r\n")},
		"a field that there is not":  {17, 0, []byte{1}},
		"a number longer than needs": {15, 0, []byte{0x18, 2}},
		"another version":            {6, 0, []byte{2}},
	} {
		log := slices.Clone(parts)
		log[approved].body = reapproved(t, log[approved].body, c.claim, c.field, c.value)
		// The intent names the receipt.
		var top, payload map[int]cbor.RawMessage
		if cbor.Unmarshal(log[approved].body, &top) != nil || cbor.Unmarshal(top[8], &payload) != nil {
			t.Fatal("an approval cannot be read")
		}
		var signed []byte
		if err := cbor.Unmarshal(payload[2], &signed); err != nil {
			t.Fatal(err)
		}
		log[approved+1].body = withPayload(t, log[approved+1].body, 13, encoded(t, audit.Digest(sha256.Sum256(signed))))
		write("a receipt with "+name, thief{follow: true}, log, audit.VerifyOptions{})
	}
	rnd := rand.New(rand.NewPCG(7, 7))
	for i := range 120 {
		name, changed, th := twist(t, rnd, parts)
		write(fmt.Sprintf("twist %d, %s", i, name), th, changed, audit.VerifyOptions{AllSeals: i%2 == 0})
	}
	given := agree(t, all)
	t.Logf("%d logs: %v", len(all), given)
	if given[audit.Intact] < 10 || given[audit.Altered] < 200 || given[audit.Incomplete] < 10 {
		t.Errorf("%v", given)
	}
}

// reapproved is an approval with one claim of its receipt changed and signed again, and a field of its own with it.
func reapproved(t *testing.T, body []byte, claim, field int, value []byte) []byte {
	t.Helper()
	var top, payload, claims map[int]cbor.RawMessage
	var signed []byte
	var tag cbor.Tag
	for _, step := range []func() error{
		func() error { return cbor.Unmarshal(body, &top) },
		func() error { return cbor.Unmarshal(top[8], &payload) },
		func() error { return cbor.Unmarshal(payload[2], &signed) },
		func() error { return cbor.Unmarshal(signed, &tag) },
		func() error { return cbor.Unmarshal(tag.Content.([]any)[2].([]byte), &claims) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	claims[claim] = value
	again := audittest.Sign1(audittest.ReceiptKey(), receipt.ContentType, receipt.AAD, mapOf(claims))
	body = withPayload(t, body, 2, encoded(t, again))
	if field != 0 {
		body = withPayload(t, body, field, value)
	}
	return body
}

// otherwise gives a record's body with one field changed: its last bit, and for a small number another one.
func otherwise(t *testing.T, p part) map[string][]byte {
	t.Helper()
	bodies := map[string][]byte{}
	if p.redacted || p.kindOf() == audit.KindSeal {
		return bodies
	}
	var top, payload map[int]cbor.RawMessage
	if cbor.Unmarshal(p.body, &top) != nil || cbor.Unmarshal(top[8], &payload) != nil {
		t.Fatal("a sound record cannot be read")
	}
	for key, value := range payload {
		bodies[fmt.Sprintf("field %d bent", key)] = withPayload(t, p.body, key, nil)
		if value[0] > 0 && value[0] < 24 {
			bodies[fmt.Sprintf("field %d one more", key)] = withPayload(t, p.body, key, []byte{value[0] + 1})
			bodies[fmt.Sprintf("field %d one less", key)] = withPayload(t, p.body, key, []byte{value[0] - 1})
		}
	}
	return bodies
}

// twist changes one thing at random.
func twist(t *testing.T, rnd *rand.Rand, parts []part) (string, []part, thief) {
	t.Helper()
	parts = slices.Clone(parts)
	i := rnd.IntN(len(parts))
	var th thief
	switch rnd.IntN(6) {
	case 0:
		k := rnd.IntN(len(parts))
		parts[i], parts[k] = parts[k], parts[i]
		th.follow = true
		return fmt.Sprintf("records %d and %d swapped", i, k), parts, th
	case 1:
		th.stale = true
		k := rnd.IntN(len(parts))
		parts[i] = parts[k]
		return fmt.Sprintf("record %d in the place of %d", k, i), parts, th
	case 2:
		parts[i].body = bytes.Clone(parts[i].body)
		at := rnd.IntN(len(parts[i].body))
		parts[i].body[at] ^= 1 << rnd.IntN(8)
		th.stale = rnd.IntN(2) == 0
		return fmt.Sprintf("a bit of byte %d of record %d", at, i), parts, th
	}
	// A value of a payload, or of the record itself, becomes another's or goes.
	var top, payload map[int]cbor.RawMessage
	if cbor.Unmarshal(parts[i].body, &top) != nil || cbor.Unmarshal(top[8], &payload) != nil {
		t.Fatal("a sound record cannot be read")
	}
	m, from := payload, "payload"
	if rnd.IntN(4) == 0 {
		m, from = top, "record"
	}
	key := pick(rnd, slices.Sorted(maps.Keys(m)))
	name := fmt.Sprintf("%s field %d of record %d", from, key, i)
	var donor map[int]cbor.RawMessage
	other := parts[rnd.IntN(len(parts))].body
	if cbor.Unmarshal(other, &donor) == nil && rnd.IntN(2) == 0 {
		if cbor.Unmarshal(donor[8], &donor) != nil {
			t.Fatal("a sound record cannot be read")
		}
	}
	switch value := donor[key]; {
	case rnd.IntN(4) == 0 || value == nil:
		delete(m, key)
		name += " left out"
	default:
		m[key] = value
		name += fmt.Sprintf(" = %.40x", value)
	}
	th.follow = parts[i].kindOf() != audit.KindSegment
	if from == "payload" {
		top[8] = mapOf(payload)
	}
	parts[i].body = mapOf(top)
	return name, parts, th
}

func pick[T any](rnd *rand.Rand, from []T) T { return from[rnd.IntN(len(from))] }
