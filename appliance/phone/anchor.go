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

	"assent.home.arpa/appliance/wire"
)

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
// two there, so that only its owner can read it. It fails with a *ChangedError, and keeps the old one, where they
// contradict each other. A box that shows no seal, since it has no record at the moment, changes nothing.
func KeepAnchor(path string, w wire.Welcome, seen time.Time) error {
	if w.Seal == "" {
		return nil
	}
	seal, err := base64.RawURLEncoding.DecodeString(w.Seal)
	if err != nil || len(seal) > maxSeal {
		return errors.New("phone: the box's seal cannot be read")
	}
	now := Anchor{Seal: seal, Record: w.HeadSeq, Seen: seen}
	then, err := loadAnchor(path)
	switch {
	case err != nil:
		return err
	case now.Record < then.Record, now.Record == then.Record && then.Seal != nil && !bytes.Equal(now.Seal, then.Seal):
		return &ChangedError{Then: then, Now: now, File: path}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# The newest seal of the box's record that this computer has seen. To hold a record against it: assent audit verify --anchor\n")
	fmt.Fprintf(&b, "# record %d %s\n%s\n", now.Record, now.Seen.UTC().Format(time.RFC3339), encode(now.Seal))
	if err := replace(path, b.Bytes()); err != nil {
		return fmt.Errorf("phone: anchor: %w", err)
	}
	return nil
}

// loadAnchor reads an anchor; the zero Anchor where there is none.
func loadAnchor(path string) (Anchor, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Anchor{}, nil
	}
	if err != nil {
		return Anchor{}, fmt.Errorf("phone: anchor: %w", err)
	}
	var a Anchor
	var seen string
	lines := bufio.NewScanner(bytes.NewReader(b))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		switch {
		case strings.HasPrefix(line, "# record "):
			if _, err := fmt.Sscanf(line, "# record %d %s", &a.Record, &seen); err != nil {
				return Anchor{}, damagedAnchor(path)
			}
		case line != "" && line[0] != '#':
			if a.Seal, err = base64.RawURLEncoding.DecodeString(line); err != nil {
				return Anchor{}, damagedAnchor(path)
			}
		}
	}
	if a.Seen, err = time.Parse(time.RFC3339, seen); err != nil || lines.Err() != nil || len(a.Seal) == 0 {
		return Anchor{}, damagedAnchor(path)
	}
	return a, nil
}

func damagedAnchor(path string) error {
	return fmt.Errorf("phone: %s is damaged; remove it to begin anew with the record as it is", path)
}
