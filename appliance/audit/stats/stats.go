// Package stats counts, from an audit log alone, what became of what the model proposed, and how well it chose.
//
// A Counter reads records in order, as audit.Verify shows them, in memory that does not grow with the log. Like every
// reader it judges nothing: the counts are worth what the verdict on the log says.
//
// # What is told apart
//
// For each capability, calls are counted as they pass:
//
//	offered    turns in whose catalog it was
//	proposed   calls that the model asked for and the registry knew
//	denied     somebody said no, at the box or on the phone that asked
//	approved   somebody at the box gave the press
//	invoked    the execution was promised and sealed, and so may have begun
//	accepted   the other side said that it took the call, or the call was done
//	observed   a look found the world as it was to be, or found it not so
//	final      nothing more is to come: refused, done, failed, or unknown and seen by somebody since
//
// What a model asked for that does not exist is counted under the empty name.
//
// # How well the model chose
//
// See Corpus: questions are recognised by their digests, so that no question has to be in the log.
package stats

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/capabilities"
)

// Bounds of what is remembered. A log that verifies has no more calls open at one time, and no box so many capabilities.
const (
	maxCalls        = 4096
	maxUnknown      = 1024 // calls whose outcome is unknown, and nobody has seen it
	maxCapabilities = 1024
	longestWait     = 10 * time.Minute // of a press; a card does not live so long
)

// Report is what was counted.
type Report struct {
	Capabilities []Capability      `json:"capabilities"`
	Turns        uint64            `json:"turns"`     // questions that ended
	Proposals    uint64            `json:"proposals"` // calls that reached the registry, existing or not
	Outcomes     map[string]uint64 `json:"outcomes"`  // of calls, by how they ended
	Refusals     map[string]uint64 `json:"refusals"`  // of them, those that a stage ended, by stage
	// Claims counts what the gateway says and the guard cannot know, by class: parse failure, budget, provider and others.
	Claims     map[string]uint64 `json:"claims"`
	Suppressed uint64            `json:"suppressed"` // records that a rate limit kept out of the log, and of these counts
	Presses    Presses           `json:"presses"`
	Structured Share             `json:"structured_output"` // model calls that parsed and validated
	Corpus     *CorpusReport     `json:"corpus,omitempty"`
}

// Capability is the counts of one capability; see the package.
type Capability struct {
	Name     capabilities.Name    `json:"name"`
	Version  capabilities.Version `json:"version"`
	Offered  uint64               `json:"offered"`
	Proposed uint64               `json:"proposed"`
	Denied   uint64               `json:"denied"`
	Approved uint64               `json:"approved"`
	Invoked  uint64               `json:"invoked"`
	Accepted uint64               `json:"accepted"`
	Observed uint64               `json:"observed"`
	Final    uint64               `json:"final"`
	Outcomes map[string]uint64    `json:"outcomes"`
}

// Presses is what happened at the panel.
type Presses struct {
	Outcomes map[string]uint64 `json:"outcomes"` // of cards, by how they ended
	// Median is from when the last page was drawn to when the finger came down, over all approvals, to ten milliseconds.
	Median time.Duration `json:"median_ns"`
}

// Share is a part of a whole.
type Share struct {
	Good uint64 `json:"good"`
	Of   uint64 `json:"of"`
}

// Percent is the share in per cent, and whether there is a whole.
func (s Share) Percent() (float64, bool) {
	if s.Of == 0 {
		return 0, false
	}
	return 100 * float64(s.Good) / float64(s.Of), true
}

// Counter counts the records of a log. Its Add is a VerifyOptions.Visit.
type Counter struct {
	report  Report
	byWire  map[string]*Capability
	calls   map[audit.ID]*call
	settled []audit.ID               // in this batch: all that may follow is what was observed
	unknown []audit.ID               // oldest first
	presses map[time.Duration]uint64 // waiting times, rounded
	corpus  *judge
}

// call is one invocation between its proposal and its end.
type call struct {
	capability *Capability
	model      bool // a model's, under a question
	question   bool // of the corpus
	promised   bool
	observed   bool
}

// New returns a Counter. With a corpus, it judges the answers to the corpus' questions too.
func New(corpus *Corpus) *Counter {
	c := &Counter{
		report:  Report{Outcomes: map[string]uint64{}, Refusals: map[string]uint64{}, Claims: map[string]uint64{}, Presses: Presses{Outcomes: map[string]uint64{}}},
		byWire:  map[string]*Capability{},
		calls:   map[audit.ID]*call{},
		presses: map[time.Duration]uint64{},
	}
	if corpus != nil {
		c.corpus = newJudge(corpus)
	}
	return c
}

// Add takes the next record.
func (c *Counter) Add(e audit.Entered) error {
	switch p := e.Payload.(type) {
	case *audit.Proposal:
		c.propose(e.Inv, p)
	case *audit.Decision:
		c.decide(e.Inv, p)
	case *audit.Approval:
		c.approve(e.Inv, p)
	case *audit.IntentRecord:
		if k := c.calls[e.Inv]; k != nil {
			k.promised = true
			k.capability.Invoked++
		}
	case *audit.EffectRecord:
		c.effect(e.Inv, p)
	case *audit.Observe:
		c.observe(e.Inv, p)
	case *audit.Claim:
		c.claim(p)
	case *audit.Suppressed:
		c.report.Suppressed += p.Count
	case *audit.Seal:
		for _, inv := range c.settled {
			delete(c.calls, inv)
		}
		c.settled = nil
	case *audit.Boot:
		// What was undecided died with the run before.
		maps.DeleteFunc(c.calls, func(_ audit.ID, k *call) bool { return !k.promised })
	}
	return nil
}

