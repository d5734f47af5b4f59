// Package notice carries what the parts that prepare a box have to say to the people at it, when no phone could be told:
// "assent.toml on the card is not valid". Such a part runs once, as root, before the guard; it writes a small file, and the
// guard shows the file's text word for word on the panel until somebody presses a button.
//
// # Files
//
// A notice is one regular file NAME.notice in a directory that only root writes (box.Sockets names it) and that is empty at
// each boot. It holds the text as UTF-8 and nothing else. Names are words of at most 32 small letters, digits and hyphens.
// Files appear and change by rename, so that no reader sees half of one; names that begin with a dot are such files in the
// making. Whatever else lies there is no notice.
package notice

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"assent.home.arpa/confirm/screen"
)

// Bounds. What lies beyond them is refused when written and left out when read.
const (
	MaxCodePoints = 256 // of a text
	MaxNotices    = 16  // in a directory

	maxName  = 32
	maxBytes = MaxCodePoints * utf8.UTFMax
	maxFiles = 256 // looked at in a directory
)

const ending = ".notice"

var (
	// ErrName says that a name is not a word of small letters, digits and hyphens.
	ErrName = errors.New("notice: name must be 1 to 32 small letters, digits and hyphens, and begin with a letter")
	// ErrText says that a text is empty, too long or not one that the panel can show word for word.
	ErrText = errors.New("notice: text must be 1 to 256 code points that the panel can show")
	// ErrTooMany says that a directory holds more than is read.
	ErrTooMany = errors.New("notice: too many notices")
)

// Notice is one text for the people at the box.
type Notice struct {
	Name string
	Text string
}

// Digest tells one notice from another, and from what it said before: SHA-256 over name, a zero byte and text.
func (n Notice) Digest() [32]byte { return sha256.Sum256([]byte(n.Name + "\x00" + n.Text)) }

func (n Notice) check() error {
	if !validName(n.Name) {
		return ErrName
	}
	if n.Text == "" || utf8.RuneCountInString(n.Text) > MaxCodePoints {
		return ErrText
	}
	if err := screen.Check(n.Text); err != nil {
		return fmt.Errorf("%w: %w", ErrText, err)
	}
	return nil
}

func validName(s string) bool {
	if s == "" || len(s) > maxName || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// Write puts the notice name into dir, in place of what it said before. It fails with ErrName or ErrText where the panel
// could not show it, and then writes nothing. A directory that does not exist is made.
func Write(dir, name, text string) error {
	if err := (Notice{name, text}).check(); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("notice: %w", err)
	}
	f, err := os.CreateTemp(dir, "."+name+"-*")
	if err != nil {
		return fmt.Errorf("notice: %w", err)
	}
	_, err = f.WriteString(text)
	// The guard is another user. Nothing in a notice is secret: it is about to stand on the panel.
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, name+ending))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("notice: %w", err), os.Remove(f.Name()))
	}
	return nil
}

// Remove takes the notice name back, if there is one: what it says is over.
func Remove(dir, name string) error {
	if !validName(name) {
		return ErrName
	}
	if err := os.Remove(filepath.Join(dir, name+ending)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("notice: %w", err)
	}
	return nil
}

// Read returns the notices in dir by name, at most MaxNotices. A directory that does not exist holds none. What can be read is
// returned even where the error, which names each file that cannot, is not nil.
func Read(dir string) ([]Notice, error) {
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("notice: %w", err)
	}
	defer d.Close()
	entries, err := d.ReadDir(maxFiles)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("notice: %w", err)
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	var all []Notice
	var errs []error
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ending)
		if !ok || !validName(name) {
			continue
		}
		n, err := read(dir, name)
		switch {
		case errors.Is(err, fs.ErrNotExist): // taken back just now
		case err != nil:
			errs = append(errs, fmt.Errorf("notice: %s: %w", name, err))
		case len(all) == MaxNotices:
			return all, errors.Join(append(errs, ErrTooMany)...)
		default:
			all = append(all, n)
		}
	}
	return all, errors.Join(errs...)
}

// read opens without following a link and without waiting for a pipe's other end.
func read(dir, name string) (Notice, error) {
	f, err := os.OpenFile(filepath.Join(dir, name+ending), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return Notice{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Notice{}, err
	}
	if !info.Mode().IsRegular() {
		return Notice{}, errors.New("not a regular file")
	}
	text, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return Notice{}, err
	}
	n := Notice{name, string(text)}
	return n, n.check()
}
