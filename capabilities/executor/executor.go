// Package executor is the only way from a model's proposal to an effect: resolve, validate, policy, confirm, execute,
// record, one file each.
//
// Every exit of every stage is an audit record and a typed outcome. A stage can only end a proposal or hand it on; nothing
// skips one, and nothing that the proposal says about itself (where it came from, what it wants to be) changes the way.
//
// # What the compiler holds
//
// A courier is driven with a Grant and nothing else, and a Grant is made in one place, from the evidence of a redeemed
// receipt (where policy asked for a press) and a durable audit.Intent. Neither has a useful zero value.
//
// # Order of durability
//
// Barrier 1 (proposal, decision, approval, intent) is on flash before the grant exists. From then on the call is no longer
// tied to whoever asked: it gets a deadline of its own, so that its outcome is recorded even when the phone, the gateway
// or the courier goes away. Barrier 2 (effect, observation) is on flash before anybody hears the result. What may have
// been sent and has no answer is unknown; nothing is ever sent twice.
package executor

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"maps"
	"sync"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/policy"
	"assent.home.arpa/capabilities/registry"
	"assent.home.arpa/confirm"
)

// Desk is the panel: it shows a request and returns what somebody at the box made of it. *confirm.Desk is one.
type Desk interface {
	Ask(ctx context.Context, r confirm.Request) (confirm.Decision, error)
	Redeem(r confirm.Receipt, b confirm.Binding) (confirm.Evidence, error)
}

// Journal is the audit. *audit.Log is one but for Err, which says why nothing more can be recorded, or nil.
type Journal interface {
	Barrier(ctx context.Context, entries ...audit.Entry) error
	Append(ctx context.Context, entries ...audit.Entry) error
	Intend(ctx context.Context, entries []audit.Entry, intent audit.IntentRecord, inv [16]byte) (audit.Intent, error)
	Effect(ctx context.Context, intent audit.Intent, effect audit.EffectRecord, entries ...audit.Entry) (audit.Seq, error)
	Err() error
}

// What a Courier returns when it is certain that the grant did not leave.
var (
	ErrNotSent = errors.New("executor: the grant was not sent")
	ErrFrozen  = errors.New("executor: the box is frozen, so the grant was not sent") // of a grant that was pressed
)

// Courier spends grants.
type Courier interface {
	// Challenge returns what a grant must name, or false while no courier is connected.
	Challenge() ([32]byte, bool)
	// Execute spends g and returns the courier's answer. An *ipc.Error is the courier's refusal. An error that wraps
	// ErrNotSent or ErrFrozen is certain; after any other, nobody can say what happened.
	Execute(ctx context.Context, g Grant) (*ipc.Result, error)
}

// Config is what an executor works with. All fields but Approved, Patience and Patient are required.
type Config struct {
	Registry  *registry.Registry
	Desk      Desk
	Journal   Journal
	Courier   Courier
	Clock     clock.Clock
	BootID    [16]byte
	GrantKey  ed25519.PrivateKey
	Large     bool        // cards are drawn in large letters
	Proposals int         // in one turn, over all capabilities
	Frozen    func() bool // whether a panic froze what needs a press
	Approved  func()      // told of each approval, for the count on the panel

	Patience map[string]policy.Patience       // by person, as it stood when the last executor ended
	Patient  func(map[string]policy.Patience) // told of each change, one at a time, with all of it; it must keep none of it
}

// Proposal is one candidate, byte for byte as the model wrote it.
type Proposal struct {
	Turn      *Turn // nil where the gateway named no ask that is known
	Name      []byte
	Arguments []byte
	Step      uint16
	Index     uint16
	RunDigest [32]byte
}

// Executor takes proposals to their end. It is safe for concurrent use; the proposals of one turn are taken one at a time.
type Executor struct {
	cfg Config

	mu      sync.Mutex
	pending map[capabilities.InvocationID]*wait
	slots   map[uint32]bool // phones that have a pending decision

	moods    sync.Mutex
	patience map[string]policy.Patience // by person
	left     map[string]time.Duration   // boot; when a person's last card left the panel
}

// wait is a decision that somebody may still take back.
type wait struct {
	slot   uint32
	cancel context.CancelFunc
	by     audit.Actor // zero while nobody has
	denied bool
}

// New returns an executor, or says which part of its configuration is missing.
func New(cfg Config) (*Executor, error) {
	switch {
	case cfg.Registry == nil, cfg.Desk == nil, cfg.Journal == nil, cfg.Courier == nil, cfg.Clock == nil, cfg.Frozen == nil:
		return nil, errors.New("executor: registry, desk, journal, courier, clock and frozen are required")
	case cfg.BootID == [16]byte{}, len(cfg.GrantKey) != ed25519.PrivateKeySize, cfg.Proposals <= 0:
		return nil, errors.New("executor: boot id, grant key and the turn's bound are required")
	}
	if cfg.Approved == nil {
		cfg.Approved = func() {}
	}
	if cfg.Patient == nil {
		cfg.Patient = func(map[string]policy.Patience) {}
	}
	patience := map[string]policy.Patience{}
	maps.Copy(patience, cfg.Patience)
	return &Executor{
		cfg: cfg, pending: map[capabilities.InvocationID]*wait{}, slots: map[uint32]bool{}, patience: patience, left: map[string]time.Duration{},
	}, nil
}

