package executor_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/veraison/go-cose"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/executor"
	"assent.home.arpa/capabilities/executor/executortest"
	"assent.home.arpa/capabilities/policy"
	"assent.home.arpa/capabilities/registry"
	"assent.home.arpa/confirm"
	"assent.home.arpa/confirm/receipt"
	"assent.home.arpa/confirm/screen"
)

// desk is a panel at which a test decides. Its receipts are real: the audit refuses others.
type desk struct {
	key   ed25519.PrivateKey
	clock *clocktest.Clock
	boot  [16]byte

	mu     sync.Mutex
	decide func(ctx context.Context, r confirm.Request) confirm.Outcome
	asked  []confirm.Request
	queued bool                                         // no card reaches the front
	tokens map[capabilities.InvocationID]receipt.Claims // by the call that they were minted for
	tamper func(*receipt.Claims)
}

func (d *desk) Ask(ctx context.Context, r confirm.Request) (confirm.Decision, error) {
	d.mu.Lock()
	d.asked = append(d.asked, r)
	decide := d.decide
	d.mu.Unlock()
	pages, err := screen.Pages(r.Card)
	if err != nil {
		return confirm.Decision{}, err
	}
	now := d.clock.Mono()
	out := confirm.Decision{
		Outcome: decide(ctx, r), ScreenDigest: screen.Digest(pages), Pages: pages,
		Shown: now, Pressed: now + 1, Completed: now + 2, Expires: d.clock.Boot() + time.Minute,
		Fronted: d.clock.Boot(),
	}
	if d.queued {
		out.Fronted = 0
	}
	if out.Outcome != confirm.Approved {
		return out, nil
	}
	c := receipt.Claims{
		Inv: r.Inv, ArgsDigest: r.ArgsDigest, ScreenDigest: out.ScreenDigest, RequestDigest: r.RequestDigest,
		Capability: r.Capability, Version: r.Version, Revision: r.Revision, SchemaDigest: r.SchemaDigest,
		NonceDigest: sha256.Sum256(r.Inv[:]), BootID: d.boot, Shown: out.Shown, Pressed: out.Pressed,
		Completed: out.Completed, Expires: out.Expires, Slot: r.Slot, Registry: r.Registry,
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tamper != nil {
		d.tamper(&c)
	}
	d.tokens[r.Inv] = c
	return out, nil
}

func (d *desk) Redeem(_ confirm.Receipt, b confirm.Binding) (confirm.Evidence, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, ok := d.tokens[b.Inv]
	if !ok {
		return confirm.Evidence{}, confirm.ErrReceiptUnknown
	}
	delete(d.tokens, b.Inv)
	if (confirm.Binding{
		Inv: c.Inv, ArgsDigest: c.ArgsDigest, RequestDigest: c.RequestDigest, Capability: c.Capability, Version: c.Version,
		Revision: c.Revision, SchemaDigest: c.SchemaDigest, Registry: c.Registry, Slot: c.Slot,
	}) != b {
		return confirm.Evidence{}, confirm.ErrReceiptMismatch
	}
	payload, err := receipt.Encode(c)
	if err != nil {
		return confirm.Evidence{}, err
	}
	signer, err := cose.NewSigner(cose.AlgorithmEdDSA, d.key)
	if err != nil {
		return confirm.Evidence{}, err
	}
	signed, err := cose.Sign1(rand.Reader, signer, cose.Headers{Protected: cose.ProtectedHeader{
		cose.HeaderLabelAlgorithm: cose.AlgorithmEdDSA, cose.HeaderLabelContentType: receipt.ContentType,
	}}, payload, []byte(receipt.AAD))
	return confirm.Evidence{COSE: signed, Digest: sha256.Sum256(signed), Claims: c}, err
}

func (d *desk) requests() []confirm.Request {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]confirm.Request(nil), d.asked...)
}

// answer makes every card end in the same way.
func (d *desk) answer(o confirm.Outcome) {
	d.do(func(context.Context, confirm.Request) confirm.Outcome { return o })
}

func (d *desk) do(f func(context.Context, confirm.Request) confirm.Outcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.decide = f
}

// journal is the real audit, on a disk that fails on demand, with what it would say of itself.
type journal struct {
	*audit.Log
	err  error  // before anything is invoked
	slow func() // happens while the flash takes a promise
}

func (j *journal) Err() error { return j.err }

func (j *journal) Barrier(ctx context.Context, entries ...audit.Entry) error {
	_, err := j.Log.Barrier(ctx, entries...)
	return err
}

func (j *journal) Intend(ctx context.Context, entries []audit.Entry, intent audit.IntentRecord, inv [16]byte) (audit.Intent, error) {
	i, err := j.Log.Intend(ctx, entries, intent, inv)
	if j.slow != nil {
		j.slow()
	}
	return i, err
}

// box is an executor with everything around it.
type box struct {
	*executor.Executor
	t       *testing.T
	disk    *audittest.Disk
	clock   *clocktest.Clock
	desk    *desk
	courier *executortest.Courier
	journal *journal
	local   *executortest.Adapter
	search  *executortest.Adapter
	// registry replaces that of local and search.
	registry *registry.Registry
	frozen   atomic.Bool
	count    atomic.Int32
	turns    byte
}

