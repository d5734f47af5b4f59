package audit_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"slices"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/capabilities"
)

// part is one record of a log that a thief has in hand: its body, or the digest of one.
type part struct {
	class    byte
	body     []byte
	redacted bool
	begins   bool // a segment
}

// thief writes parts as a log again with true numbers, links and seals: somebody who stole every key.
type thief struct {
	t     *testing.T
	key   ed25519.PrivateKey
	next  uint64
	first uint64
	link  audit.Digest
	epoch uint32
	// lie changes a seal's claims before they are signed.
	lie func(*audit.SealClaims)
	// stale leaves sequence numbers as they are.
	stale bool
	// follow makes segment records name the link before them, whatever it has become.
	follow bool
	// anchors is the file of anchors of what was written.
	anchors []byte
}

// kindOf reads a body's kind without judging it.
func (p part) kindOf() audit.Kind {
	if len(p.body) > 2 && p.body[1] == 0 {
		return audit.Kind(p.body[2])
	}
	return 0
}

// write returns the segments.
func (th *thief) write(parts []part) [][]byte {
	var segments [][]byte
	var announced []byte // the anchor of an epoch whose seal is due
	for _, p := range parts {
		if p.begins || len(segments) == 0 {
			segments = append(segments, nil)
		}
		out := &segments[len(segments)-1]
		body := p.body
		if !p.redacted && !th.stale {
			body = withKey(body, 1, encoded(th.t, th.next))
		}
		kind := p.kindOf()
		switch {
		case kind == audit.KindSeal:
			body = th.seal(body)
		case kind == audit.KindSegment && th.follow:
			body = withPayload(th.t, body, 3, encoded(th.t, th.link))
		}
		before := th.link
		frame := audit.RawFrame(th.link, p.class, body)
		th.link = audit.Digest(frame[len(frame)-32:])
		if p.redacted {
			sum := sha256.Sum256(body)
			frame = append(append([]byte{0x83, p.class, 0x81, 0x58, 32}, sum[:]...), frame[len(frame)-34:]...)
		}
		*out = append(*out, frame...)
		th.next++
		if kind == audit.KindSeal {
			*out = append(*out, make([]byte, (audit.Block-len(*out)%audit.Block)%audit.Block)...)
			th.first = th.next
			if announced != nil {
				th.epoch++
				th.anchors = append(append(th.anchors, announced...), encoded(th.t, body)...)
			}
		}
		announced = nil
		switch kind {
		case audit.KindGenesis:
			th.anchors = append(append(th.anchors, 0x82, 0), encoded(th.t, body)...)
		case audit.KindEpoch:
			announced = append([]byte{0x84, 1}, encoded(th.t, before[:])...)
			announced = append(announced, encoded(th.t, body)...)
		}
	}
	for i := range segments {
		if n := audit.SegmentSize - len(segments[i]); n > 0 {
			segments[i] = append(segments[i], make([]byte, n)...)
		}
	}
	return segments
}

func (th *thief) seal(body []byte) []byte {
	bare := withKey(body, 8, []byte{0xa1, 1, 0x40})
	claims := audit.SealClaims{Size: audit.Seq(th.next), Link: th.link, Epoch: th.epoch, First: audit.Seq(th.first), Header: sha256.Sum256(bare)}
	if th.lie != nil {
		th.lie(&claims)
	}
	signed := audittest.Sign1(th.key, "application/assent-seal+cbor", "assent/seal/v1", encoded(th.t, claims))
	return withKey(body, 8, encoded(th.t, audit.Seal{Sign1: signed}))
}

// prunedLogParts is richLog cut where its first segment was pruned: what is gone, and what is left.
func prunedLogParts(t *testing.T) (gone, left []part) {
	t.Helper()
	parts := richLog(t)
	cut := slices.IndexFunc(parts, func(p part) bool { return p.begins })
	gone, left = parts[:cut], slices.Clone(parts[cut:])
	// Its record says so, and nothing is left to prune.
	left[0].body = withPayload(t, left[0].body, 11, []byte{1})
	for i, p := range left {
		if p.kindOf() == audit.KindPrune {
			left[i].body = withKey(withKey(p.body, 0, []byte{byte(audit.KindFreeze)}), 8, encoded(t, audit.Freeze{By: audit.ByBox}))
		}
	}
	return gone, left
}

// withPayload sets a field of a record's payload, or changes its last bit.
func withPayload(t *testing.T, body []byte, key int, value []byte) []byte {
	t.Helper()
	var top, payload map[int]cbor.RawMessage
	if err := cbor.Unmarshal(body, &top); err != nil {
		t.Fatal(err)
	}
	if err := cbor.Unmarshal(top[8], &payload); err != nil {
		t.Fatal(err)
	}
	if value == nil {
		if value = bytes.Clone(payload[key]); value == nil {
			value = []byte{1}
		}
		value[len(value)-1] ^= 1
	}
	payload[key] = value
	top[8] = mapOf(payload)
	return mapOf(top)
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	mode, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		t.Fatal(err)
	}
	b, err := mode.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// withKey sets a key of a map, and returns what is no map as it is.
