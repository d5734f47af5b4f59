package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"time"

	"assent.home.arpa/appliance/box"
	"assent.home.arpa/appliance/ipc"
)

// status asks the guard how the box is, over the socket that the gateway uses.
func (s *sim) status(ctx context.Context) (*ipc.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", box.At(s.config.Paths.Runtime).Guard)
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	client := ipc.NewClient(ipc.NewConn(conn), func(ipc.Message) {})
	defer client.Close()
	if _, err := client.Call(ctx, &ipc.Hello{Build: "assentsim"}, nil); err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	answer, err := client.Call(ctx, &ipc.StatusRequest{}, nil)
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	status, ok := answer.(*ipc.Status)
	if !ok {
		return nil, fmt.Errorf("guard: it answered with %T", answer)
	}
	return status, nil
}

// tellRecord says what somebody who starts a box must know of its record: where it is, by what it is known, and what is
// wrong with it.
func tellRecord(out io.Writer, dir string, s *ipc.Status) {
	fmt.Fprintf(out, "The audit is in %s; check it with: bin/assent audit verify %[1]s\n", dir)
	switch s.Trouble {
	case 0:
	case ipc.AuditDamaged:
		fmt.Fprintln(out, "IT IS DAMAGED, so the box does nothing but talk. To keep it aside and begin a new one, hold both buttons of the panel for 3 seconds.")
	case ipc.AuditFull:
		fmt.Fprintln(out, "IT IS FULL, so the box does nothing but talk. Make room on the disk, or give it more with audit.quota_mb.")
	default:
		fmt.Fprintln(out, "IT CANNOT BE WRITTEN, so the box does nothing but talk. See guard.log beside the state.")
	}
	if len(s.Root) > 0 {
		fmt.Fprintf(out, "Its root key, to be noted once: %s (a copy is checked against it with --root)\n", hex.EncodeToString(s.Root))
	}
	switch {
	case s.Unknown == 1:
		fmt.Fprintln(out, "The outcome of 1 call is UNKNOWN; the phone page tells which.")
	case s.Unknown > 1:
		fmt.Fprintf(out, "The outcomes of %d calls are UNKNOWN; the phone page tells which.\n", s.Unknown)
	}
}
