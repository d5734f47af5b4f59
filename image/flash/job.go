package flash

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"assent.home.arpa/image/card"
)

// Stage is what a Job is doing.
type Stage string

// Stages, in their order.
const (
	Writing   Stage = "writing"
	Model     Stage = "writing the model"
	Verifying Stage = "reading back"
)

// ModelFile is a model that goes onto the card.
type ModelFile struct {
	Path   string
	Name   string // as the box will call it; see card.ModelName
	Length int64
	SHA256 [sha256.Size]byte
}

// Job writes one card.
type Job struct {
	Image    *Image
	Target   Target
	Settings []byte     // assent.toml; nil: none
	Model    *ModelFile // nil: none
	// Progress is told while bytes are written and read; may be nil.
	Progress func(stage Stage, done, total int64)
}

// Result is what was put on a card.
type Result struct {
	Written  int64 `json:"written"`   // bytes, of the image and the model
	DataSize int64 `json:"data_size"` // bytes, of the data partition as it is now
}

// UnfinishedError says that something was written and that the card is not good.
type UnfinishedError struct{ Err error }

func (e *UnfinishedError) Error() string {
	return e.Err.Error() + "; the card does not start a box: write it again"
}
func (e *UnfinishedError) Unwrap() error { return e.Err }

// Check says whether everything fits, before anything is written. The error is a *card.SmallError, or of the model.
func (j Job) Check() error {
	_, err := j.plan()
	return err
}

// plan is the card's table as it will be.
func (j Job) plan() (*card.Table, error) {
	table := *j.Image.Table
	if _, err := table.Grow(j.Target.Size()); err != nil {
		return nil, err
	}
	data, err := table.Lookup(card.Data)
	if err != nil {
		return nil, err
	}
	if j.Model == nil {
		return &table, nil
	}
	small, err := j.Image.Table.Lookup(card.Data)
	if err != nil {
		return nil, err
	}
	if need := card.Room(j.Model.Length, small.Size); data.Size < need {
		return nil, fmt.Errorf("with this model the card is %w: a model needs twice its size, since the box copies it at its first start",
			&card.SmallError{Have: j.Target.Size(), Need: j.Target.Size() - data.Size + need})
	}
	return &table, nil
}

// Run writes the card. Any error after the first byte is an *UnfinishedError.
func (j Job) Run(ctx context.Context) (Result, error) {
	table, err := j.plan()
	if err != nil {
		return Result{}, err
	}
	if j.Progress == nil {
		j.Progress = func(Stage, int64, int64) {}
	}
	w := &writer{ctx: ctx, t: j.Target, table: table, buf: aligned(chunk)}
	data, err := table.Lookup(card.Data)
	if err != nil {
		return Result{}, err
	}
	result := Result{DataSize: data.Size}
	for _, step := range []func(*writer) error{blank, j.body, j.model, j.readBack, j.settings, j.finish} {
		if err := step(w); err != nil {
			return Result{}, &UnfinishedError{err}
		}
		result.Written = max(result.Written, w.bytes()+headBytes)
	}
	return result, nil
}

// blank takes the old tables away at both ends.
func blank(w *writer) error {
	zeros := aligned(headBytes)
	size := w.t.Size()
	for _, at := range []int64{0, size - headBytes} {
		if _, err := w.t.WriteAt(zeros, at); err != nil {
			return fmt.Errorf("writing at %d MiB: %w", at>>20, err)
		}
	}
	return w.t.Sync()
}

// body writes the image but for its head.
func (j Job) body(w *writer) error {
	end := j.Image.Size - card.TailBytes
	ranges := j.Image.Ranges
	if ranges == nil {
		ranges = []Range{{Start: 0, End: end}}
	}
	r, err := j.Image.open()
	if err != nil {
		return err
	}
	defer r.Close()
	total := int64(0)
	for _, g := range ranges {
		total += g.End - g.Start
	}
	// What was looked at before, and is written last, must still be what the rest belongs to.
	head := make([]byte, headBytes)
	if _, err := io.ReadFull(r, head); err != nil {
		return fmt.Errorf("reading the image: %w", early(err))
	}
	if !bytes.Equal(head, j.Image.head) {
		return j.Image.changed()
	}
	r.Reader = io.MultiReader(bytes.NewReader(head), r.Reader)
	at, done := int64(0), int64(0)
	for _, g := range ranges {
		if err := j.skip(w, r, at, g.Start); err != nil {
			return err
		}
		sum := sha256.New()
		for at = g.Start; at < g.End; {
			b := w.buf[:min(chunk, g.End-at)]
			if _, err := io.ReadFull(r, b); err != nil {
				return fmt.Errorf("reading the image at %d MiB: %w", at>>20, early(err))
			}
			sum.Write(b)
			// The head comes last, and the backup of the table goes elsewhere.
			from, to := max(headBytes-at, 0), min(int64(len(b)), end-at)
			if from < to {
				if err := w.write(b[from:to], at+from); err != nil {
					return err
				}
			}
			at += int64(len(b))
			done += int64(len(b))
			j.Progress(Writing, done, total)
		}
		if j.Image.Ranges != nil && !bytes.Equal(sum.Sum(nil), g.SHA256[:]) {
			return &ImageError{j.Image.Path, fmt.Sprintf("its blocks from %d MiB are not those of its block map", g.Start>>20)}
		}
	}
	if err := j.skip(w, r, at, j.Image.Size); err != nil {
		return err
	}
	if err := j.Image.same(r); err != nil {
		return err
	}
	return w.t.Sync()
}