// Report returns what was counted so far.
func (c *Counter) Report() Report {
	r := c.report
	r.Presses.Median = median(c.presses)
	r.Capabilities = []Capability{}
	for _, wire := range slices.Sorted(maps.Keys(c.byWire)) {
		r.Capabilities = append(r.Capabilities, *c.byWire[wire])
	}
	if c.corpus != nil {
		r.Corpus = c.corpus.report()
	}
	return r
}

func (c *Counter) capability(name capabilities.Name, version capabilities.Version) *Capability {
	wire := ""
	if name != "" {
		wire = capabilities.WireName(name, version)
	}
	found := c.byWire[wire]
	if found == nil && len(c.byWire) >= maxCapabilities {
		return &Capability{Outcomes: map[string]uint64{}}
	}
	if found == nil {
		found = &Capability{Name: name, Version: version, Outcomes: map[string]uint64{}}
		c.byWire[wire] = found
	}
	return found
}

func (c *Counter) propose(inv audit.ID, p *audit.Proposal) {
	c.report.Proposals++
	k := &call{capability: c.capability(p.Capability, p.Version), model: p.Ask != (audit.ID{})}
	k.capability.Proposed++
	if k.model {
		c.report.Structured.Of++
		c.report.Structured.Good++ // until a stage says otherwise
		if c.corpus != nil {
			k.question = c.corpus.proposed(p)
		}
	}
	if len(c.calls) < maxCalls {
		c.calls[inv] = k
	}
}

func (c *Counter) decide(inv audit.ID, d *audit.Decision) {
	k := c.calls[inv]
	if k == nil || d.Verdict != audit.Refuse {
		return
	}
	if d.Stage == capabilities.StageResolve || d.Stage == capabilities.StageValidate {
		if k.model {
			c.report.Structured.Good--
		}
		if k.question {
			c.corpus.structured.Good--
		}
	}
	if d.Status == capabilities.Denied {
		k.capability.Denied++
	}
	c.report.Refusals[d.Stage.String()]++
	c.end(inv, k, d.Status)
}

func (c *Counter) approve(inv audit.ID, a *audit.Approval) {
	c.report.Presses.Outcomes[a.Outcome.String()]++
	if a.Outcome != audit.Approved {
		return
	}
	c.presses[min(a.Pressed-a.Shown, longestWait).Round(10*time.Millisecond)]++
	if k := c.calls[inv]; k != nil {
		k.capability.Approved++
	}
}

func (c *Counter) effect(inv audit.ID, e *audit.EffectRecord) {
	k := c.calls[inv]
	if k == nil {
		return
	}
	if e.Accepted == audit.Yes || e.Accepted == audit.NotKnown && e.Status == capabilities.Done {
		k.capability.Accepted++
	}
	k.capability.Outcomes[e.Status.String()]++
	c.report.Outcomes[e.Status.String()]++
	if e.Status != capabilities.Unknown {
		k.capability.Final++
		c.settled = append(c.settled, inv)
		return
	}
	if c.unknown = append(c.unknown, inv); len(c.unknown) > maxUnknown {
		delete(c.calls, c.unknown[0])
		c.unknown = c.unknown[1:]
	}
}

func (c *Counter) observe(inv audit.ID, o *audit.Observe) {
	k := c.calls[inv]
	if k == nil {
		return
	}
	if o.Matches != audit.NotKnown && !k.observed {
		k.observed = true
		k.capability.Observed++
	}
	if !o.Final {
		return
	}
	// Whatever else is final was counted with its effect.
	if o.Status == capabilities.Unknown || o.Status == 0 {
		k.capability.Final++
	}
	delete(c.calls, inv)
}

func (c *Counter) end(inv audit.ID, k *call, s capabilities.Status) {
	k.capability.Outcomes[s.String()]++
	k.capability.Final++
	c.report.Outcomes[s.String()]++
	delete(c.calls, inv)
}

func (c *Counter) claim(p *audit.Claim) {
	if p.Class != audit.ClaimTurn {
		c.report.Claims[p.Class.String()]++
	}
	switch p.Class {
	case audit.ClaimTurn:
		c.report.Turns++
		for _, wire := range p.Offered {
			if name, version, ok := capabilities.ParseWireName(wire); ok {
				c.capability(name, version).Offered++
			}
		}
	case audit.ClaimParseFailure:
		c.report.Structured.Of++
	}
	if c.corpus != nil {
		c.corpus.claimed(p)
	}
}

// median is the middle of the waiting times, and between the middle two where their number is even.
func median(counts map[time.Duration]uint64) time.Duration {
	total := uint64(0)
	for _, n := range counts {
		total += n
	}
	lower, seen := time.Duration(-1), uint64(0)
	for _, d := range slices.SortedFunc(maps.Keys(counts), cmp.Compare) {
		seen += counts[d]
		if lower < 0 && 2*seen >= total {
			lower = d
		}
		if 2*seen > total {
			return lower + (d-lower)/2
		}
	}
	return 0
}
