package audit_test

import (
	"crypto/ed25519"
	"slices"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/device"
)

func thiefOf(t *testing.T) thief { return thief{t: t, key: newForger(t).key} }

// A redacted blob shows nothing of itself, so where it stands is all that can be wrong with it.
func TestARedactedBlobWhereNoBlobMayStandIsSeen(t *testing.T) {
	parts := richLog(t)
	gone := part{class: 1, body: []byte("x"), redacted: true}
	epoch := slices.IndexFunc(parts, func(p part) bool { return p.kindOf() == audit.KindEpoch })
	segment := slices.IndexFunc(parts, func(p part) bool { return p.begins })
	for name, c := range map[string]struct {
		at, to int // parts before to are written
		want   audit.Status
	}{
		"before genesis":                         {0, epoch + 2, audit.Altered},
		"between an epoch and its seal":          {epoch + 1, epoch + 2, audit.Altered},
		"in the batch that a segment opens with": {segment + 1, segment + 3, audit.Altered},
		"among other records":                    {epoch + 3, epoch + 6, audit.Incomplete},
	} {
		th := thiefOf(t)
		r := judge(t, segmentFS(th.write(slices.Insert(slices.Clone(parts[:c.to]), c.at, gone))...), audit.VerifyOptions{})
		if r.Status != c.want {
			t.Errorf("%s: %s, %v", name, r.Status, r.Problem)
		}
	}
	// Without a genesis no key is known, and the zero key is one for which anybody can make signatures.
	th := thiefOf(t)
	if r := judge(t, segmentFS(th.write([]part{gone})...), audit.VerifyOptions{}); r.Status != audit.Altered {
		t.Errorf("instead of genesis: %s, %v", r.Status, r.Problem)
	}
}

// Power cuts leave sectors that were not written. They do not leave a frame whose link follows the one before.
func TestWhatIsWrongUnderATrueLinkIsNoTornTail(t *testing.T) {
	parts := richLog(t)
	for name, last := range map[string]part{
		"a record that is none":          {body: []byte{0xa0}},
		"a call that was never proposed": parts[slices.IndexFunc(parts, func(p part) bool { return p.kindOf() == audit.KindEffect })],
		"a second genesis":               parts[0],
	} {
		th := thiefOf(t)
		first := slices.IndexFunc(parts, func(p part) bool { return p.kindOf() == audit.KindSeal }) + 1
		s := th.write(append(slices.Clone(parts[:first]), last))
		if r := judge(t, segmentFS(s[0]), audit.VerifyOptions{}); r.Status != audit.Altered {
			t.Errorf("%s: %s, %v", name, r.Status, r.Problem)
		}
	}
}

func TestALastSealByAnotherKeyIsAnAlteration(t *testing.T) {
	for name, c := range map[string]struct {
		all  bool
		tail []byte
	}{
		"every seal checked":                    {all: true},
		"the last seal checked":                 {},
		"a torn tail after it":                  {tail: []byte{0x83, 0, 0x58}},
		"a torn tail after it, all are checked": {all: true, tail: []byte{0x83, 0, 0x58}},
	} {
		f := newForger(t)
		f.key = audittest.GrantKey()
		f.add([16]byte{}, audit.Freeze{By: audit.ByBox})
		f.seal()
		content := f.segment()
		copy(content[2*audit.Block:], c.tail)
		r := judge(t, segmentFS(content), audit.VerifyOptions{AllSeals: c.all})
		if r.Status != audit.Altered || r.Problem.Seq != f.next-1 {
			t.Errorf("%s: %s, %v", name, r.Status, r.Problem)
		}
	}
}

// The unprotected header is under no signature.
func TestASealWithSomethingAddedToItIsSeen(t *testing.T) {
	for name, change := range map[string]func(*cbor.Tag){
		"nothing":               func(*cbor.Tag) {},
		"an unprotected header": func(tag *cbor.Tag) { tag.Content.([]any)[1] = map[int]any{4: []byte("kid")} },
		"a short signature":     func(tag *cbor.Tag) { tag.Content.([]any)[3] = []byte("short") },
	} {
		f := newForger(t)
		f.add([16]byte{}, audit.Freeze{By: audit.ByBox})
		f.seal()
		last := &f.frames[len(f.frames)-1]
		r, _, err := audit.DecodeBody(last.bytes)
		if err != nil {
			t.Fatal(err)
		}
		var tag cbor.Tag
		if err := cbor.Unmarshal(r.Payload.(*audit.Seal).Sign1, &tag); err != nil {
			t.Fatal(err)
		}
		change(&tag)
		r.Payload = audit.Seal{Sign1: f.encode(tag)}
		before := f.frames[len(f.frames)-2].bytes
		if last.bytes, last.body, err = audit.EncodeFrame(r, audit.Digest(before[len(before)-32:])); err != nil {
			t.Fatal(err)
		}
		f.link = audit.Digest(last.bytes[len(last.bytes)-32:])
		// Another seal follows, so that this one's signature is never looked at.
		f.add([16]byte{}, audit.Freeze{On: true, By: audit.ByBox})
		f.seal()
		if got := judge(t, segmentFS(f.segment()), audit.VerifyOptions{}); (got.Status == audit.Intact) != (name == "nothing") {
			t.Errorf("%s: %s, %v", name, got.Status, got.Problem)
		}
	}
}

