package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"syscall"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/view"
	"assent.home.arpa/appliance/clock"
)

// RedactedMarker is the file beside the segments that says that literal texts were left out of a copy on purpose.
const RedactedMarker = "REDACTED.txt"

// Redacted reports whether a log is a copy that says so. Whoever verifies it then expects the texts to be missing.
func Redacted(log fs.FS) bool {
	_, err := fs.Stat(log, RedactedMarker)
	return err == nil
}

// unfinished is the name of a copy while it is made. What is left of one, after a power cut, is removed by the next.
const unfinished = "AUDIT-unfinished"

var (
	// ErrExists says that there is something of every name that a copy could have.
	ErrExists = errors.New("export: there is something of every name that this copy could have; remove some, or choose another place")
	// ErrUnredactable says that a log is damaged, so that nobody can tell literal texts from the rest.
	ErrUnredactable = errors.New("export: a log that is damaged cannot be redacted, since texts cannot be told from the rest; copy it whole")
	// ErrReadBack says that the medium does not hold what was written to it.
	ErrReadBack = errors.New("export: the medium gives back other bytes than were written; use another one")
)

// NoRoomError says that a copy does not fit. Nothing of it was left behind.
type NoRoomError struct {
	Need int64 // bytes, about
	Free int64 // bytes; negative where nobody knows
}

func (e *NoRoomError) Error() string {
	s := fmt.Sprintf("export: no room: the copy needs about %d MB", megabytes(e.Need))
	if e.Free >= 0 {
		s += fmt.Sprintf(", and %d MB are free", e.Free/1e6)
	}
	return s + "; make room or use another medium"
}

func megabytes(n int64) int64 { return (n + 1e6 - 1) / 1e6 }

// Step is a part of the work.
type Step string

// The steps, in order.
const (
	StepCheck Step = "checking the log"
	StepCopy  Step = "copying"
	StepView  Step = "checking the copy and writing the view"
	StepRead  Step = "reading back"
)

// Options says how to copy.
type Options struct {
	Redact bool        // leave out all literal texts: the log still verifies
	Name   string      // the box's own name, for people; may be empty
	Clock  clock.Clock // for the date in the README
	ByBox  bool        // the box itself makes the copy, and so it is the box's own word what is said of it
	// Progress hears of bytes done and in all; it may be nil.
	Progress func(step Step, done, total int64)
}

// Report says what was copied.
type Report struct {
	Dir          string       // name of the copy in its volume
	Beside       string       // what has the name that the copy would have had, and was not touched; empty for nothing
	Log          audit.Report // verdict on the copied log
	FirstSegment uint32
	LastSegment  uint32
	Sums         audit.Digest // SHA-256 of SHA256SUMS
	Files        int
	Bytes        int64
	Redacted     bool // literal texts were left out on purpose; Log counts them
}

// Write copies the log in src (its directory, or one with a log directory in it) to dst. It returns an error where there
// is no copy, and none where what was copied is damaged: Report.Log says so.
//
// Errors are ErrExists, ErrUnredactable, ErrReadBack, *NoRoomError, fs.ErrNotExist where there is no log, the context's,
// or a medium's.
func Write(ctx context.Context, src fs.FS, dst Volume, o Options) (Report, error) {
	if o.Progress == nil {
		o.Progress = func(Step, int64, int64) {}
	}
	log, err := find(src)
	if err != nil {
		return Report{}, err
	}
	o.Redact = o.Redact || Redacted(log) // there is nothing more to be had
	before, err := audit.Verify(ctx, log.FS, audit.VerifyOptions{Withheld: true, Visit: func(e audit.Entered) error {
		o.Progress(StepCheck, int64(e.Segment)*audit.SegmentSize+e.Offset, log.bytes)
		return nil
	}})
	switch {
	case err != nil:
		return Report{}, err
	case o.Redact && !redactable(before, log):
		return Report{}, ErrUnredactable
	}
	need := log.need()
	free, known := dst.Free()
	if !known {
		free = -1
	}
	if known && free < log.bytes {
		return Report{}, &NoRoomError{Need: need, Free: free}
	}
	if err := dst.RemoveAll(unfinished); err != nil {
		return Report{}, fmt.Errorf("export: removing an unfinished copy: %w", err)
	}
	r, err := write(ctx, log, dst, o, before.Status == audit.Intact)
	if errors.Is(err, errMoved) {
		if err := dst.RemoveAll(unfinished); err != nil {
			return Report{}, fmt.Errorf("export: removing what was copied so far: %w", err)
		}
		r, err = write(ctx, log, dst, o, false)
	}
	if err == nil {
		return r, nil
	}
	if full(err) {
		err = &NoRoomError{Need: need, Free: free}
	}
	if removed := dst.RemoveAll(unfinished); removed != nil {
		err = errors.Join(err, fmt.Errorf("export: removing what was copied so far: %w", removed))
	}
	return Report{}, err
}

// Need is about how many bytes a copy of the log in src takes.
func Need(src fs.FS) (int64, error) {
	log, err := find(src)
	return log.need(), err
}

