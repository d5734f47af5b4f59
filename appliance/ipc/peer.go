package ipc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// PeerError says that a process of the wrong user connected.
type PeerError struct {
	UID     uint32
	Allowed []uint32
}

func (e *PeerError) Error() string {
	return fmt.Sprintf("ipc: peer has uid %d, only %v may connect here", e.UID, e.Allowed)
}

// CheckPeer demands that the process at the other end of a unix socket belonged to one of the allowed users when it
// connected (SO_PEERCRED, unix(7)). No allowed users means that nobody may.
func CheckPeer(c net.Conn, allowed ...uint32) error {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return errors.New("ipc: peer credentials need a unix socket")
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return fmt.Errorf("ipc: peer credentials: %w", err)
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return fmt.Errorf("ipc: peer credentials: %w", err)
	}
	if credErr != nil {
		return fmt.Errorf("ipc: peer credentials: %w", credErr)
	}
	if !slices.Contains(allowed, cred.Uid) {
		return &PeerError{UID: cred.Uid, Allowed: allowed}
	}
	return nil
}

// Listen makes a unix socket that only its owner and group can reach. A socket file that nobody listens on any more is
// replaced; one that somebody does is left alone.
func Listen(path string) (*net.UnixListener, error) {
	if c, err := net.Dial("unix", path); err == nil {
		c.Close()
		return nil, fmt.Errorf("ipc: %s: another process listens there; stop it first", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("ipc: stale socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("ipc: listen: %w", err)
	}
	if err := os.Chmod(path, 0o660); err != nil {
		l.Close()
		return nil, fmt.Errorf("ipc: listen: %w", err)
	}
	return l, nil
}

// SendFile writes one message with a descriptor beside it (SCM_RIGHTS, unix(7)). The descriptor stays open here. Like
// Send, it closes a stream that fails; unlike Send, it leaves the write deadline to the caller.
func (c *Conn) SendFile(id uint64, m Message, f *os.File) error {
	u, ok := c.net.(*net.UnixConn)
	if !ok {
		return errors.New("ipc: a descriptor needs a unix socket")
	}
	b, err := c.Encode(id, m)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n, _, err := u.WriteMsgUnix(b, unix.UnixRights(int(f.Fd())), nil)
	if err == nil && n < len(b) {
		_, err = u.Write(b[n:])
	}
	if err != nil {
		c.net.Close()
		return fmt.Errorf("ipc: send descriptor: %w", err)
	}
	return nil
}

// ReceiveFile reads the next message and the descriptor that came with it, or nil where none did. More than one is a
// protocol violation, and all are closed.
func (c *Conn) ReceiveFile() (uint64, Message, *os.File, error) {
	u, ok := c.net.(*net.UnixConn)
	if !ok {
		return 0, nil, nil, errors.New("ipc: a descriptor needs a unix socket")
	}
	var first [1]byte
	oob := make([]byte, unix.CmsgSpace(4*4))
	n, oobn, flags, _, err := u.ReadMsgUnix(first[:], oob)
	if err != nil {
		return 0, nil, nil, fmt.Errorf("ipc: receive descriptor: %w", err)
	}
	files, err := rights(oob[:oobn])
	if err == nil && (n != 1 || flags&unix.MSG_CTRUNC != 0 || len(files) > 1) {
		err = fmt.Errorf("%w: %d descriptors", ErrProtocol, len(files))
	}
	if err != nil {
		closeAll(files)
		return 0, nil, nil, err
	}
	id, m, err := c.receive(io.MultiReader(bytes.NewReader(first[:]), c.net))
	if err != nil {
		closeAll(files)
		return 0, nil, nil, err
	}
	if len(files) == 0 {
		return id, m, nil, nil
	}
	return id, m, files[0], nil
}

func rights(oob []byte) ([]*os.File, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	msgs, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("ipc: receive descriptor: %w", err)
	}
	var files []*os.File
	for i := range msgs {
		fds, err := syscall.ParseUnixRights(&msgs[i])
		if err != nil {
			continue // not SCM_RIGHTS
		}
		for _, fd := range fds {
			syscall.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