// call is one proposal on its way. Each stage fills in its part.
type call struct {
	Proposal
	inv capabilities.InvocationID

	number int // in the turn; admit

	capability registry.Capability // resolve
	spec       capabilities.Spec

	plan    capabilities.Plan // validate
	args    capabilities.ArgsDigest
	request [32]byte
	drawn   drawing

	verdict policy.Verdict // policy
	taint   []string

	queued    time.Duration // confirm, on the boot clock
	noted     bool          // proposal and policy's verdict are on flash
	asked     bool          // the panel was involved
	decision  confirm.Decision
	withdrawn wait // zero unless somebody took it back

	evidence confirm.Evidence // execute; zero where the receipt was not accepted
}

// ending is how a stage ends a proposal.
type ending struct {
	stage   capabilities.Stage
	status  capabilities.Status
	code    capabilities.Code
	message string // in place of the code's own
	rule    policy.Rule
	field   string
	retryIn time.Duration
}

func rejected(stage capabilities.Stage, code capabilities.Code) *ending {
	return &ending{stage: stage, status: capabilities.Rejected, code: code}
}

// Invoke takes one proposal through all stages and returns its one outcome. pending is called when the proposal waits
// at the box, and once more when somebody there has approved it. Cancelling ctx takes back what is not decided yet.
func (e *Executor) Invoke(ctx context.Context, p Proposal, pending func(ipc.Pending)) ipc.Outcome {
	c := &call{Proposal: p}
	rand.Read(c.inv[:]) // never fails: crypto/rand ends the program instead
	if p.Turn != nil {
		leave, err := p.Turn.enter(ctx)
		if err != nil {
			return e.end(ctx, c, &ending{stage: capabilities.StagePolicy, status: capabilities.Withdrawn})
		}
		defer leave()
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(p.Turn.ctx, cancel)()
	}
	for _, stage := range []func(context.Context, *call) *ending{
		e.admit, e.resolve, e.validate, e.policy,
		func(ctx context.Context, c *call) *ending { return e.confirm(ctx, c, pending) },
	} {
		if end := stage(ctx, c); end != nil {
			return e.end(ctx, c, end)
		}
	}
	return e.execute(ctx, c)
}

// admit turns away what nobody asked for before anything of it is read.
func (e *Executor) admit(_ context.Context, c *call) *ending {
	f := policy.Facts{MaxProposals: e.cfg.Proposals}
	if c.Turn != nil {
		c.number = c.Turn.count()
		c.taint = c.Turn.conversation.Sources()
		f.Live, f.Proposals = c.Turn.Live(e.cfg.Clock.Boot()), c.number
	}
	if v := policy.Admit(f); !v.Allow {
		return &ending{stage: capabilities.StagePolicy, status: capabilities.Rejected, code: v.Code, rule: v.Rule}
	}
	return nil
}

// Withdraw takes a pending proposal back for the phone that owns it, and reports whether there was one. It can only end a
// decision: once the press has counted it does nothing.
func (e *Executor) Withdraw(inv capabilities.InvocationID, slot uint32, deny bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.pending[inv]
	if w == nil || w.slot != slot || slot == 0 {
		return false
	}
	w.by, w.denied = audit.ByPhone, deny
	w.cancel()
	return true
}

// Patience returns how a person's requests stand.
func (e *Executor) Patience(person string) policy.Patience {
	e.moods.Lock()
	defer e.moods.Unlock()
	return e.patience[person]
}

// still reports whether people heard of this person less than a minute ago.
func (e *Executor) still(person string) bool {
	e.moods.Lock()
	defer e.moods.Unlock()
	last, ok := e.left[person]
	return ok && e.cfg.Clock.Boot() < last+policy.Hush
}

// cardLeft notes that a card of this person is no longer on the panel.
func (e *Executor) cardLeft(person string) {
	e.moods.Lock()
	defer e.moods.Unlock()
	e.left[person] = e.cfg.Clock.Boot()
}

func (e *Executor) setPatience(person string, change func(policy.Patience) policy.Patience) {
	e.moods.Lock()
	defer e.moods.Unlock()
	before, after := e.patience[person], change(e.patience[person])
	if after == before {
		return
	}
	e.patience[person] = after
	if after == (policy.Patience{}) {
		delete(e.patience, person)
	}
	e.cfg.Patient(e.patience)
}
