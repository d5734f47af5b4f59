package worker

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"time"

	"assent.home.arpa/appliance/grant"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
)

// call is the one call of this process.
type call struct {
	claims  grant.Claims
	handler capabilities.Handler
	secret  []byte
	conn    net.Conn       // nil where nothing is sent
	roots   *x509.CertPool // nil where no TLS is spoken
}

// open takes the descriptor over and reads what the call needs of the file system, which is about to be closed.
func (c *call) open(file *os.File) error {
	if file == nil {
		return nil
	}
	if c.claims.Request.Scheme == "https" {
		roots, err := x509.SystemCertPool()
		if err != nil {
			return fmt.Errorf("worker: certificates of the system: %w", err)
		}
		c.roots = roots
	}
	conn, err := net.FileConn(file) // duplicates the descriptor
	if err != nil {
		return fmt.Errorf("worker: descriptor: %w", err)
	}
	file.Close()
	c.conn = conn
	return nil
}

func (c *call) close() {
	if c.conn != nil {
		c.conn.Close()
	}
}

// run lets the handler make the call and turns what it says into a result that can be relied on.
func (c *call) run(ctx context.Context, log *slog.Logger) *ipc.JobResult {
	var out *exactConn
	var conn net.Conn // stays a nil interface where nothing is sent
	if c.conn != nil {
		plain, err := c.secure(ctx)
		if err != nil {
			log.Warn("no secure connection", "error", err)
			return &ipc.JobResult{Status: capabilities.Failed, Code: endOr(ctx, capabilities.CodeUnreachable), Envelope: &ipc.Envelope{}}
		}
		// A handler that waits on the connection wakes up when its time is over.
		defer context.AfterFunc(ctx, func() { plain.SetDeadline(time.Unix(1, 0)) })()
		out = &exactConn{Conn: plain, want: c.claims.Request.Bytes}
		conn = out
	}
	answers := make(chan capabilities.Answer, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				// The panic's value may hold bytes of the answer, so the log gets the stack alone.
				log.Error("handler panicked", "stack", string(debug.Stack()))
				answers <- capabilities.Answer{Status: c.uncertain(out), Code: capabilities.CodeInternal}
			}
		}()
		answers <- c.handler.Run(ctx, c.claims.Args, c.claims.Request, c.secret, conn, c.claims.Body)
	}()
	select {
	case a := <-answers:
		return c.result(a, out)
	case <-ctx.Done():
	}
	select {
	case a := <-answers:
		return c.result(a, out)
	case <-time.After(grace):
		log.Error("handler did not return in time")
		return c.result(capabilities.Answer{Status: c.uncertain(out), Code: endOr(ctx, capabilities.CodeTimeout)}, out)
	}
}

// secure speaks TLS where the request says so. Nothing of the request has been sent when it fails.
func (c *call) secure(ctx context.Context) (net.Conn, error) {
	if c.claims.Request.Scheme != "https" {
		return c.conn, nil
	}
	t := tls.Client(c.conn, &tls.Config{
		ServerName: c.claims.Request.Host,
		RootCAs:    c.roots,
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
	})
	if err := t.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	return t, nil
}

// result checks an answer against what was seen to happen.
func (c *call) result(a capabilities.Answer, out *exactConn) *ipc.JobResult {
	r := &ipc.JobResult{Status: a.Status, Code: a.Code, Sent: out.started(), Envelope: &ipc.Envelope{
		HTTPStatus: a.HTTPStatus, Items: a.Items, Truncated: a.Truncated, AnswerDigest: a.Answer,
	}}
	if r.Sent {
		r.Envelope.RequestDigest = c.claims.Request.Digest()
	}
	switch {
	case a.Status != capabilities.Done && a.Status != capabilities.Failed && a.Status != capabilities.Unknown:
		r.Status, r.Code = c.uncertain(out), capabilities.CodeInternal
	case a.Status != capabilities.Done:
	case out != nil && !out.complete():
		// Done without having sent the whole request: whatever was done, it is not what was approved.
		r.Status, r.Code = c.uncertain(out), capabilities.CodeInternal
	case len(a.Body) > c.claims.Body || !json.Valid(a.Body):
		r.Status, r.Code = c.uncertain(out), capabilities.CodeBadResponse
	default:
		r.Body = a.Body
		r.Envelope.BodyDigest = sha256.Sum256(a.Body)
	}
	return r
}

// uncertain is the status of a call of which nobody knows how far it came. Only where it could not have done anything is it
// certain to have failed.
func (c *call) uncertain(out *exactConn) capabilities.Status {
	switch c.claims.Class {
	case capabilities.ClassNone:
		return capabilities.Failed
	case capabilities.ClassNet:
		if !out.started() {
			return capabilities.Failed
		}
	}
	return capabilities.Unknown
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
