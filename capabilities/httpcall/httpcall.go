// Package httpcall makes one HTTP/1.1 exchange (RFC 9112) over a connection that somebody else opened.
//
// It writes the given bytes and no others, so that what is sent is what was shown. It reads one answer inside bounds and
// hands back its body; it follows nothing, decompresses nothing and keeps no connection. An answer that is too long, of the
// wrong type, compressed or cut off is a failure as a whole, never a shorter answer.
//
// # When an answer does not come
//
// Once a byte of the request may have left, a missing or broken answer to a call with an effect means that nobody knows
// whether it happened: Unknown. A call that only reads has no effect that could be in doubt, and to have no answer is to have failed.
// Error.Answer makes that distinction; nothing is ever sent again.
package httpcall

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"assent.home.arpa/capabilities"
)

// MaxHeader bounds the status line and header of an answer, in bytes.
const MaxHeader = 32 << 10

// maxInformational bounds the 1xx answers that may come before the real one (RFC 9110 section 15.2).
const maxInformational = 4

// Limits says what answer is acceptable.
type Limits struct {
	Body  int      // bytes of body
	Types []string // media types, in lower case without parameters
}

// Response is an answer of status 200 within its limits.
type Response struct {
	Body   []byte
	Digest [32]byte // SHA-256 of every byte that was read
}

// Error says why there is no Response.
type Error struct {
	Code    capabilities.Code
	Problem string
	Sent    bool     // a byte of the request may have left
	Status  uint16   // HTTP status, or 0
	Digest  [32]byte // SHA-256 of every byte that was read
}

func (e *Error) Error() string { return "httpcall: " + e.Problem }

// Answer turns e into what a capability with this effect reports.
func (e *Error) Answer(effect capabilities.Effect) capabilities.Answer {
	a := capabilities.Answer{Status: capabilities.Failed, Code: e.Code, Sent: e.Sent, HTTPStatus: e.Status, Answer: e.Digest}
	// Only a redirect or a refusal says for certain that nothing was done.
	refused := e.Status >= 300 && e.Status < 500
	if e.Sent && !refused && effect != capabilities.Read {
		a.Status = capabilities.Unknown
	}
	return a
}

// Exchange sends request over conn and reads one answer. It returns when ctx ends, at the latest; afterwards conn is of no
// further use. Every failure is an *Error.
func Exchange(ctx context.Context, conn net.Conn, request []byte, l Limits) (*Response, error) {
	if ctx.Err() != nil {
		return nil, &Error{Code: endCode(ctx), Problem: "there was no time left to send"}
	}
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })()
	in := &meter{r: conn, left: MaxHeader, hash: sha256.New()}
	fail := func(code capabilities.Code, status int, format string, args ...any) (*Response, error) {
		if ctx.Err() != nil {
			code = endCode(ctx)
		}
		return nil, &Error{Code: code, Problem: fmt.Sprintf(format, args...), Sent: true, Status: uint16(status), Digest: in.digest()}
	}
	if _, err := conn.Write(request); err != nil {
		return fail(capabilities.CodeRemoteError, 0, "the connection broke while sending: %v", err)
	}
	resp, err := readHeader(bufio.NewReader(in))
	if err != nil {
		return fail(capabilities.CodeBadResponse, 0, "no well-formed answer came: %v", err)
	}
	defer resp.Body.Close()
	if code, problem := judge(resp, l); problem != "" {
		return fail(code, resp.StatusCode, "%s", problem)
	}
	in.left += 2*l.Body + MaxHeader // a chunked body has framing of its own
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(l.Body)+1))
	switch {
	case err != nil:
		return fail(capabilities.CodeBadResponse, resp.StatusCode, "the answer broke off: %v", err)
	case len(body) > l.Body:
		return fail(capabilities.CodeBadResponse, resp.StatusCode, "the answer is over %d bytes", l.Body)
	}
	return &Response{Body: body, Digest: in.digest()}, nil
}

func readHeader(r *bufio.Reader) (*http.Response, error) {
	for range maxInformational + 1 {
		resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodGet})
		if err != nil {
			return nil, err
		}
		if resp.ProtoMajor != 1 {
			return nil, errors.New("it is not HTTP/1")
		}
		if resp.StatusCode >= 200 {
			return resp, nil
		}
		if resp.StatusCode == http.StatusSwitchingProtocols {
			return nil, errors.New("it switches protocols")
		}
	}
	return nil, errors.New("too many informational answers")
}

// judge says what is wrong with an answer by its header alone; an empty problem means nothing.
func judge(resp *http.Response, l Limits) (capabilities.Code, string) {
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return capabilities.CodeRedirect, fmt.Sprintf("status %d: nothing is followed", resp.StatusCode)
	case resp.StatusCode >= 400:
		return capabilities.CodeRemoteError, fmt.Sprintf("status %d", resp.StatusCode)
	case resp.StatusCode != http.StatusOK:
		return capabilities.CodeBadResponse, fmt.Sprintf("status %d", resp.StatusCode)
	case resp.ContentLength > int64(l.Body):
		return capabilities.CodeBadResponse, fmt.Sprintf("the answer is over %d bytes", l.Body)
	}
	if enc := resp.Header.Values("Content-Encoding"); len(enc) > 0 && !strings.EqualFold(strings.Join(enc, ","), "identity") {
		return capabilities.CodeBadResponse, "the answer is compressed, which was not asked for"
	}
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || !slices.Contains(l.Types, media) {
		return capabilities.CodeBadResponse, "the answer is not of the expected type"
	}
	return "", ""
}

// endCode says why ctx is over.
func endCode(ctx context.Context) capabilities.Code {
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return capabilities.CodeTimeout
	}
	return capabilities.CodeInterrupted
}

var errTooLong = errors.New("it is too long")

// meter bounds and hashes what is read. Unlike io.LimitedReader it fails at the bound: a cut answer must not look whole.
type meter struct {
	r    io.Reader
	left int
	hash hash.Hash
}

func (m *meter) Read(p []byte) (int, error) {
	if m.left == 0 {
		return 0, errTooLong
	}
	n, err := m.r.Read(p[:min(len(p), m.left)])
	m.left -= n
	m.hash.Write(p[:n])
	return n, err
}

func (m *meter) digest() [32]byte { return [32]byte(m.hash.Sum(nil)) }
