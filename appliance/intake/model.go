package intake

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"assent.home.arpa/image/card"
)

// chunk is how much is copied at once.
const chunk = 1 << 20

// Model takes a model out of the import area.
type Model struct {
	Partition File // data
	Models    Dir  // where models go, in Partition's file system
	// Grow makes the file system reach to a place in the partition, in bytes, or nearly so where ext4 cannot use the rest.
	Grow func(to int64) error
	// Progress is told while bytes are copied; may be nil.
	Progress func(done, total int64)
}

// Taken is what became of the import area.
type Taken struct {
	Area    card.Area // zero: nothing waited
	Problem string    // for people: why what waited was not taken; empty where it was
}

// Take takes the model that waits, if one does, and lets the file system have the whole partition. What is wrong for good is a
// Problem, and the area is wiped; an error is what may be better at the next start, and the area still waits.
//
// The area is wiped only after the copy and its name are durable, and the file system reaches over it only after that: whenever
// power fails, the next start finds either the whole file waiting or the whole file in its place.
func (m Model) Take(ctx context.Context) (Taken, error) {
	size, err := m.Partition.Size()
	if err != nil {
		return Taken{}, err
	}
	fileSystem, err := card.FileSystemSize(m.Partition)
	if err != nil {
		return Taken{}, err
	}
	area, err := card.FindArea(m.Partition, size, fileSystem)
	var damaged *card.AreaError
	switch {
	case errors.Is(err, card.ErrNoArea):
		return Taken{}, m.Grow(size)
	case errors.As(err, &damaged):
		return Taken{Problem: fmt.Sprintf("The model on the card cannot be taken: %s. Flash the card again.", plain(err))}, m.finish(size)
	case err != nil:
		return Taken{}, err
	}
	taken := Taken{Area: area}
	start := area.Start(size)
	if err := m.Grow(start); err != nil {
		return Taken{}, err
	}
	err = m.copy(ctx, area, start)
	var wrong *sumError
	switch {
	case errors.As(err, &wrong):
		taken.Problem = fmt.Sprintf("The model %s on the card is damaged: its checksum is wrong. It was not taken. Flash the card again.", area.Name)
	case errors.Is(err, syscall.ENOSPC):
		taken.Problem = fmt.Sprintf("There is no room for the model %s (%d MB). It was not taken. Flash a larger card.", area.Name, area.Length>>20)
	case err != nil:
		return taken, err
	}
	return taken, m.finish(size)
}

// finish wipes the header and gives its place to the file system.
func (m Model) finish(size int64) error {
	if _, err := m.Partition.WriteAt(make([]byte, card.AreaHeaderBytes), size-card.AreaHeaderBytes); err != nil {
		return fmt.Errorf("wiping the import area: %w", err)
	}
	if err := m.Partition.Sync(); err != nil {
		return fmt.Errorf("wiping the import area: %w", err)
	}
	return m.Grow(size)
}

// sumError says that what waits is not what was put there.
type sumError struct{}

func (*sumError) Error() string { return "wrong checksum" }

// copy makes the file durable under its name. The error is a *sumError where the source is damaged.
func (m Model) copy(ctx context.Context, a card.Area, start int64) error {
	name := a.Name + ".gguf"
	if sum, err := m.sumOf(ctx, name, a.Length); err != nil {
		return err
	} else if sum == a.SHA256 {
		return errors.Join(discard(m.Models), m.Models.Sync()) // power failed after the last start had copied it
	}
	return replace(m.Models, name, func(f File) error {
		h := sha256.New()
		err := pump(ctx, io.NewSectionReader(m.Partition, start, a.Length), a.Length, func(b []byte, at int64) error {
			h.Write(b)
			if m.Progress != nil {
				m.Progress(at, a.Length)
			}
			_, err := f.WriteAt(b, at)
			return err
		})
		if err != nil {
			return err
		}
		if !bytes.Equal(h.Sum(nil), a.SHA256[:]) {
			return &sumError{}
		}
		// The original goes: what the card has kept is read before.
		if err := f.Sync(); err != nil {
			return err
		}
		if sum, err := checksum(ctx, f, a.Length); err != nil {
			return err
		} else if sum != a.SHA256 {
			return errors.New("the card did not keep what was written to it")
		}
		return nil
	})
}

// sumOf is the checksum of a file that is there already, zero where there is none of that length.
func (m Model) sumOf(ctx context.Context, name string, length int64) ([sha256.Size]byte, error) {
	f, err := m.Models.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return [sha256.Size]byte{}, nil
	}
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	defer f.Close()
	if n, err := f.Size(); err != nil || n != length {
		return [sha256.Size]byte{}, err
	}
	return checksum(ctx, f, length)
}

func checksum(ctx context.Context, f io.ReaderAt, length int64) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	err = pump(ctx, io.NewSectionReader(f, 0, length), length, func(b []byte, _ int64) error {
		h.Write(b)
		return nil
	})
	h.Sum(sum[:0])
	return sum, err
}

// pump passes length bytes of r on, a chunk at a time, until ctx ends.
func pump(ctx context.Context, r io.Reader, length int64, to func(b []byte, at int64) error) error {
	buf := make([]byte, chunk)
	for at := int64(0); at < length; {
		if err := ctx.Err(); err != nil {
			return err
		}
		b := buf[:min(chunk, length-at)]
		if _, err := io.ReadFull(r, b); err != nil {
			return fmt.Errorf("reading the model: %w", err)
		}
		if err := to(b, at); err != nil {
			return err
		}
		at += int64(len(b))
	}
	return nil
}
