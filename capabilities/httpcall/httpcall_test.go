package httpcall_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/httpcall"
)

const request = "GET /x HTTP/1.1\r\nHost: example.org\r\n\r\n"

func limits() httpcall.Limits {
	return httpcall.Limits{Body: 1000, Types: []string{"application/json"}}
}

// exchange makes one call to a peer that reads the request and then does what answer says.
func exchange(ctx context.Context, t *testing.T, answer func(net.Conn)) (resp *httpcall.Response, sent string, err error) {
	t.Helper()
	here, there := net.Pipe()
	seen := make(chan string, 1)
	var peer sync.WaitGroup
	peer.Go(func() {
		defer there.Close()
		buf := make([]byte, len(request))
		n, _ := io.ReadFull(there, buf)
		seen <- string(buf[:n])
		answer(there)
	})
	resp, err = httpcall.Exchange(ctx, here, []byte(request), limits())
	here.Close()
	peer.Wait()
	return resp, <-seen, err
}

func says(text string) func(net.Conn) {
	return func(c net.Conn) { io.WriteString(c, text) }
}

func TestAnswersThatAreTaken(t *testing.T) {
	for event, c := range map[string]struct{ answer, body string }{
		"with a length":         {"HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: 2\r\n\r\n{}", "{}"},
		"in chunks":             {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n", "{}"},
		"until the end":         {"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{}", "{}"},
		"identity encoding":     {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: identity\r\nContent-Length: 2\r\n\r\n{}", "{}"},
		"early hints before it": {"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", "{}"},
		"exactly the bound":     {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n" + strings.Repeat("1", 1000), strings.Repeat("1", 1000)},
	} {
		resp, seen, err := exchange(t.Context(), t, says(c.answer))
		if err != nil {
			t.Errorf("%s: %v", event, err)
			continue
		}
		want := &httpcall.Response{Body: []byte(c.body), Digest: sha256.Sum256([]byte(c.answer))}
		if diff := cmp.Diff(want, resp); diff != "" {
			t.Errorf("%s: %s", event, diff)
		}
		if seen != request {
			t.Errorf("%s: sent %q", event, seen)
		}
	}
}

func TestAnswersThatAreNot(t *testing.T) {
	ok := "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	z.Write(make([]byte, 1<<20))
	z.Close()
	for event, c := range map[string]struct {
		answer string
		code   capabilities.Code
		status uint16
	}{
		"a redirect":               {"HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1/\r\nContent-Length: 0\r\n\r\n", capabilities.CodeRedirect, 302},
		"a redirect to a file":     {"HTTP/1.1 301 Moved\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n", capabilities.CodeRedirect, 301},
		"not modified":             {"HTTP/1.1 304 Not Modified\r\n\r\n", capabilities.CodeRedirect, 304},
		"not found":                {"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", capabilities.CodeRemoteError, 404},
		"a server error":           {"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", capabilities.CodeRemoteError, 503},
		"no content":               {"HTTP/1.1 204 No Content\r\n\r\n", capabilities.CodeBadResponse, 204},
		"a page":                   {"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\n{}", capabilities.CodeBadResponse, 200},
		"no type":                  {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", capabilities.CodeBadResponse, 200},
		"a gzip bomb":              {ok + "Content-Encoding: gzip\r\nContent-Length: " + fmt.Sprint(bomb.Len()) + "\r\n\r\n" + bomb.String(), capabilities.CodeBadResponse, 200},
		"encoded twice":            {ok + "Content-Encoding: identity\r\nContent-Encoding: br\r\nContent-Length: 2\r\n\r\n{}", capabilities.CodeBadResponse, 200},
		"an unknown transfer code": {ok + "Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", capabilities.CodeBadResponse, 0},
		"a length over the bound":  {ok + "Content-Length: 1001\r\n\r\n" + strings.Repeat("1", 1001), capabilities.CodeBadResponse, 200},
		"10 GB announced":          {ok + "Content-Length: 10737418240\r\n\r\n" + strings.Repeat("1", 4096), capabilities.CodeBadResponse, 200},
		"two lengths":              {ok + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ", capabilities.CodeBadResponse, 0},
		"chunks over the bound":    {ok + "Transfer-Encoding: chunked\r\n\r\n3e9\r\n" + strings.Repeat("1", 1001) + "\r\n0\r\n\r\n", capabilities.CodeBadResponse, 200},
		"endless chunk framing":    {ok + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1;"+strings.Repeat("x", 3000)+"\r\n1\r\n", 100), capabilities.CodeBadResponse, 200},
		"cut off":                  {ok + "Content-Length: 20\r\n\r\n{}", capabilities.CodeBadResponse, 200},
		"cut off in a chunk":       {ok + "Transfer-Encoding: chunked\r\n\r\n5\r\n{}", capabilities.CodeBadResponse, 200},
		"an endless header":        {ok + strings.Repeat("X: y\r\n", 20000) + "Content-Length: 2\r\n\r\n{}", capabilities.CodeBadResponse, 0},
		"one endless line":         {"HTTP/1.1 200 " + strings.Repeat("x", 100000) + "\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", capabilities.CodeBadResponse, 0},
		"only early hints":         {strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 100), capabilities.CodeBadResponse, 0},
		"another protocol":         {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", capabilities.CodeBadResponse, 0},
		"HTTP/2":                   {"HTTP/2.0 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", capabilities.CodeBadResponse, 0},
		"no HTTP at all":           {"SSH-2.0-x\r\n", capabilities.CodeBadResponse, 0},
		"silence":                  {"", capabilities.CodeBadResponse, 0},
	} {
		_, _, err := exchange(t.Context(), t, says(c.answer))
		var e *httpcall.Error
		if !errors.As(err, &e) || e.Code != c.code || e.Status != c.status || !e.Sent {
			t.Errorf("%s: got %#v, want %s, status %d, sent", event, err, c.code, c.status)
		}
	}
}

func TestSlowAnswerEndsAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 20*time.Second + time.Millisecond // between two bytes
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		begin, last := time.Now(), time.Duration(0)
		_, _, err := exchange(ctx, t, func(c net.Conn) {
			for _, b := range []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n") {
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
				last = time.Since(begin)
				time.Sleep(time.Second)
			}
		})
		var e *httpcall.Error
		if !errors.As(err, &e) || e.Code != capabilities.CodeTimeout || !e.Sent {
			t.Fatalf("got %#v", err)
		}
		if last != 20*time.Second {
			t.Fatalf("bytes were read until %v", last)
		}
	})
}

func TestCancelIsNotATimeout(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, _, err := exchange(ctx, t, func(c net.Conn) {
		cancel()
		io.Copy(io.Discard, c)
	})
	var e *httpcall.Error
	if !errors.As(err, &e) || e.Code != capabilities.CodeInterrupted || !e.Sent {
		t.Fatalf("got %#v", err)
	}
}

func TestNothingIsSentAfterTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	here, there := net.Pipe()
	defer there.Close()
	_, err := httpcall.Exchange(ctx, here, []byte(request), limits())
	here.Close()
	var e *httpcall.Error
	if !errors.As(err, &e) || e.Sent {
		t.Fatalf("got %#v", err)
	}
	if b, _ := io.ReadAll(there); len(b) != 0 {
		t.Fatalf("sent %q", b)
	}
}

// C22: without an answer, a call that changes something is unknown; one that reads has failed.
func TestNoAnswerIsUnknownOnlyForEffects(t *testing.T) {
	for event, c := range map[string]struct {
		err    httpcall.Error
		effect capabilities.Effect
		want   capabilities.Status
	}{
		"a read without an answer":   {httpcall.Error{Sent: true}, capabilities.Read, capabilities.Failed},
		"a write without an answer":  {httpcall.Error{Sent: true}, capabilities.Write, capabilities.Unknown},
		"a reversible one, too":      {httpcall.Error{Sent: true}, capabilities.WriteReversible, capabilities.Unknown},
		"an effect nobody declared":  {httpcall.Error{Sent: true}, 0, capabilities.Unknown},
		"a write that was not sent":  {httpcall.Error{}, capabilities.Write, capabilities.Failed},
		"a write that was refused":   {httpcall.Error{Sent: true, Status: 403}, capabilities.Write, capabilities.Failed},
		"a write to a failing peer":  {httpcall.Error{Sent: true, Status: 500}, capabilities.Write, capabilities.Unknown},
		"a write with an odd answer": {httpcall.Error{Sent: true, Status: 200}, capabilities.Write, capabilities.Unknown},
		"a read that was redirected": {httpcall.Error{Sent: true, Status: 302}, capabilities.Read, capabilities.Failed},
	} {
		if got := c.err.Answer(c.effect); got.Status != c.want || got.Sent != c.err.Sent {
			t.Errorf("%s: %s", event, got.Status)
		}
	}
}
