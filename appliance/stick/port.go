package stick

import (
	"context"
	"log/slog"

	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/stick/fat"
)

// Port is a port by which the box can pose as a stick, over a cable.
type Port interface {
	// Make returns an empty medium with one FAT volume that has room for files of so many bytes.
	Make(room int64) (Medium, error)
	// Show lets whoever is at the other end read the medium, which was closed.
	Show() error
	// Shown reports whether they still can, and have not ejected it.
	Shown() (bool, error)
	// Hide takes it off the cable and throws it away. There may be none.
	Hide() error
}

// RunPort serves a port to the guard on conn until the guard goes, or ctx ends. Then nothing is on the cable.
func RunPort(ctx context.Context, conn *ipc.Conn, port Port, log *slog.Logger) error {
	x := &exporter{port: port, files: map[uint32]*fat.File{}, log: log}
	defer func() {
		x.release()
		if err := port.Hide(); err != nil {
			log.Error("the cable was not let go of", "err", err)
		}
	}()
	return x.serve(ctx, conn, ipc.StickHello{Cable: true})
}

// onCable performs what only a port can do.
func (x *exporter) onCable(op *ipc.StickOp, reply *ipc.StickReply) (err error) {
	switch op.Verb {
	case ipc.StickMake:
		x.release()
		clear(x.files)
		if x.medium, err = x.port.Make(op.Room); err == nil {
			x.volume, err = fat.Open(x.medium, 0, x.medium.Size())
		}
	case ipc.StickShow:
		if x.medium != nil { // it is being written
			return &Error{Problem: ipc.StickRefused}
		}
		err = x.port.Show()
	case ipc.StickShown:
		reply.Yes, err = x.port.Shown()
	case ipc.StickHide:
		x.release()
		err = x.port.Hide()
	default:
		err = &Error{Problem: ipc.StickRefused}
	}
	return err
}