// skip reads what the block map leaves out. A checksum vouches for the image and not for the map beside it: where a map left out
// something, the card would keep there what it held before. The head and the end are written in any case.
func (j Job) skip(w *writer, r io.Reader, at, to int64) error {
	for at < to {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		b := w.buf[:min(chunk, to-at)]
		if _, err := io.ReadFull(r, b); err != nil {
			return fmt.Errorf("reading the image at %d MiB: %w", at>>20, early(err))
		}
		n := int64(len(b))
		from, end := min(max(headBytes-at, 0), n), max(min(n, j.Image.Size-card.TailBytes-at), 0)
		if from < end && bytes.Count(b[from:end], []byte{0}) != int(end-from) {
			return &ImageError{j.Image.Path, fmt.Sprintf("its block map leaves out what it holds in the %d MiB from %d MiB; fetch both again", chunk>>20, at>>20)}
		}
		at += n
	}
	return nil
}

// early names what a file is that ends before it should.
func early(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends too early")
	}
	return err
}

// model writes the import area: the file, and then its header, or zeros where there is none.
func (j Job) model(w *writer) error {
	data, err := w.table.Lookup(card.Data)
	if err != nil {
		return err
	}
	small, err := j.Image.Table.Lookup(card.Data)
	if err != nil {
		return err
	}
	if data.Size == small.Size { // a card as small as the image: the file system reaches to the end
		return nil
	}
	header := make([]byte, card.AreaHeaderBytes)
	if m := j.Model; m != nil {
		area := card.Area{Name: m.Name, Length: m.Length, SHA256: m.SHA256}
		if header, err = area.Encode(); err != nil {
			return fmt.Errorf("the model cannot go onto the card: %w", err)
		}
		if err := j.copyModel(w, data.Start+area.Start(data.Size)); err != nil {
			return err
		}
	}
	if err := w.write(header, data.Start+data.Size-card.AreaHeaderBytes); err != nil {
		return err
	}
	return w.t.Sync()
}

func (j Job) copyModel(w *writer, start int64) error {
	f, err := os.Open(j.Model.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	for at := int64(0); at < j.Model.Length; {
		n := min(chunk, j.Model.Length-at)
		if _, err := io.ReadFull(f, w.buf[:n]); err != nil {
			return fmt.Errorf("reading the model: %w", early(err))
		}
		sum.Write(w.buf[:n])
		// Whole sectors, so that the last ones need no reading first; what is behind the file is zeros.
		whole := (n + card.SectorBytes - 1) / card.SectorBytes * card.SectorBytes
		clear(w.buf[n:whole])
		if err := w.write(w.buf[:whole], start+at); err != nil {
			return err
		}
		at += n
		j.Progress(Model, at, j.Model.Length)
	}
	if !bytes.Equal(sum.Sum(nil), j.Model.SHA256[:]) {
		return errors.New("the model has changed while it was copied")
	}
	return nil
}

// readBack compares the card with what was written to it.
func (j Job) readBack(w *writer) error {
	total := w.bytes()
	done := int64(0)
	for _, p := range w.pieces {
		if err := w.compare(p); err != nil {
			return err
		}
		done += p.n
		j.Progress(Verifying, done, total)
	}
	return nil
}

func (j Job) settings(w *writer) error {
	if j.Settings == nil {
		return nil
	}
	boot, err := w.table.Lookup(card.Boot)
	if err != nil {
		return err
	}
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if err := dropSettings(w.t, boot, j.Settings); err != nil {
		return fmt.Errorf("writing the settings to the boot partition: %w", err)
	}
	return nil
}

// finish writes the backup of the table, what lies behind the table, and the table, each only after the last is known to be
// there.
func (j Job) finish(w *writer) error {
	for _, part := range []struct {
		b  []byte
		at int64
	}{
		{w.table.Tail(), w.table.DiskSize() - card.TailBytes},
		{j.Image.head[card.HeadBytes:], card.HeadBytes},
		{w.table.Head(), 0},
	} {
		w.pieces = nil
		if err := w.write(part.b, part.at); err != nil {
			return err
		}
		if err := w.t.Sync(); err != nil {
			return err
		}
		if err := w.compare(w.pieces[0]); err != nil {
			return err
		}
	}
	return nil
}