func withKey(body []byte, key int, value []byte) []byte {
	var top map[int]cbor.RawMessage
	if cbor.Unmarshal(body, &top) != nil || len(top) > 23 {
		return body
	}
	top[key] = value
	return mapOf(top)
}

// richLog has records of many kinds in two segments, as parts, all of them as a sound box might write them.
func richLog(t *testing.T) []part {
	t.Helper()
	f := newForger(t)
	blob, digest := audit.BlobOf(audit.BlobRaw, [16]byte{}, []byte("what somebody wants to forget"))
	forgotten := f.next
	body := f.add(blob.Inv, blob.Payload)
	f.add([16]byte{}, audit.Freeze{On: true, By: audit.ByBox, Reason: "panic"})
	f.add([16]byte{}, audit.Freeze{By: audit.ByBox})
	f.seal()
	clk := clocktest.New()
	pressed, automatic, refused, left := audittest.Required(clk, 1), audittest.Automatic(2), audittest.Required(clk, 3), audittest.Automatic(4)
	intent := func(c audittest.Call, proposal, decision, approval audit.Seq) audit.IntentRecord {
		i := c.Intent
		i.Proposal, i.Decision, i.Approval = proposal, decision, approval
		if approval != 0 {
			i.ReceiptDigest = sha256.Sum256(c.Approval.Receipt)
		}
		return i
	}
	at := f.next
	f.add(pressed.Inv, pressed.Proposal)
	f.add(pressed.Inv, pressed.Decision)
	f.add(pressed.Inv, pressed.Approval)
	f.add(pressed.Inv, intent(pressed, at, at+1, at+2))
	f.seal()
	f.add(pressed.Inv, audit.EffectRecord{Intent: at + 3, Status: capabilities.Done, ResultDigest: digest})
	f.add(pressed.Inv, audit.Observe{Intent: at + 3, Matches: audit.Yes})
	f.add(refused.Inv, refused.Proposal)
	f.add(refused.Inv, refused.Decision)
	f.add(refused.Inv, audit.Withdraw{By: audit.ByPhone, Slot: 2, Deny: true})
	denied := refused.Approval
	denied.Outcome, denied.Receipt, denied.By = audit.Denied, nil, audit.ByBox
	f.add(refused.Inv, denied)
	f.add(refused.Inv, audit.Decision{Stage: capabilities.StageConfirm, Verdict: audit.Refuse, Status: capabilities.Denied})
	f.seal()
	at = f.next
	f.add(left.Inv, left.Proposal)
	f.add(left.Inv, left.Decision)
	f.add(left.Inv, intent(left, at, at+1, 0))
	open := audit.OpenIntent{Intent: f.next - 1, Inv: left.Inv}
	f.add([16]byte{}, audit.Export{Last: at - 1, LastLink: f.link, OK: true})
	exported := f.next - 1
	f.add([16]byte{}, audit.Redact{Seq: forgotten, Body: sha256.Sum256(body), By: audit.ByBox})
	f.seal()
	public := func(k ed25519.PrivateKey) audit.Digest { return audit.Digest(k.Public().(ed25519.PublicKey)) }
	epoch := audit.Epoch{N: 2, SealKey: public(f.key), ReceiptKey: public(audittest.ReceiptKey()), GrantKey: public(audittest.GrantKey()), Reason: audit.EpochSegment}
	begins := len(f.frames)
	f.add([16]byte{}, audit.Segment{
		Index: 1, First: f.next, PrevLink: f.link, Epoch: 1, SealKey: epoch.SealKey, ReceiptKey: epoch.ReceiptKey, GrantKey: epoch.GrantKey,
		Open: []audit.OpenIntent{open}, Exported: at - 1, Export: exported,
	})
	f.add([16]byte{}, epoch)
	f.seal()
	f.add([16]byte{}, audit.Prune{Last: at - 1, LastLink: audit.Digest{1}, Export: exported, By: audit.ByGuard})
	f.add([16]byte{}, audit.Admin{Action: audit.AdminPrune, Outcome: audit.Approved, By: audit.ByBox})
	f.add([16]byte{}, audit.Prune{FirstSegment: 1, LastSegment: 1, First: at, Last: at, Admin: f.next - 1, By: audit.ByBox})
	f.add(automatic.Inv, automatic.Proposal)
	f.add(automatic.Inv, automatic.Decision)
	f.add(automatic.Inv, intent(automatic, f.next-2, f.next-1, 0))
	f.seal()
	f.add([16]byte{}, audit.Boot{Build: "forged", Unresolved: []audit.ID{left.Inv, automatic.Inv}})
	f.add(left.Inv, audit.EffectRecord{Intent: open.Intent, Status: capabilities.Unknown, Cause: audit.CauseRecovery})
	f.add(automatic.Inv, audit.EffectRecord{Intent: f.next - 4, Status: capabilities.Unknown, Cause: audit.CauseRecovery})
	epoch.N, epoch.Reason = 3, audit.EpochStart
	f.add([16]byte{}, epoch)
	f.seal()
	var parts []part
	for i, frame := range f.frames {
		_, class, _, _, _ := audit.ParseFrame(frame.bytes)
		parts = append(parts, part{class: class, body: frame.body, redacted: frame.seq == forgotten, begins: i == begins})
	}
	return parts
}
