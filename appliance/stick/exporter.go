package stick

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"syscall"

	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/stick/fat"
)

// maxFiles bounds the files that are written at the same time: a copy's view has a handful.
const maxFiles = 16

// Medium is what an exporter has.
type Medium interface {
	fat.Medium
	Size() int64
	Close() error
}

// Run serves the medium that open opens to the guard on conn until the guard goes, or ctx ends. What is wrong with the medium
// is the guard's to show, so it is no error of Run's.
func Run(ctx context.Context, conn *ipc.Conn, open func() (Medium, error), log *slog.Logger) error {
	x := &exporter{files: map[uint32]*fat.File{}, log: log}
	hello := x.open(open)
	defer x.release()
	return x.serve(ctx, conn, hello)
}

// serve says hello, and does as the guard asks until it goes.
func (x *exporter) serve(ctx context.Context, conn *ipc.Conn, hello ipc.StickHello) error {
	defer conn.Close()
	if err := conn.Send(0, &hello); err != nil {
		return err
	}
	// The guard sends one operation at a time; a peer that does not is not the guard.
	turn := make(chan struct{}, 1)
	err := ipc.Serve(ctx, conn, func(_ context.Context, m ipc.Message, reply func(ipc.Message) error) {
		turn <- struct{}{}
		defer func() { <-turn }()
		answer := &ipc.StickReply{Problem: ipc.StickRefused}
		if op, ok := m.(*ipc.StickOp); ok {
			answer = x.do(op)
		}
		if err := reply(answer); err != nil {
			x.log.Warn("answer not delivered", "err", err)
		}
	})
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("stick: guard: %w", err)
}

type exporter struct {
	port   Port   // nil: there is a stick
	medium Medium // nil once it is given back
	volume *fat.Volume
	files  map[uint32]*fat.File
	log    *slog.Logger
}

// open finds the volume, and says what a guard is told of it.
func (x *exporter) open(open func() (Medium, error)) (hello ipc.StickHello) {
	fail := func(err error) {
		var e *Error
		if !errors.As(err, &e) {
			e = problem(err)
		}
		x.log.Warn("the stick takes no copy", "problem", e.Problem, "err", e.Err)
		hello.Problem = e.Problem
	}
	err := guarded(func() error {
		m, err := open()
		if err != nil {
			return err
		}
		x.medium, hello.Size = m, m.Size()
		x.volume, err = find(m, m.Size())
		if err != nil {
			return err
		}
		label := x.volume.Label()
		hello.Label = label[:min(len(label), ipc.MaxStickLabel)]
		return nil
	})
	if err != nil {
		x.volume = nil
		fail(err)
		return hello
	}
	x.log.Info("stick", "size", hello.Size, "kind", x.volume.String())
	return hello
}

// release gives a medium back that nothing is expected of any more.
func (x *exporter) release() {
	if err := x.giveBack(); err != nil {
		x.log.Warn("the stick was not closed", "err", err)
	}
}

// giveBack gives the medium back. What the kernel could not write until then it says last.
func (x *exporter) giveBack() error {
	m := x.medium
	x.medium, x.volume = nil, nil
	if m == nil {
		return nil
	}
	return m.Close()
}

// do performs one operation.
func (x *exporter) do(op *ipc.StickOp) *ipc.StickReply {
	reply := &ipc.StickReply{}
	perform := x.perform
	switch {
	case op.Verb >= ipc.StickMake && x.port != nil:
		perform = x.onCable
	case x.volume == nil:
		return &ipc.StickReply{Problem: ipc.StickUnreadable}
	}
	err := guarded(func() error { return perform(op, reply) })
	if err == nil {
		return reply
	}
	var e *Error
	if !errors.As(err, &e) {
		e = problem(err)
	}
	if e.Problem != ipc.StickExists {
		x.log.Warn("operation failed", "verb", op.Verb, "problem", e.Problem, "err", e.Err)
	}
	return &ipc.StickReply{Problem: e.Problem}
}

func (x *exporter) perform(op *ipc.StickOp, reply *ipc.StickReply) (err error) {
	switch v := x.volume; op.Verb {
	case ipc.StickFree:
		reply.Size, err = v.Free()
	case ipc.StickStat:
		reply.Yes, err = v.Exists(op.Name)
	case ipc.StickMkdir:
		err = v.Mkdir(op.Name)
	case ipc.StickCreate, ipc.StickWrite, ipc.StickClose:
		err = x.file(op)
	case ipc.StickRead:
		if op.Size > ipc.MaxStickChunk {
			return &Error{Problem: ipc.StickRefused}
		}
		b := make([]byte, op.Size)
		n, err := v.ReadAt(op.Name, b, op.Offset)
		reply.Data = b[:n]
		if err != io.EOF {
			return err
		}
	case ipc.StickRename:
		err = v.Rename(op.Name, op.To)
	case ipc.StickRemove:
		for h, f := range x.files {
			delete(x.files, h)
			err = errors.Join(err, f.Discard())
		}
		err = errors.Join(err, v.RemoveAll(op.Name))
	case ipc.StickSync:
		err = x.medium.Sync()
	case ipc.StickEnd:
		err = errors.Join(v.Close(), x.giveBack())
	default:
		err = &Error{Problem: ipc.StickRefused}
	}
	return err
}

// file does what is done with a file that is being written.
func (x *exporter) file(op *ipc.StickOp) error {
	f := x.files[op.Handle]
	if (op.Verb == ipc.StickCreate) != (f == nil) || len(x.files) >= maxFiles && f == nil || len(op.Data) > ipc.MaxStickChunk {
		return &Error{Problem: ipc.StickRefused}
	}
	switch op.Verb {
	case ipc.StickWrite:
		_, err := f.Write(op.Data)
		return err
	case ipc.StickClose:
		delete(x.files, op.Handle)
		return f.Close()
	}
	f, err := x.volume.Create(op.Name)
	if err == nil {
		x.files[op.Handle] = f
	}
	return err
}

// guarded turns a panic over a stick's bytes into what it is: a stick that contradicts itself in a way nobody thought of.
func guarded(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Error{ipc.StickDamaged, fmt.Errorf("internal error: %v", p)}
		}
	}()
	return do()
}

// problem says what sort of thing an error is.
func problem(err error) *Error {
	is := func(targets ...error) bool {
		for _, t := range targets {
			if errors.Is(err, t) {
				return true
			}
		}
		return false
	}
	p := ipc.StickUnreadable
	switch {
	case is(fat.ErrFull, syscall.ENOSPC):
		p = ipc.StickFull
	case is(fat.ErrDamaged):
		p = ipc.StickDamaged
	case is(fat.ErrUnsupported, fat.ErrNotFAT):
		p = ipc.StickUnsupported
	case is(syscall.EROFS, syscall.EPERM, syscall.EACCES):
		p = ipc.StickReadOnly
	case is(syscall.EBUSY):
		p = ipc.StickBusy
	case is(fs.ErrExist):
		p = ipc.StickExists
	case is(fs.ErrNotExist):
		p = ipc.StickMissing
	case is(fs.ErrInvalid, fs.ErrClosed):
		p = ipc.StickRefused
	}
	return &Error{p, err}
}
