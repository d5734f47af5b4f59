package audit

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// What a verifier takes from outside the segments: the chain of keys, and seals that somebody kept.

// keyChain holds the anchors file against the log. The file may lag behind the log, but may not contradict it.
type keyChain struct {
	file    fs.File
	reader  *anchorReader // nil where there is no file, or it was read to its end
	epoch   Digest        // of the epoch body whose seal is due
	pending bool
}

func (c codec) openKeyChain(fsys fs.FS) (*keyChain, error) {
	f, _, err := openRegular(fsys, anchorsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return &keyChain{}, nil
	}
	if err != nil {
		return nil, err
	}
	return &keyChain{file: f, reader: c.anchors(f)}, nil
}

func (k *keyChain) close() {
	if k.file != nil {
		k.file.Close()
	}
}

// advance reads one entry; false where there is none. Its error means that an entry does not verify.
func (k *keyChain) advance() (bool, error) {
	if k.reader == nil {
		return false, nil
	}
	err := k.reader.next()
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, errAnchorsEnd):
		k.reader = nil
		return false, nil
	}
	return false, fmt.Errorf("%s: %w", anchorsFile, err)
}

// reach leads from the root to the keys of the epoch in which the segment s begins.
func (k *keyChain) reach(s *Segment) (root Digest, err error) {
	for {
		more, err := k.advance()
		if err != nil {
			return Digest{}, err
		}
		if !more {
			return Digest{}, nil
		}
		if e := k.reader.epoch; e.N == s.Epoch {
			if e.SealKey != s.SealKey || e.ReceiptKey != s.ReceiptKey || e.GrantKey != s.GrantKey {
				return Digest{}, fmt.Errorf("%s: other keys for epoch %d than the segment's", anchorsFile, e.N)
			}
			return k.reader.root, nil
		}
	}
}

// visit compares each change of keys in the log with the file.
func (k *keyChain) visit(f found) error {
	body := sha256.Sum256
	switch f.Payload.(type) {
	case *Genesis:
		more, err := k.advance()
		if err != nil {
			return err
		}
		if more && k.reader.entry != Digest(body(f.frame.body)) {
			return fmt.Errorf("%s: of another log", anchorsFile)
		}
	case *Epoch:
		k.epoch, k.pending = body(f.frame.body), true
	case *Seal:
		if !k.pending {
			return nil
		}
		k.pending = false
		more, err := k.advance()
		if err != nil {
			return err
		}
		if more && k.reader.entry != entryDigest(k.epoch, body(f.frame.body)) {
			return fmt.Errorf("%s: another epoch %d than the log's", anchorsFile, k.reader.epoch.N)
		}
	}
	return nil
}

// beginAt takes the first segment's record on the word of the anchors: its keys are proved by the chain of epochs from the
// root, and the seals from there on prove the rest.
func (v *verifier) beginAt(index uint32) error {
	at := place{segment: index}
	b, err := v.head(index)
	if err != nil {
		return err
	}
	damaged := func(err error) error { return &damage{place: at, err: err} }
	f, err := parseFrame(b)
	if err != nil {
		return damaged(err)
	}
	r, err := v.chain.codec.record(f)
	if err != nil {
		return damaged(err)
	}
	s, ok := r.Payload.(*Segment)
	if !ok {
		return damaged(errors.New("the segment does not begin with its record"))
	}
	root, err := v.keys.reach(s)
	if err != nil {
		return &damage{place: at, err: err, about: AboutAnchors}
	}
	v.chain.resume(s)
	v.chain.root, v.begin, v.report.First = root, s, s.First
	return nil
}

// head reads what the segment record is in.
func (v *verifier) head(index uint32) ([]byte, error) {
	f, _, err := openRegular(v.fsys, segmentName(index))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, Block)
	n, err := io.ReadFull(f, b)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("audit: reading: %w", err)
	}
	return b[:n], nil
}

// front judges how the log begins, once all of it was read.
func (v *verifier) front(end place) bool {
	if v.begin == nil {
		return true
	}
	at := place{segment: v.begin.Index, seq: v.begin.First}
	switch p := v.pruned; {
	case v.begin.Index > v.chain.keeping.pruned:
		v.problem(Incomplete, AboutLog, place{segment: v.chain.keeping.pruned}, "the file "+segmentName(v.chain.keeping.pruned)+" is missing")
	case v.chain.root == (Digest{}):
		v.problem(Incomplete, AboutLog, at, "the first segments were pruned, and "+anchorsFile+" does not lead from the root key to what is left")
	case p != nil && (p.Last+1 != v.begin.First || p.LastLink != v.begin.PrevLink):
		v.problem(Altered, AboutLog, at, "the first segment does not follow what was pruned")
	default:
		return true
	}
	return false
}

