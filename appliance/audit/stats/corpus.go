package stats

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/capabilities"
)

// Bounds of a corpus.
const (
	maxCorpus = 8 << 20 // bytes of its file
	maxCases  = 10000
	maxAsks   = 4096 // asks of its questions that are under way at one time; those beyond are not judged
)

// nothing is what a case expects where the model should propose nothing.
const nothing = "none"

// Corpus is a versioned list of questions, each with the capability that the model should choose first.
type Corpus struct {
	version string
	digest  [32]byte
	cases   []question
	byText  map[[32]byte]int // digest of a question's UTF-8 bytes, as phones sign it
}

type question struct {
	Question string `json:"question"`
	Expect   string `json:"expect"` // wire name, or "none"
}

// ReadCorpus reads a JSON object with the members version (text) and cases (a list of objects with question and expect,
// which is a capability's wire name, or "none").
func ReadCorpus(r io.Reader) (*Corpus, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxCorpus+1))
	if err != nil {
		return nil, fmt.Errorf("corpus: %w", err)
	}
	if len(b) > maxCorpus {
		return nil, fmt.Errorf("corpus: the file is over %d MiB", maxCorpus>>20)
	}
	var file struct {
		Version string     `json:"version"`
		Cases   []question `json:"cases"`
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&file); err != nil {
		return nil, fmt.Errorf("corpus: it is no object with version and cases: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("corpus: there is something after the object")
	}
	switch {
	case file.Version == "":
		return nil, errors.New("corpus: it has no version")
	case len(file.Cases) == 0 || len(file.Cases) > maxCases:
		return nil, fmt.Errorf("corpus: it has %d cases; 1 to %d are allowed", len(file.Cases), maxCases)
	}
	c := &Corpus{version: file.Version, digest: sha256.Sum256(b), cases: file.Cases, byText: map[[32]byte]int{}}
	for i, q := range file.Cases {
		if _, _, ok := capabilities.ParseWireName(q.Expect); !ok && q.Expect != nothing {
			return nil, fmt.Errorf("corpus: case %d expects neither a wire name such as web_search__v1 nor %q", i+1, nothing)
		}
		text := sha256.Sum256([]byte(q.Question))
		if _, twice := c.byText[text]; twice || q.Question == "" {
			return nil, fmt.Errorf("corpus: case %d has no question, or one that stood before", i+1)
		}
		c.byText[text] = i
	}
	return c, nil
}

// CorpusReport is how well the model chose, over those questions of a corpus that the log holds.
type CorpusReport struct {
	Version   string `json:"version"`
	Digest    string `json:"digest"` // SHA-256 of the corpus' file
	Questions int    `json:"questions"`
	Asked     int    `json:"asked"` // of them, at least once
	// Selection is the asks whose first proposal was the expected capability, or that led to none where none was.
	Selection  Share    `json:"selection"`
	Structured Share    `json:"structured_output"` // model calls under these asks that parsed and validated
	Wrong      []Wrong  `json:"wrong"`
	Never      []string `json:"never_asked"`
}

// Wrong is one question and what the model chose instead.
type Wrong struct {
	Question string `json:"question"`
	Expected string `json:"expected"`
	Chosen   string `json:"chosen"` // wire name, "none", "unreadable" or "unknown capability"
	Times    uint64 `json:"times"`
}

// judge follows the asks of a corpus' questions.
type judge struct {
	corpus *Corpus
	live   map[audit.ID]*ask
	// unread counts calls that could not be read, of asks whose question is not known yet: the gateway names the ask alone.
	unread     map[audit.ID]uint64
	chosen     []map[string]uint64 // by case: what was chosen how often
	structured Share
}

// ask is one asking of a question.
type ask struct {
	at       int    // case
	chosen   string // first; "" while nothing was proposed
	proposed uint64 // so far
	over     bool
	count    uint64 // proposals in all, once it is over
}

func newJudge(c *Corpus) *judge {
	return &judge{corpus: c, live: map[audit.ID]*ask{}, unread: map[audit.ID]uint64{}, chosen: make([]map[string]uint64, len(c.cases))}
}

// follow returns the ask if its question is in the corpus.
func (j *judge) follow(id audit.ID, text audit.Digest) *ask {
	if a := j.live[id]; a != nil {
		return a
	}
	at, ok := j.corpus.byText[text]
	if !ok || id == (audit.ID{}) || len(j.live) >= maxAsks {
		return nil
	}
	a := &ask{at: at}
	j.live[id] = a
	if n := j.unread[id]; n > 0 {
		j.unreadable(a, n)
	}
	return a
}

// proposed reports whether the proposal answers a question of the corpus.
func (j *judge) proposed(p *audit.Proposal) bool {
	a := j.follow(p.Ask, p.AskDigest)
	if a == nil {
		return false
	}
	j.structured.Of++
	j.structured.Good++ // until a stage says otherwise
	chosen := "unknown capability"
	if p.Capability != "" {
		chosen = capabilities.WireName(p.Capability, p.Version)
	}
	a.choose(chosen)
	a.proposed++
	j.settle(p.Ask, a)
	return true
}

func (a *ask) choose(what string) {
	if a.chosen == "" {
		a.chosen = what
	}
}

func (j *judge) unreadable(a *ask, n uint64) {
	j.structured.Of += n
	a.choose("unreadable")
}

func (j *judge) claimed(c *audit.Claim) {
	a := j.follow(c.Ask, c.AskDigest)
	switch {
	case c.Class == audit.ClaimParseFailure && a != nil:
		j.unreadable(a, 1)
	case c.Class == audit.ClaimParseFailure && len(j.unread) < maxAsks:
		j.unread[c.Ask]++
	case c.Class == audit.ClaimTurn && a != nil:
		a.over, a.count = true, uint64(c.Count)
		if a.count == 0 {
			a.choose(nothing)
		}
		j.settle(c.Ask, a)
	}
	if c.Class == audit.ClaimTurn {
		delete(j.unread, c.Ask)
	}
}

// settle counts an ask that is over. A proposal that waited for a press is recorded when it ends, which may be later.
func (j *judge) settle(id audit.ID, a *ask) {
	if a.over && a.proposed >= a.count {
		delete(j.live, id)
		count(j.chosen, a)
	}
}

func count(chosen []map[string]uint64, a *ask) {
	if chosen[a.at] == nil {
		chosen[a.at] = map[string]uint64{}
	}
	chosen[a.at][a.chosen]++
}

// report judges what was asked. Of a question whose turn has not ended, the first proposal counts if there is one.
func (j *judge) report() *CorpusReport {
	chosen := make([]map[string]uint64, len(j.chosen))
	for i := range j.chosen {
		chosen[i] = maps.Clone(j.chosen[i])
	}
	for _, a := range j.live {
		if a.chosen != "" {
			count(chosen, a)
		}
	}
	r := &CorpusReport{
		Version: j.corpus.version, Digest: hex.EncodeToString(j.corpus.digest[:]), Questions: len(j.corpus.cases),
		Structured: j.structured, Wrong: []Wrong{}, Never: []string{},
	}
	for i, q := range j.corpus.cases {
		if len(chosen[i]) == 0 {
			r.Never = append(r.Never, q.Question)
			continue
		}
		r.Asked++
		for _, what := range slices.Sorted(maps.Keys(chosen[i])) {
			n := chosen[i][what]
			r.Selection.Of += n
			if what == q.Expect {
				r.Selection.Good += n
				continue
			}
			r.Wrong = append(r.Wrong, Wrong{Question: q.Question, Expected: q.Expect, Chosen: what, Times: n})
		}
	}
	return r
}