func TestAnEmptySegmentIsOneThatWasBegunOrOneThatWasEmptied(t *testing.T) {
	log := livedLog(t)
	zeros := make([]byte, audit.SegmentSize)
	if r := judge(t, segmentFS(log.content, zeros), audit.VerifyOptions{}); r.Status != audit.Intact {
		t.Errorf("at the end: %s, %v", r.Status, r.Problem)
	}
	f := newForger(t)
	f.add([16]byte{}, audit.Freeze{By: audit.ByBox})
	f.seal()
	cut := len(f.frames)
	f.add([16]byte{}, audit.Segment{
		Index: 2, First: f.next, PrevLink: f.link, Epoch: 1, SealKey: audit.Digest(f.key.Public().(ed25519.PublicKey)),
		ReceiptKey: audit.Digest(audittest.ReceiptKey().Public().(ed25519.PublicKey)),
		GrantKey:   audit.Digest(audittest.GrantKey().Public().(ed25519.PublicKey)),
	})
	f.seal()
	r := judge(t, segmentFS(render(f.frames[:cut], 1<<40), zeros, render(f.frames[cut:], 1<<40)), audit.VerifyOptions{})
	if r.Status != audit.Altered || r.Problem.Segment != 1 {
		t.Errorf("in between: %s, %v", r.Status, r.Problem)
	}
}

// One record has one encoding: what is empty is left out, or the same record would have two hashes.
func TestAFieldThatIsEmptyIsLeftOut(t *testing.T) {
	full := audit.Record{Kind: audit.KindBoot, BootID: audit.ID{1}, Salt: audit.ID{1}, Payload: audit.Boot{Build: "x"}}
	_, body, err := audit.EncodeFrame(full, prev())
	if err != nil {
		t.Fatal(err)
	}
	for name, payload := range map[string][]byte{
		"a list":   {0xa2, 4, 0x80, 10, 0x61, 'x'},
		"a digest": append(append([]byte{0xa2, 1, 0x58, 32}, make([]byte, 32)...), 10, 0x61, 'x'),
	} {
		if _, _, err := audit.DecodeBody(audit.RawFrame(prev(), 0, withKey(body, 8, payload))); err == nil {
			t.Errorf("%s is there and empty", name)
		}
	}
	claim := withKey(withKey(body, 0, []byte{byte(audit.KindClaim)}), 8, []byte{0xa3, 1, 4, 2, 1, 4, 0x40})
	if _, _, err := audit.DecodeBody(audit.RawFrame(prev(), 0, claim)); err == nil {
		t.Error("a byte string is there and empty")
	}
}

func TestOnlyEdgesOfButtonsArePresses(t *testing.T) {
	press := device.Event{Mono: time.Second, Edge: device.Press, Seq: 1, Button: device.Deny}
	for name, c := range map[string]struct {
		event device.Event
		want  bool
	}{
		"a press":           {press, true},
		"no such edge":      {device.Event{Mono: 1, Edge: 3, Seq: 1, Button: device.Deny}, false},
		"no button":         {device.Event{Mono: 1, Edge: device.Press, Seq: 1}, false},
		"before the clock":  {device.Event{Mono: -1, Edge: device.Press, Seq: 1, Button: device.Deny}, false},
		"a release, counts": {device.Event{Mono: 1, Edge: device.Release, Seq: 2, Button: device.Approve}, true},
	} {
		for _, p := range []audit.Payload{
			audit.Approval{Outcome: audit.Denied, Presses: []device.Event{press, c.event}},
			audit.Admin{Action: audit.AdminPair, Outcome: audit.Denied, Presses: []device.Event{press, c.event}},
		} {
			_, _, err := audit.EncodeFrame(audit.Record{Kind: p.Kind(), BootID: audit.ID{1}, Salt: audit.ID{1}, Payload: p}, prev())
			if (err == nil) != c.want {
				t.Errorf("%s, %s: %v", p.Kind(), name, err)
			}
		}
	}
}
