package courier

import (
	"context"
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"assent.home.arpa/appliance/grant"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
)

// reportTime is how long a worker that was told to stop has to say how far it came.
const reportTime = time.Second

// errand is one call on its way.
type errand struct {
	claims grant.Claims
	job    ipc.Job
	begin  time.Duration // when the grant came, on the boot clock
}

// perform makes the call of an admitted grant and returns what to answer.
func (c *courier) perform(ctx context.Context, e *errand) ipc.Message {
	defer clear(e.job.Secret)
	log := c.Log.With("inv", e.claims.Inv.String(), "capability", string(e.claims.Capability), "class", e.claims.Class.String())
	slots := c.reads
	if e.claims.Receipt != [32]byte{} {
		slots = c.effects
	}
	if !slots.acquire(ctx) {
		return &ipc.Error{Code: endOr(ctx, capabilities.CodeInterrupted), Message: "the call ended while it waited for another; nothing was sent"}
	}
	defer slots.release()

	var out *net.TCPConn
	if e.claims.Request != nil {
		var err error
		if out, err = c.dial(ctx, e.claims.Request); err != nil {
			log.Warn("destination not connected", "error", err)
			return &ipc.Error{Code: endOr(ctx, capabilities.CodeUnreachable), Message: err.Error() + "; nothing was sent"}
		}
		defer hangUp(out)
	}
	worker, err := c.hand(ctx, e, out)
	if err != nil {
		log.Error("no worker took the job", "error", err)
		return &ipc.Error{Code: endOr(ctx, capabilities.CodeInternal), Message: "no worker could be started; nothing was sent"}
	}
	defer worker.Close()
	r := c.await(ctx, e, worker)
	r.Duration = int64(c.Clock.Boot() - e.begin)
	log.Info("call ended", "status", r.Status.String(), "code", string(r.Code), "sent", r.Sent, "duration", time.Duration(r.Duration))
	return r
}

// hand starts a worker and gives it the job and the connection. When it fails the worker does not have all of the job, and
// cannot act on a part of it.
func (c *courier) hand(ctx context.Context, e *errand, out *net.TCPConn) (*net.UnixConn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", c.Workers[e.claims.Class])
	if err != nil {
		return nil, err
	}
	worker := conn.(*net.UnixConn)
	defer context.AfterFunc(ctx, func() { worker.SetWriteDeadline(time.Unix(1, 0)) })()
	if err := give(worker, &e.job, out); err != nil {
		worker.Close()
		return nil, err
	}
	return worker, nil
}

func give(worker *net.UnixConn, job *ipc.Job, out *net.TCPConn) error {
	if out == nil {
		return ipc.NewConn(worker).Send(1, job)
	}
	f, err := out.File()
	if err != nil {
		return err
	}
	defer f.Close()
	return ipc.NewConn(worker).SendFile(1, job, f)
}

// await returns the worker's result, or what is to be thought of a worker that has none.
func (c *courier) await(ctx context.Context, e *errand, worker *net.UnixConn) *ipc.Result {
	// Told to stop, a worker sees the end of the stream and reports; one that does not is cut off.
	defer context.AfterFunc(ctx, func() {
		worker.CloseWrite()
		if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			worker.SetReadDeadline(time.Unix(1, 0)) // it has had its time
			return
		}
		worker.SetReadDeadline(time.Now().Add(reportTime))
	})()
	r := &ipc.Result{Inv: e.claims.Inv}
	_, m, err := ipc.NewConn(worker).Receive()
	answer, ok := m.(*ipc.JobResult)
	if err == nil && ok && sound(answer, e.claims.Body) {
		r.Status, r.Code, r.Sent, r.Envelope, r.Body = answer.Status, answer.Code, answer.Sent, answer.Envelope, answer.Body
		return r
	}
	code := capabilities.CodeInterrupted // it died
	if err == nil || errors.Is(err, ipc.ErrProtocol) {
		code = capabilities.CodeInternal // it broke the contract
	}
	r.Status, r.Code, r.Sent = capabilities.Unknown, endOr(ctx, code), e.claims.Class == capabilities.ClassNet
	if e.claims.Class == capabilities.ClassNone {
		r.Status = capabilities.Failed // it could not have done anything
	}
	return r
}

// sound reports whether a worker's result keeps the contract, as far as the courier looks at it: not at the body.
func sound(r *ipc.JobResult, bound int) bool {
	switch r.Status {
	case capabilities.Done, capabilities.Failed, capabilities.Unknown:
		return len(r.Body) <= bound
	}
	return false
}

// hangUp ends the connection for every process that holds it, so that no worker outlives its call on the network.
func hangUp(out *net.TCPConn) {
	if raw, err := out.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { unix.Shutdown(int(fd), unix.SHUT_RDWR) })
	}
	out.Close()
}

// endOr is the code for a call that ended with ctx, or code where ctx has not ended.
func endOr(ctx context.Context, code capabilities.Code) capabilities.Code {
	switch {
	case ctx.Err() == nil:
		return code
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return capabilities.CodeTimeout
	}
	return capabilities.CodeInterrupted
}
