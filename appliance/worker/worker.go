// Package worker makes one call in a process of its own and ends.
//
// A worker is started for one connection from the courier. It reads one Job, with at most one connected descriptor; gives
// up every right that the call does not need, before the first byte of the answer; speaks TLS where the request says so;
// lets the capability's handler make the call; and returns one JobResult. It runs to the grant's deadline at the latest,
// and ends at once when the courier closes the connection.
//
// # What a handler cannot do
//
// The handler is the part that meets hostile bytes, so the worker does not take its word. The connection that it gets
// refuses any byte that is not the next one of the granted request (W6). Whether something was sent is what was seen to
// pass, not what the answer claims. A panic, an over-long body or a handler that does not return becomes a typed failure.
//
// # Confinement
//
// The unit that starts a worker is the first wall: no network, a system call filter, limits of memory and tasks. Landlock
// is the second, and the only one against a trick with the inherited descriptor: connect(2) with AF_UNSPEC dissolves a
// connection, and the socket belongs to the network namespace of the courier, which made it. Landlock's TCP rule refuses
// the next connect. It does not cover Multipath TCP, so the courier dials without. Where a kernel has no Landlock the
// worker says so in its log and relies on the first wall.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/deadline"
	"assent.home.arpa/appliance/grant"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
)

const (
	// jobTimeout bounds how long a courier may take to say what to do.
	jobTimeout = 10 * time.Second
	// margin is kept of the time until the deadline to report in: the courier waits no longer.
	margin = 500 * time.Millisecond
	// grace is how long a handler has to return after its time is over.
	grace = 250 * time.Millisecond
)

// errAborted ends a call because the courier closed the connection.
var errAborted = errors.New("worker: the courier gave up")

// Options configures the one call.
type Options struct {
	Class      capabilities.Class
	CourierUID uint32 // the only user that may give a job
	Clock      clock.Clock
	Handlers   []capabilities.Handler
	// Read and Write are directories that the handlers need. Everything else of the file system is closed.
	Read, Write []string
	Log         *slog.Logger
}

// Run makes the one call that arrives on conn, which it closes. It confines the whole process, for ever: the process must
// have no other business and end afterwards. The error is for the log; the courier has been told what it may know.
func Run(ctx context.Context, conn *net.UnixConn, o Options) error {
	defer conn.Close()
	if err := ipc.CheckPeer(conn, o.CourierUID); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(jobTimeout)); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	courier := ipc.NewConn(conn)
	id, m, file, err := courier.ReceiveFile()
	if err != nil {
		return fmt.Errorf("worker: job: %w", err)
	}
	if file != nil {
		defer file.Close()
	}
	job, ok := m.(*ipc.Job)
	if !ok {
		return fmt.Errorf("worker: job: %w: kind %d", ipc.ErrProtocol, m.Kind())
	}
	defer clear(job.Secret)
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	result, callErr := o.call(ctx, conn, job, file)
	if err := courier.Send(id, result); err != nil {
		return errors.Join(callErr, fmt.Errorf("worker: result: %w", err))
	}
	return callErr
}

// call prepares and makes the call. Whatever happens, there is a result.
func (o *Options) call(ctx context.Context, conn *net.UnixConn, job *ipc.Job, file *os.File) (*ipc.JobResult, error) {
	refused := &ipc.JobResult{Status: capabilities.Failed, Code: capabilities.CodeInternal}
	c, err := o.accept(job, file)
	if err != nil {
		return refused, err
	}
	left := c.claims.Deadline - o.Clock.Boot()
	ctx, cancel := deadline.With(ctx, o.Clock, c.claims.Deadline-min(margin, left/4))
	defer cancel(nil)
	if err := c.open(file); err != nil {
		return refused, err
	}
	defer c.close()
	if err := confine(o.Log, limits{read: o.Read, write: o.Write, time: left}); err != nil {
		return refused, err
	}
	go watch(conn, cancel)
	log := o.Log.With("inv", c.claims.Inv.String(), "revision", c.claims.Revision)
	result := c.run(ctx, log)
	result.Envelope.Retrieved = retrieved(o.Clock)
	return result, nil
}

// accept decides whether this worker is the one for the job.
func (o *Options) accept(job *ipc.Job, file *os.File) (*call, error) {
	claims, err := grant.Decode(job.Claims)
	switch {
	case err != nil:
		return nil, fmt.Errorf("worker: job: %w", err)
	case claims.Class != o.Class:
		return nil, fmt.Errorf("worker: a job of class %s came to a worker of class %s", claims.Class, o.Class)
	case (file != nil) != (claims.Request != nil):
		return nil, errors.New("worker: a job has a descriptor exactly if it has a request")
	case len(job.Secret) > 0 || claims.Request != nil && claims.Request.Credential != "":
		return nil, errors.New("worker: no adapter of this build has a credential slot")
	}
	for _, h := range o.Handlers {
		if h.Revision() == claims.Revision {
			return &call{claims: claims, handler: h, secret: job.Secret}, nil
		}
	}
	return nil, fmt.Errorf("worker: no handler of revision %q", claims.Revision)
}

// watch ends the call when the courier closes the connection, or says anything more, which it must not.
func watch(conn *net.UnixConn, cancel context.CancelCauseFunc) {
	conn.Read(make([]byte, 1))
	cancel(errAborted)
}

// retrieved is the time of the answer in Unix milliseconds, or 0 where the box has no date.
func retrieved(c clock.Clock) int64 {
	now, state := c.Wall()
	if state == clock.Unset {
		return 0
	}
	return now.UnixMilli()
}
