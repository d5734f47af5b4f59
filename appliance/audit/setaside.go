package audit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

const (
	damagedPrefix = "damaged-" // of the directories that logs are set aside in
	// setAsideTodo is there while a log is being set aside. Open refuses until it has become previousLog.
	setAsideTodo = "setaside.todo"
	previousLog  = "previous.log" // the log that was set aside last, for the genesis of the one that follows it
)

// Damaged is a log that was set aside.
type Damaged struct {
	Dir  string // in the log's directory: "damaged-0001"
	Link Digest // of the last seal that can be read, as the bytes say, unverified; zero where there is none
}

// damagedRecord is the content of setaside.todo and previous.log.
type damagedRecord struct {
	N    uint32 `cbor:"1,keyasint"` // of the directory
	Link Digest `cbor:"2,keyasint,omitzero"`
}

func (r damagedRecord) damaged() Damaged {
	return Damaged{Dir: fmt.Sprintf("%s%04d", damagedPrefix, r.N), Link: r.Link}
}

// SetAside moves a log that Open refuses with ErrCorrupt, as it is, into a directory of its own, so that Open begins a new
// one, whose genesis names the old one's last link. Nothing in the old log is changed, but its private seal keys are
// removed: nobody can continue it. Whoever calls it has asked somebody, since a log that is set aside is not read by the
// box again, and its literal payloads stay until somebody removes the directory.
//
// Where it is cut short, Open refuses until SetAside has run again. It fails with fs.ErrNotExist where there is no log, and
// with ErrLocked where the log is open. It closes the disk.
func SetAside(d Disk) (_ Damaged, err error) {
	defer func() { err = errors.Join(err, d.Close()) }()
	unlock, err := d.Lock()
	if errors.Is(err, ErrLocked) {
		return Damaged{}, err
	}
	if err != nil {
		return Damaged{}, fmt.Errorf("audit: locking: %w", err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	r, err := setAside(d)
	if err != nil {
		return Damaged{}, fmt.Errorf("audit: setting the log aside: %w", err)
	}
	return r.damaged(), nil
}

func setAside(d Disk) (damagedRecord, error) {
	c := newCodec()
	r, begun, err := c.readDamaged(d, setAsideTodo)
	if err != nil {
		return damagedRecord{}, err
	}
	if !begun {
		if r, err = c.planSetAside(d); err != nil {
			return damagedRecord{}, err
		}
		b, err := c.encode(r)
		if err != nil {
			return damagedRecord{}, err
		}
		if err := replaceFile(d, setAsideTodo, b); err != nil {
			return damagedRecord{}, err
		}
	}
	names, err := d.List()
	if err != nil {
		return damagedRecord{}, err
	}
	for _, name := range names {
		switch {
		case name == setAsideTodo, name == previousLog, name == lockFile:
			continue
		case name == keyCurrent, name == keyNext, name == spareTemp, name == replaceTemp, strings.HasSuffix(name, spareSuffix):
			err = d.Remove(name)
		default:
			err = d.Move(name, r.damaged().Dir)
		}
		if err != nil {
			return damagedRecord{}, err
		}
	}
	if err := d.Sync(); err != nil {
		return damagedRecord{}, err
	}
	if err := d.Rename(setAsideTodo, previousLog); err != nil {
		return damagedRecord{}, err
	}
	return r, d.Sync()
}

// readDamaged returns false where there is no such file, or it says nothing: it was written whole, so then it is damaged
// itself, and no log depends on what it said.
func (c codec) readDamaged(d Disk, name string) (r damagedRecord, ok bool, err error) {
	b, err := readFile(d, name, 64)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrCorrupt) {
		return damagedRecord{}, false, nil
	}
	if err != nil {
		return damagedRecord{}, false, err
	}
	if c.decode(b, &r) != nil {
		return damagedRecord{}, false, nil
	}
	return r, true, nil
}

// planSetAside chooses the directory and finds the last link, while nothing is changed.
func (c codec) planSetAside(d Disk) (r damagedRecord, err error) {
	names, err := d.List()
	if err != nil {
		return r, err
	}
	segments := indexes(names, segmentSuffix)
	if len(segments) == 0 && !slices.Contains(names, keyCurrent) {
		return r, fmt.Errorf("there is none here: %w", fs.ErrNotExist)
	}
	dirs, err := d.Dirs()
	if err != nil {
		return r, err
	}
	for _, dir := range dirs {
		digits, ok := strings.CutPrefix(dir, damagedPrefix)
		if n, err := strconv.ParseUint(digits, 10, 32); ok && err == nil {
			r.N = max(r.N, uint32(n))
		}
	}
	r.N++
	for len(segments) > 0 && r.Link == (Digest{}) {
		// A segment that cannot be read is damaged like any other.
		r.Link, _ = c.lastSeal(d, segments[len(segments)-1])
		segments = segments[:len(segments)-1]
	}
	return r, nil
}

// lastSeal finds the link of the last whole batch in a segment that need not be a log any more: batches begin at blocks.
func (c codec) lastSeal(d Disk, index uint32) (last Digest, err error) {
	f, err := d.Open(segmentName(index))
	if err != nil {
		return last, err
	}
	defer f.Close()
	content := make([]byte, SegmentSize)
	n, err := f.ReadAt(content, 0)
	if err != nil && err != io.EOF {
		return last, err
	}
	for at := 0; at < n; {
		l, size, ok := c.batch(content[at:n])
		if !ok {
			at += Block
			continue
		}
		last = l
		at += (size + Block - 1) / Block * Block
	}
	return last, nil
}

// batch reads one batch whose links lead from its first frame to its seal, and returns the seal's link.
func (c codec) batch(b []byte) (last Digest, size int, ok bool) {
	for {
		f, err := parseFrame(b[size:])
		if err != nil || (size > 0 && f.link != link(last, f.class, f.digest)) {
			return Digest{}, 0, false
		}
		last, size = f.link, size+f.size
		if r, err := c.record(f); err == nil && r.Kind == KindSeal {
			return last, size, true
		}
	}
}