// need allows for a view, which is about as large as its log, and for a log that goes on.
func (s source) need() int64 { return 2*s.bytes + audit.SegmentSize }

func full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// redactable reports whether everything but a torn tail can be told apart.
func redactable(r audit.Report, log source) bool {
	last, _ := indexOf(log.segments[len(log.segments)-1])
	return r.Status == audit.Intact || r.Status == audit.Incomplete && r.Problem.Segment == last
}

func nameOf(r audit.Report, o Options) string {
	name := fmt.Sprintf("AUDIT-%s-%d", r.Root.String()[:8], r.Head.Seq)
	if o.Redact {
		name += "-redacted"
	}
	return name
}

// errMoved says that a log that was whole gave a copy that is not: what removes texts or segments came in between.
var errMoved = errors.New("export: the log changed while it was copied")

// write makes the copy under its temporary name, and renames it. With whole, the copy must be intact.
func write(ctx context.Context, log source, dst Volume, o Options, whole bool) (Report, error) {
	c := &copier{ctx: ctx, dst: dst, dir: unfinished, o: o}
	for _, dir := range []string{"", "log", "view", "view/data"} {
		if err := dst.Mkdir(path.Join(unfinished, dir)); err != nil {
			return Report{}, fmt.Errorf("export: %w", err)
		}
	}
	log, err := c.log(log)
	if err != nil {
		return Report{}, err
	}
	r := Report{Redacted: o.Redact}
	r.FirstSegment, _ = indexOf(log.segments[0])
	r.LastSegment, _ = indexOf(log.segments[len(log.segments)-1])
	var seal []byte
	if r.Log, seal, err = c.view(log.bytes); err != nil {
		return Report{}, err
	}
	if whole && r.Log.Status == audit.Incomplete {
		return Report{}, errMoved
	}
	if err := c.papers(r, seal); err != nil {
		return Report{}, err
	}
	if r.Sums, err = c.finish(); err != nil {
		return Report{}, err
	}
	name := nameOf(r.Log, o)
	if r.Dir, err = c.name(name); err != nil {
		return Report{}, err
	}
	if r.Dir != name {
		r.Beside = name
	}
	r.Files, r.Bytes = len(c.files), c.bytes
	return r, nil
}

// log copies the evidence. Segments that are pruned while it does are no longer of the log: it begins again without them.
func (c *copier) log(s source) (source, error) {
	for again := false; ; again = true {
		err := c.segments(s)
		if !errors.Is(err, fs.ErrNotExist) || again {
			return s, err
		}
		if err := c.drop("log"); err != nil {
			return s, err
		}
		if s, err = find(s.FS); err != nil {
			return s, err
		}
	}
}

func (c *copier) segments(s source) error {
	var done int64
	if s.anchors {
		f, err := s.open(anchorsName)
		if err != nil {
			return err
		}
		n, err := c.copy("log/"+anchorsName, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		done += n
	}
	for i, name := range s.segments {
		c.o.Progress(StepCopy, done, s.bytes)
		n, err := c.segment(s, name, i == len(s.segments)-1)
		if err != nil {
			return err
		}
		done += n
	}
	return nil
}

func (c *copier) segment(s source, name string, newest bool) (int64, error) {
	read := func() ([]byte, bool, error) { return s.whole(name) }
	if newest {
		read = func() ([]byte, bool, error) { return s.settled(c.ctx, name) }
	}
	b, ok, err := read()
	if err != nil {
		return 0, err
	}
	if c.o.Redact {
		if b, err = relay(b, newest); err != nil {
			return 0, fmt.Errorf("%w (%w)", ErrUnredactable, err)
		}
		return c.put("log/"+name, b)
	}
	if ok {
		return c.put("log/"+name, b)
	}
	f, err := s.open(name) // no segment, but evidence
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return c.copy("log/"+name, f)
}

// view verifies the copy as it is on the medium, and writes the page about it in the same pass.
func (c *copier) view(total int64) (audit.Report, []byte, error) {
	fsys, err := fs.Sub(c.dst, path.Join(c.dir, "log"))
	if err != nil {
		return audit.Report{}, nil, fmt.Errorf("export: %w", err)
	}
	var seal []byte
	wall, state := c.o.Clock.Wall()
	if state == clock.Unset {
		wall = time.Time{}
	}
	report, err := view.Write(c.ctx, fsys, func(name string) (io.WriteCloser, error) { return c.create("view/" + name) }, view.Options{
		Name: c.o.Name, Statement: c.statement(), Made: wall, Redacted: c.o.Redact,
		Verify: audit.VerifyOptions{Withheld: c.o.Redact, Visit: func(e audit.Entered) error {
			if s, ok := e.Payload.(*audit.Seal); ok {
				seal = s.Sign1
			}
			c.o.Progress(StepView, int64(e.Segment)*audit.SegmentSize+e.Offset, total)
			return nil
		}},
	})
	return report, seal, err
}

func (c *copier) statement() view.Statement {
	if c.o.ByBox {
		return view.ByBox
	}
	return view.ByCopier
}