// keptSeal is a seal from elsewhere.
type keptSeal struct {
	claims SealClaims
	found  bool
}

// AnchorState says what a log has to say about a seal that was kept elsewhere. The zero value is no answer.
type AnchorState uint8

// The states.
const (
	AnchorHeld   AnchorState = 1 // the log holds this very seal
	AnchorBeyond AnchorState = 2 // the log ends before it: it was rolled back
	AnchorForked AnchorState = 3 // the log has something else there
	AnchorPruned AnchorState = 4 // that part of the log was pruned
)

func (s AnchorState) String() string {
	return name(uint8(s), "no answer", "held", "beyond the end", "contradicted", "pruned")
}

// AnchorReport is the answer for one of VerifyOptions.Anchors, in their order.
type AnchorReport struct {
	Seq   Seq // of the seal
	State AnchorState
}

// ReadSeal reads a seal that was kept elsewhere, a COSE_Sign1, without believing it. It fails with ErrMalformed where it is
// none.
func ReadSeal(sign1 []byte) (SealClaims, error) {
	claims, err := newCodec().peekSeal(&Seal{Sign1: sign1})
	if err != nil {
		return SealClaims{}, fmt.Errorf("%w: no seal: %w", ErrMalformed, err)
	}
	return claims, nil
}

// keptSeals reads seals without believing them. It fails with ErrMalformed where one is none.
func (c codec) keptSeals(signed [][]byte) ([]keptSeal, error) {
	var kept []keptSeal
	for _, b := range signed {
		claims, err := c.peekSeal(&Seal{Sign1: b})
		if err != nil {
			return nil, fmt.Errorf("%w: an anchor is no seal: %w", ErrMalformed, err)
		}
		kept = append(kept, keptSeal{claims: claims})
	}
	return kept, nil
}

// errOtherSeal says what an anchor and a log that contradict one another may mean: nobody can tell which.
var errOtherSeal = errors.New("not the seal that was kept elsewhere: the log was changed since, or that seal is another box's")

// compare holds a seal of the log against those that were kept.
func (v *verifier) compare(at Seq, s *Seal) error {
	for i := range v.kept {
		k := &v.kept[i]
		if k.claims.Size != at {
			continue
		}
		claims, err := v.chain.codec.peekSeal(s)
		if err != nil {
			return err
		}
		if claims != k.claims {
			return fmt.Errorf("record %d is %w", at, errOtherSeal)
		}
		k.found = true
	}
	return nil
}

// anchored judges the seals that were kept elsewhere, and whether the anchors file knows more than the log.
func (v *verifier) anchored(end place) bool {
	sound := true
	complain := func(s Status, about About, reason string) {
		if sound {
			v.problem(s, about, end, reason)
		}
		sound = false
	}
	for _, k := range v.kept {
		r := AnchorReport{Seq: k.claims.Size, State: AnchorHeld}
		switch {
		case k.found:
		case k.claims.Size > v.chain.sealed.Seq:
			r.State = AnchorBeyond
			complain(Incomplete, AboutKept, fmt.Sprintf("the log ends before record %d, of which a seal was kept elsewhere: it was rolled back, or that seal is another box's", k.claims.Size))
		case k.claims.Size < v.report.First:
			r.State = AnchorPruned
			if !v.o.Pruned {
				complain(Incomplete, AboutKept, fmt.Sprintf("record %d, of which a seal was kept elsewhere, was pruned: nothing here can be held against it (--pruned accepts that)", k.claims.Size))
			}
		default:
			r.State = AnchorForked
			complain(Altered, AboutKept, fmt.Sprintf("record %d is %v", k.claims.Size, errOtherSeal))
		}
		v.report.Anchors = append(v.report.Anchors, r)
	}
	more, err := v.keys.advance()
	switch {
	case err != nil:
		complain(Altered, AboutAnchors, reasonOf(err))
	case more:
		complain(Incomplete, AboutAnchors, fmt.Sprintf("%s knows epoch %d, and the log ends before it: it was rolled back", anchorsFile, v.keys.reader.epoch.N))
	}
	return sound
}
