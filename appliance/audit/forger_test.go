package audit_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
)

// forger writes a log from the format's description alone, without the writer's checks: a box whose keys were stolen.
type forger struct {
	t      *testing.T
	key    ed25519.PrivateKey
	next   audit.Seq
	first  audit.Seq
	link   audit.Digest
	epoch  uint32
	frames []forged
}

type forged struct {
	seq   audit.Seq
	bytes []byte
	body  []byte
	pad   bool // a seal: zeros to the block follow
}

func newForger(t *testing.T) *forger {
	t.Helper()
	f := &forger{t: t, key: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))}
	root := ed25519.NewKeyFromSeed(append(make([]byte, ed25519.SeedSize-1), 1))

	statement := f.encode(audit.GenesisClaims{Version: 1, Root: public(root), SealKey: public(f.key)})
	f.add([16]byte{}, audit.Genesis{
		Version: 1, Root: public(root), Statement: audittest.Sign1(root, "application/assent-genesis+cbor", "assent/genesis/v1", statement),
	})
	f.add([16]byte{}, audit.Boot{Build: "forged"})
	f.add([16]byte{}, audit.Epoch{
		N: 1, SealKey: public(f.key), ReceiptKey: public(audittest.ReceiptKey()), GrantKey: public(audittest.GrantKey()), Reason: audit.EpochStart,
	})
	f.seal()
	f.epoch = 1
	return f
}

func (f *forger) record(inv [16]byte, p audit.Payload) audit.Record {
	return audit.Record{
		Kind: p.Kind(), Seq: f.next, BootID: audittest.BootID(), Boot: 2 * time.Hour, Salt: audit.ID{1}, Inv: inv, Payload: p,
	}
}

func (f *forger) add(inv [16]byte, p audit.Payload) (body []byte) {
	f.t.Helper()
	frame, body, err := audit.EncodeFrame(f.record(inv, p), f.link)
	if err != nil {
		f.t.Fatal(err)
	}
	f.frames = append(f.frames, forged{seq: f.next, bytes: frame, body: body})
	f.link = audit.Digest(frame[len(frame)-32:])
	f.next++
	return body
}

func (f *forger) seal() {
	f.t.Helper()
	_, header, err := audit.EncodeFrame(f.record([16]byte{}, audit.Seal{}), f.link)
	if err != nil {
		f.t.Fatal(err)
	}
	claims := f.encode(audit.SealClaims{Size: f.next, Link: f.link, Epoch: f.epoch, First: f.first, Header: sha256.Sum256(header)})
	f.add([16]byte{}, audit.Seal{Sign1: audittest.Sign1(f.key, "application/assent-seal+cbor", "assent/seal/v1", claims)})
	f.frames[len(f.frames)-1].pad = true
	f.first = f.next
}

func (f *forger) encode(v any) []byte {
	f.t.Helper()
	mode, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		f.t.Fatal(err)
	}
	b, err := mode.Marshal(v)
	if err != nil {
		f.t.Fatal(err)
	}
	return b
}

func (f *forger) segment() []byte { return render(f.frames, 1<<40) }

// redacted is the segment with one record's body replaced by its hash.
func (f *forger) redacted(seq audit.Seq) []byte { return render(f.frames, seq) }

func render(frames []forged, seq audit.Seq) []byte {
	var b []byte
	for _, frame := range frames {
		if frame.seq == seq {
			sum := sha256.Sum256(frame.body)
			b = append(append(b, 0x83, 1, 0x81, 0x58, 32), sum[:]...)
			b = append(b, frame.bytes[len(frame.bytes)-34:]...)
		} else {
			b = append(b, frame.bytes...)
		}
		if frame.pad {
			b = append(b, make([]byte, (audit.Block-len(b)%audit.Block)%audit.Block)...)
		}
	}
	return append(b, make([]byte, audit.SegmentSize-len(b))...)
}

func public(k ed25519.PrivateKey) audit.Digest { return audit.Digest(k.Public().(ed25519.PublicKey)) }
