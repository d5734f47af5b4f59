// Package audittest opens logs for tests, makes the entries of whole calls with real receipts, and has a disk that loses
// power and fails on demand.
package audittest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"os"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/confirm/receipt"
	"assent.home.arpa/device"
)

// BootID is the boot that New and Options use.
func BootID() [16]byte { return [16]byte{0: 0xb0, 15: 1} }

// ReceiptKey is the panel's signing key in tests.
func ReceiptKey() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{0x5e}, ed25519.SeedSize))
}

// GrantKey is the executor's signing key in tests.
func GrantKey() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{0x67}, ed25519.SeedSize))
}

// Options returns options for a log on disk with the keys above. A nil disk leaves Dir to be set.
func Options(clk clock.Clock, disk audit.Disk) audit.Options {
	return audit.Options{
		Disk: disk, Clock: clk, BootID: BootID(),
		ReceiptKey: ReceiptKey().Public().(ed25519.PublicKey), GrantKey: GrantKey().Public().(ed25519.PublicKey),
		Boot: audit.Boot{Build: "test", Program: audit.ProgramSimulator},
	}
}

// New opens a log in a directory of its own, and closes and verifies it when the test ends.
func New(t testing.TB, clk clock.Clock) (*audit.Log, string) {
	t.Helper()
	dir := t.TempDir()
	o := Options(clk, nil)
	o.Dir = dir
	l, err := audit.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		Verify(t, dir)
	})
	return l, dir
}

// Verify demands that the log in dir is intact.
func Verify(t testing.TB, dir string) audit.Report {
	t.Helper()
	r, err := audit.Verify(context.Background(), os.DirFS(dir), audit.VerifyOptions{AllSeals: true})
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != audit.Intact {
		t.Errorf("the log is %s: %s", r.Status, r.Problem)
	}
	return r
}

