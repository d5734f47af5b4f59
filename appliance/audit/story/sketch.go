package story

import (
	"strconv"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/capabilities"
)

// sketch is what is common to all drafts: a story, and the literal bytes that its records refer to.
type sketch struct {
	Story
	size    int  // bytes of literals
	touched bool // in the present batch
	// removed says that blobs were removed from a batch that this story has records in. A removed blob does not say whose
	// it was, but what a record refers to and the log policy did not withhold was there.
	removed bool
	blobs   []blob
}

type blob struct {
	seq     audit.Seq
	purpose audit.Purpose
	digest  audit.Digest
	bytes   []byte
}

func blobOf(r audit.Record, b *audit.Blob) blob {
	return blob{seq: r.Seq, purpose: b.Purpose, digest: b.Digest, bytes: b.Bytes}
}

// number is a record's number as people write it.
func number(s audit.Seq) string { return "#" + strconv.FormatUint(uint64(s), 10) }

func (d *sketch) touch(seq audit.Seq) {
	d.Last, d.touched = seq, true
}

func (d *sketch) keep(b ...blob) {
	d.blobs = append(d.blobs, b...)
	for i := range b {
		d.size += len(b[i].bytes)
	}
}

func (d *sketch) weight() int { return d.size }

func (d *sketch) close(b *batch) {
	d.removed = d.removed || b.removed && d.touched
	d.touched = false
}

// blob finds the literal bytes with a digest, or nil.
func (d *sketch) blob(digest audit.Digest) *blob {
	for i := range d.blobs {
		if d.blobs[i].digest == digest {
			return &d.blobs[i]
		}
	}
	return nil
}

// literal says what became of the bytes with a digest.
func (d *sketch) literal(name string, digest audit.Digest, policy capabilities.LogPolicy) Literal {
	l := Literal{Name: name, Digest: digest.String(), State: d.missing(policy)}
	if b := d.blob(digest); b != nil {
		l.fill(b)
	}
	return l
}

func (l *Literal) fill(b *blob) {
	l.State, l.Digest, l.Record = KeptYes, b.digest.String(), b.seq
	l.say(b.bytes)
}

func (l *Literal) say(b []byte) {
	l.Text, l.Bytes = Printable(b), nil
	if l.Text != string(b) {
		l.Bytes = b
	}
}

// missing says why literal bytes are not there.
func (d *sketch) missing(policy capabilities.LogPolicy) Kept {
	switch {
	case policy <= capabilities.LogOmit:
		return KeptWithheld
	case d.removed:
		return KeptRedacted
	}
	return KeptNo
}

func (d *sketch) step(name StepName, text string, records ...audit.Seq) *Step {
	d.Steps = append(d.Steps, Step{Name: name, Text: text, Records: records})
	return &d.Steps[len(d.Steps)-1]
}

func (s *Step) fact(name, value string) {
	if value != "" {
		s.Facts = append(s.Facts, Fact{Name: name, Value: value})
	}
}

func (s *Step) digest(name string, d [32]byte) {
	if d != [32]byte{} {
		s.fact(name, audit.Digest(d).String())
	}
}