func newBox(t *testing.T, settings ...func(*executor.Config)) *box {
	t.Helper()
	b := &box{t: t, disk: audittest.NewDisk(), clock: clocktest.New(), local: executortest.Local(), search: executortest.Search()}
	b.clock.SetWall(time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC), clock.Synced)
	boot := [16]byte{1, 2, 3}
	receiptPublic, receiptKey := keys(t)
	grantPublic, grantKey := keys(t)
	log, err := audit.Open(t.Context(), audit.Options{
		Disk: b.disk, Clock: b.clock, BootID: boot, ReceiptKey: receiptPublic, GrantKey: grantPublic, Quota: 16 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	b.journal = &journal{Log: log}
	b.desk = &desk{key: receiptKey, clock: b.clock, boot: boot, tokens: map[capabilities.InvocationID]receipt.Claims{}}
	b.desk.answer(confirm.Approved)
	b.courier = executortest.NewCourier(grantPublic, b.clock, boot)
	reg, err := registry.New(b.local, b.search)
	if err != nil {
		t.Fatal(err)
	}
	cfg := executor.Config{
		Registry: reg, Desk: b.desk, Journal: b.journal, Courier: b.courier, Clock: b.clock, BootID: boot, GrantKey: grantKey,
		Proposals: 6, Frozen: b.frozen.Load, Approved: func() { b.count.Add(1) },
	}
	for _, set := range settings {
		set(&cfg)
	}
	b.Executor, err = executor.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func keys(t *testing.T) (ed25519.PublicKey, ed25519.PrivateKey) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return public, private
}

// turn opens a turn of a person in a conversation.
func (b *box) turn(p executor.Person, c *executor.Conversation) *executor.Turn {
	b.turns++
	return executor.NewTurn(p, executor.Ask{ID: ipc.ID{b.turns}, Conversation: ipc.ID{9}, Counter: uint64(b.turns), Signed: []byte("signed")}, c, b.clock.Boot())
}

func adult() executor.Person {
	return executor.Person{Slot: 1, ID: "p1", Phone: "Kitchen", Role: policy.Adult}
}

func proposal(t *executor.Turn, name, args string) executor.Proposal {
	return executor.Proposal{Turn: t, Name: []byte(name), Arguments: []byte(args), Step: 1, Index: 1}
}

const query = `{"query":"tall towers"}`

func (b *box) invoke(t *executor.Turn, name, args string) ipc.Outcome {
	return b.Invoke(b.t.Context(), proposal(t, name, args), func(ipc.Pending) {})
}

// want checks how a proposal ended.
func (b *box) want(o ipc.Outcome, stage capabilities.Stage, status capabilities.Status, code capabilities.Code) {
	b.t.Helper()
	if o.Stage != stage || o.Status != status || o.Code != code {
		b.t.Fatalf("ended as %v %v %q (%s), want %v %v %q", o.Stage, o.Status, o.Code, o.Message, stage, status, code)
	}
	if o.Status != capabilities.Done && (o.Message == "" || len(o.Body) != 0) {
		b.t.Fatalf("a proposal that was not done has message %q and %d bytes of result", o.Message, len(o.Body))
	}
}

// records closes the log, demands that it is intact and complete, and returns what it holds of calls.
func (b *box) records() []audit.Record {
	b.t.Helper()
	if err := b.journal.Close(); err != nil {
		b.t.Fatal(err)
	}
	var out []audit.Record
	report, err := audit.Verify(b.t.Context(), b.disk.FS(), audit.VerifyOptions{AllSeals: true, Visit: func(e audit.Entered) error {
		if e.Inv != (audit.ID{}) {
			out = append(out, e.Record)
		}
		return nil
	}})
	if err != nil {
		b.t.Fatal(err)
	}
	if report.Status != audit.Intact {
		b.t.Fatalf("the log is %v: %v", report.Status, report.Problem)
	}
	return out
}

// kinds are the records of calls, blobs left out.
func kinds(records []audit.Record) (out []audit.Kind) {
	for _, r := range records {
		if r.Kind != audit.KindBlob {
			out = append(out, r.Kind)
		}
	}
	return out
}

func blobs(records []audit.Record, p audit.Purpose) (out [][]byte) {
	for _, r := range records {
		if b, ok := r.Payload.(*audit.Blob); ok && b.Purpose == p {
			out = append(out, b.Bytes)
		}
	}
	return out
}

func find[P audit.Payload](records []audit.Record) (out []P) {
	for _, r := range records {
		if p, ok := r.Payload.(P); ok {
			out = append(out, p)
		}
	}
	return out
}

func TestRolesHaveTheSameNumbersEverywhere(t *testing.T) {
	for p, i := range map[policy.Role]ipc.Role{policy.Guest: ipc.RoleGuest, policy.Adult: ipc.RoleAdult, policy.Owner: ipc.RoleOwner} {
		if uint8(p) != uint8(i) {
			t.Errorf("role %d is %d on the sockets", p, i)
		}
	}
}