// Records reads all records of the log in dir, sealed ones or not.
func Records(t testing.TB, dir string) []audit.Entered {
	t.Helper()
	var all []audit.Entered
	_, err := audit.Verify(context.Background(), os.DirFS(dir), audit.VerifyOptions{Visit: func(e audit.Entered) error {
		all = append(all, e)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Call is everything that is recorded of one call before its effect, ready for Log.Intend.
type Call struct {
	Inv      [16]byte
	Claims   receipt.Claims // of the press; zero for an automatic call
	Proposal audit.Proposal
	Decision audit.Decision
	Approval audit.Approval // zero for an automatic call
	Intent   audit.IntentRecord
	Blobs    []audit.Entry
}

// Automatic is a call of system.health, which needs no press. n makes its invocation.
func Automatic(n byte) Call {
	c := Call{Inv: [16]byte{0: 0xca, 15: n}}
	args, argsDigest := audit.BlobOf(audit.BlobArguments, c.Inv, []byte(`{}`))
	c.Blobs = []audit.Entry{args}
	c.Proposal = audit.Proposal{
		Capability: "system.health", Version: 1, Revision: "health/1", SchemaDigest: audit.Digest{1},
		ArgsDigest: capabilities.ArgsDigest(argsDigest), Name: []byte("system_health__v1"), RawDigest: argsDigest,
		Slot: 2, Person: "p1", Ask: audit.ID{3}, AskDigest: audit.Digest{4}, AskCounter: 5, Conversation: audit.ID{6}, RunDigest: audit.Digest{7},
		Step: 1, Index: 1, Log: capabilities.LogView, Registry: audit.Digest{8},
	}
	c.Decision = audit.Decision{
		Stage: capabilities.StagePolicy, Verdict: audit.Allow, Rule: "automatic", PolicyDigest: audit.Digest{9},
		Effect: capabilities.Read, Network: capabilities.NetworkNone, Privacy: capabilities.PrivacyBox, Role: 2,
	}
	c.Intent = audit.IntentRecord{ArgsDigest: c.Proposal.ArgsDigest, Class: capabilities.ClassNone, Idempotent: true}
	return c
}

// Required is a call of web.search that was approved at the panel just now, by clk. The press is signed with ReceiptKey.
func Required(clk *clocktest.Clock, n byte) Call {
	c := Automatic(n)
	args, argsDigest := audit.BlobOf(audit.BlobArguments, c.Inv, []byte(`{"query":"tide times"}`))
	get := capabilities.Request{
		Scheme: "https", Host: "wiki.example", Port: 443, Address: capabilities.AddressPublic,
		Bytes: []byte("GET /w/api.php?srsearch=tide%20times HTTP/1.1\r\n\r\n"),
	}
	request, requestDigest := audit.BlobOf(audit.BlobRequest, c.Inv, get.Preimage())
	var frame device.Frame
	frame.Set(3, 4, true)
	pages, pagesDigest := audit.BlobOf(audit.BlobPages, c.Inv, frame[:])
	c.Blobs = []audit.Entry{args, request, pages}
	p := &c.Proposal
	p.Capability, p.Revision, p.Name = "web.search", "mediawiki/1", []byte("web_search__v1")
	p.ArgsDigest, p.RawDigest = capabilities.ArgsDigest(argsDigest), argsDigest
	c.Decision.Verdict, c.Decision.Rule, c.Decision.Network = audit.Confirm, "leaves the box", capabilities.NetworkInternet
	shown := clk.Mono()
	clk.Advance(2 * time.Second)
	pressed := clk.Mono()
	clk.Advance(1500 * time.Millisecond)
	c.Claims = receipt.Claims{
		Inv: c.Inv, ArgsDigest: p.ArgsDigest, ScreenDigest: [32]byte{0x5c}, RequestDigest: requestDigest, Capability: p.Capability,
		Version: p.Version, Revision: p.Revision, SchemaDigest: p.SchemaDigest, NonceDigest: [32]byte{0xa0, n}, BootID: BootID(),
		Shown: shown, Pressed: pressed, Completed: clk.Mono(), Expires: clk.Boot() + time.Minute, Slot: p.Slot, Registry: "r1",
	}
	c.Approval = audit.Approval{
		Outcome: audit.Approved, Receipt: Sign(ReceiptKey(), c.Claims), ScreenDigest: c.Claims.ScreenDigest, ArgsDigest: p.ArgsDigest,
		RequestDigest: requestDigest, Pages: []audit.Digest{pagesDigest}, PageCount: 1, Shown: shown, Pressed: pressed,
		Completed: c.Claims.Completed, Expires: c.Claims.Expires, Mode: audit.ModeHold, By: audit.ByBox,
		Presses: []device.Event{{Mono: pressed, Edge: device.Press, Seq: 1, Button: device.Approve}},
		Steps: []audit.PanelStep{
			{At: shown - time.Second, State: audit.PanelReading, Cause: 3},
			{At: shown, State: audit.PanelReading, Cause: audit.PanelDrawn, Page: 1},
			{At: pressed, State: 7, Cause: 9},
			{At: clk.Mono(), State: 8, Cause: 18},
		},
	}
	c.Intent = audit.IntentRecord{ArgsDigest: p.ArgsDigest, RequestDigest: requestDigest, Class: capabilities.ClassNet, EffectID: audit.ID{0xef, n}}
	return c
}

// Entries are the entries before the intent, in order.
func (c Call) Entries() []audit.Entry {
	entries := append([]audit.Entry{}, c.Blobs...)
	entries = append(entries, audit.Entry{Inv: c.Inv, Payload: c.Proposal}, audit.Entry{Inv: c.Inv, Payload: c.Decision})
	if c.Approval.Outcome != 0 {
		entries = append(entries, audit.Entry{Inv: c.Inv, Payload: c.Approval})
	}
	return entries
}

// Sign makes a receipt by hand, from RFC 9052 section 4.4 rather than with the library that the product uses.
func Sign(key ed25519.PrivateKey, c receipt.Claims) []byte {
	payload, err := receipt.Encode(c)
	if err != nil {
		panic("audittest: " + err.Error())
	}
	return Sign1(key, receipt.ContentType, receipt.AAD, payload)
}

// Sign1 makes any tagged COSE_Sign1 with EdDSA by hand.
func Sign1(key ed25519.PrivateKey, contentType, aad string, payload []byte) []byte {
	mode, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		panic("audittest: " + err.Error())
	}
	encode := func(v any) []byte {
		b, err := mode.Marshal(v)
		if err != nil {
			panic("audittest: " + err.Error())
		}
		return b
	}
	protected := encode(map[int]any{1: -8, 3: contentType})
	signature := ed25519.Sign(key, encode([]any{"Signature1", protected, []byte(aad), payload}))
	return encode(cbor.Tag{Number: 18, Content: []any{protected, map[int]any{}, payload, signature}})
}

// Sum is a digest of s, for records that refer to something that the test does not keep.
func Sum(s string) audit.Digest { return sha256.Sum256([]byte(s)) }

// KeptSeal is the seal of a record, as a phone keeps it. What else it says is made up, and differs by variant.
func KeptSeal(record audit.Seq, variant byte) []byte {
	mode, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		panic("audittest: " + err.Error())
	}
	claims, err := mode.Marshal(audit.SealClaims{Size: record, Link: audit.Digest{variant}, Epoch: 1, First: record - 1})
	if err != nil {
		panic("audittest: " + err.Error())
	}
	return Sign1(ReceiptKey(), "application/assent-seal+cbor", "assent/seal/v1", claims)
}
