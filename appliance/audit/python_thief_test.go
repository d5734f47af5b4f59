package audit_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"assent.home.arpa/appliance/audit"
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
			write(fmt.Sprintf("record %d with %s", i, name), thief{}, log, audit.VerifyOptions{})
		}
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
	if from == "payload" {
		top[8] = mapOf(payload)
	}
	parts[i].body = mapOf(top)
	return name, parts, th
}

func pick[T any](rnd *rand.Rand, from []T) T { return from[rnd.IntN(len(from))] }
