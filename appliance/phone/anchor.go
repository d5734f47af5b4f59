package phone

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/wire"
)

// maxAnchors bounds how many seals are remembered: the newest, and the first of each day before. Whoever stands between this
// computer and the record can show a seal that nobody made, since only the whole record proves one; what it takes the place
// of is so not lost at once.
const maxAnchors = 8

// maxSeal bounds a seal in bytes. A box's are of some 200.
const maxSeal = 1024

// Anchor is the newest seal of the box's record that this phone has seen. A record that becomes shorter, or holds another
// seal at the same place, was rolled back or exchanged, which nobody can see from inside it.
type Anchor struct {
	Seal   []byte // COSE_Sign1
	Record uint64 // sequence number of the record that holds it
	Seen   time.Time
}

// ChangedError says that a box's record is not the one that was remembered.
type ChangedError struct {
	Then, Now Anchor
	File      string // where Then is kept
}

func (e *ChangedError) Error() string {
	day := e.Then.Seen.Format("2 January 2006")
	what := fmt.Sprintf("this box's record is not the one that it was on %s: record %d was sealed otherwise", day, e.Then.Record)
	if e.Now.Record < e.Then.Record {
		what = fmt.Sprintf("this box's record is shorter than it was on %s: it had %d records then, and %d now", day, e.Then.Record+1, e.Now.Record+1)
	}
	return what + "; somebody may have taken out what it recorded. If a new record was begun at the box, remove " + e.File +
		"; else keep that file, and hold the box's record against it with assent audit verify --anchor"
}

// KeepAnchor holds what the box has just shown, by seen, against the anchor in the file path, and keeps the newer of the
// two there, after older ones, so that only its owner can read it. What is no seal of the record that the box names changes
// nothing. It fails with a *ChangedError, and keeps the old one, where they
// contradict each other. A box that shows no seal, since it has no record at the moment, changes nothing.
func KeepAnchor(path string, w wire.Welcome, seen time.Time) error {
	if w.Seal == "" {
		return nil
	}
	seal, err := base64.RawURLEncoding.DecodeString(w.Seal)
	if err != nil || len(seal) > maxSeal {
		return errors.New("phone: the box's seal cannot be read")
	}
	claims, err := audit.ReadSeal(seal)
	if err != nil || uint64(claims.Size) != w.HeadSeq {
		return errors.New("phone: what the box showed is not the seal of the record that it names: something between this computer and the box's record is wrong; what was remembered is kept as it was")
	}
	now := Anchor{Seal: seal, Record: w.HeadSeq, Seen: seen}
	kept, err := loadAnchors(path)
	if err != nil {
		return err
	}
	if n := len(kept); n > 0 {
		then := kept[n-1]
		if now.Record < then.Record || now.Record == then.Record && !bytes.Equal(now.Seal, then.Seal) {
			return &ChangedError{Then: then, Now: now, File: path}
		}
		if n > 1 && sameDay(then, kept[n-2]) || bytes.Equal(now.Seal, then.Seal) {
			kept = kept[:n-1]
		}
	}
	kept = append(kept, now)
	kept = kept[max(0, len(kept)-maxAnchors):]
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Seals of the box's record that this computer has seen, the newest last. To hold a record against them: assent audit verify --anchor\n")
	for _, a := range kept {
		fmt.Fprintf(&b, "# record %d %s\n%s\n", a.Record, a.Seen.UTC().Format(time.RFC3339), encode(a.Seal))
	}
	if err := replace(path, b.Bytes()); err != nil {
		return fmt.Errorf("phone: anchor: %w", err)
	}
	return nil
}

func sameDay(a, b Anchor) bool {
	return a.Seen.UTC().Format(time.DateOnly) == b.Seen.UTC().Format(time.DateOnly)
}

// loadAnchors reads what was remembered, the newest last; none where there is no file.
func loadAnchors(path string) ([]Anchor, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("phone: anchor: %w", err)
	}
	var all []Anchor
	var a Anchor // whose seal is due
	lines := bufio.NewScanner(bytes.NewReader(b))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		switch {
		case strings.HasPrefix(line, "# record "):
			var seen string
			if _, err := fmt.Sscanf(line, "# record %d %s", &a.Record, &seen); err != nil {
				return nil, damagedAnchor(path)
			}
			if a.Seen, err = time.Parse(time.RFC3339, seen); err != nil {
				return nil, damagedAnchor(path)
			}
		case line != "" && line[0] != '#':
			if a.Seal, err = base64.RawURLEncoding.DecodeString(line); err != nil || a.Seen.IsZero() {
				return nil, damagedAnchor(path)
			}
			all, a = append(all, a), Anchor{}
		}
	}
	if lines.Err() != nil || len(all) == 0 {
		return nil, damagedAnchor(path)
	}
	return all, nil
}

func damagedAnchor(path string) error {
	return fmt.Errorf("phone: %s is damaged; remove it to begin anew with the record as it is", path)
}
