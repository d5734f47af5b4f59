package worker_test

import (
	"crypto/sha256"
	"io"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/grant"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
)

func TestResultHoldsTheEvidence(t *testing.T) {
	f := start(t, capabilities.ClassNet, os.Getuid())
	c := f.claims("echo/1")
	before := time.Now().UnixMilli()
	got, sent := f.call(c)
	if sent != string(c.Request.Bytes) {
		t.Errorf("sent %q", sent)
	}
	if got.Envelope == nil || got.Envelope.Retrieved < before {
		t.Fatalf("%+v", got)
	}
	want := &ipc.JobResult{Status: capabilities.Done, Sent: true, Body: []byte(`"hello"`), Envelope: &ipc.Envelope{
		Items: 1, Retrieved: got.Envelope.Retrieved, RequestDigest: c.Request.Digest(), BodyDigest: sha256.Sum256([]byte(`"hello"`)),
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestCallWithoutAConnection(t *testing.T) {
	f := start(t, capabilities.ClassNone, os.Getuid())
	got, _ := f.call(f.claims("echo/1"))
	if got.Status != capabilities.Done || got.Sent || string(got.Body) != `{"a":1}` || got.Envelope.RequestDigest != [32]byte{} {
		t.Errorf("%+v", got)
	}
}

// C50 and W6: a handler's word is not taken for what it sent, and it cannot send anything else.
func TestLyingHandlers(t *testing.T) {
	f := start(t, capabilities.ClassNet, os.Getuid())
	whole := string(f.claims("").Request.Bytes)
	for revision, want := range map[string]struct {
		status capabilities.Status
		code   capabilities.Code
		sent   string
	}{
		"silent/1":      {capabilities.Failed, capabilities.CodeInternal, ""},
		"other-bytes/1": {capabilities.Failed, capabilities.CodeInternal, ""},
		"more-bytes/1":  {capabilities.Failed, capabilities.CodeInternal, ""},
		"twice/1":       {capabilities.Done, "", whole},
		"panics/1":      {capabilities.Failed, capabilities.CodeInternal, ""},
		"panics-late/1": {capabilities.Unknown, capabilities.CodeInternal, whole[:1]},
		"claims-sent/1": {capabilities.Failed, capabilities.CodeUnreachable, ""},
		"long/1":        {capabilities.Unknown, capabilities.CodeBadResponse, whole},
		"not-json/1":    {capabilities.Unknown, capabilities.CodeBadResponse, whole},
		"claims-no/1":   {capabilities.Unknown, capabilities.CodeInternal, whole},
		"nothing/1":     {capabilities.Unknown, capabilities.CodeInternal, whole},
	} {
		got, sent := f.call(f.claims(revision))
		if got.Status != want.status || got.Code != want.code || got.Sent != (want.sent != "") || sent != want.sent {
			t.Errorf("%s: %+v, sent %q", revision, got, sent)
		}
		if got.Status != capabilities.Done && got.Body != nil {
			t.Errorf("%s: body %q", revision, got.Body)
		}
		if revision == "twice/1" && string(got.Body) != `"sent once"` {
			t.Errorf("%s: %s", revision, got.Body)
		}
		if zero := got.Envelope.RequestDigest == [32]byte{}; zero != (want.sent == "") {
			t.Errorf("%s: request digest %x", revision, got.Envelope.RequestDigest)
		}
	}
}

// C22: what may have had an effect is unknown, what cannot have had one has failed.
func TestUncertaintyFollowsTheClass(t *testing.T) {
	for class, want := range map[capabilities.Class]capabilities.Status{
		capabilities.ClassNone: capabilities.Failed, capabilities.ClassFiles: capabilities.Unknown, capabilities.ClassLocal: capabilities.Unknown,
	} {
		f := start(t, class, os.Getuid())
		if got, _ := f.call(f.claims("panics/1")); got.Status != want || got.Sent {
			t.Errorf("class %s: %+v", class, got)
		}
	}
}

// The worker reports before the deadline, whatever its handler does.
func TestHandlersThatDoNotReturn(t *testing.T) {
	for revision, want := range map[string]capabilities.Status{"deaf/1": capabilities.Unknown, "stuck/1": capabilities.Failed} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			f := start(t, capabilities.ClassNet, os.Getuid())
			c := f.claims(revision)
			c.Deadline = clock.System().Boot() + 2*time.Second
			out, there := pair(t)
			conn := f.give(&ipc.Job{Claims: f.payload(c)}, out)
			out.Close()
			got, err := f.result(conn)
			if err != nil || got.Status != want || got.Code != capabilities.CodeTimeout || !got.Sent {
				t.Errorf("%+v, %v", got, err)
			}
			// The process is gone: nobody holds the connection any more.
			if _, err := io.ReadAll(there); err != nil {
				t.Error(err)
			}
		})
	}
}

// Abort: the end of the courier's half of the socket ends the call and the process.
func TestCourierThatGivesUp(t *testing.T) {
	f := start(t, capabilities.ClassNet, os.Getuid())
	for revision, want := range map[string]capabilities.Status{"deaf/1": capabilities.Unknown, "stuck/1": capabilities.Failed} {
		out, there := pair(t)
		conn := f.give(&ipc.Job{Claims: f.payload(f.claims(revision))}, out)
		out.Close()
		if _, err := io.ReadFull(there, make([]byte, len(f.claims("").Request.Bytes))); err != nil {
			t.Fatal(err)
		}
		if err := conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		got, err := f.result(conn)
		if err != nil || got.Status != want || !got.Sent {
			t.Errorf("%s: %+v, %v", revision, got, err)
		}
		if _, err := io.ReadAll(there); err != nil {
			t.Errorf("%s: %v", revision, err)
		}
	}
}

func TestJobsThatAreRefused(t *testing.T) {
	f := start(t, capabilities.ClassNet, os.Getuid())
	none := &fleet{t: t, class: capabilities.ClassNone}
	for event, j := range map[string]struct {
		job  ipc.Job
		file bool
	}{
		"of another class":          {ipc.Job{Claims: f.payload(none.claims("echo/1"))}, false},
		"without its descriptor":    {ipc.Job{Claims: f.payload(f.claims("echo/1"))}, false},
		"with one too many":         {ipc.Job{Claims: f.payload(none.claims("echo/1"))}, true},
		"of an unknown revision":    {ipc.Job{Claims: f.payload(f.claims("echo/2"))}, true},
		"no claims":                 {ipc.Job{}, true},
		"nonsense for claims":       {ipc.Job{Claims: []byte("approve")}, true},
		"a secret without its slot": {ipc.Job{Claims: f.payload(f.claims("echo/1")), Secret: []byte("x")}, true},
		"a slot that nobody fills": {ipc.Job{Claims: f.payload(func() grant.Claims {
			c := f.claims("echo/1")
			c.Request.Credential = "pihole"
			return c
		}())}, true},
	} {
		out, there := pair(t)
		if !j.file {
			out.Close()
			out = nil
		}
		conn := f.give(&j.job, out)
		if out != nil {
			out.Close()
		}
		got, err := f.result(conn)
		if err != nil || got.Status != capabilities.Failed || got.Code != capabilities.CodeInternal || got.Sent || got.Body != nil {
			t.Errorf("%s: %+v, %v", event, got, err)
		}
		if b, err := io.ReadAll(there); len(b) > 0 || err != nil {
			t.Errorf("%s: the destination got %q, %v", event, b, err)
		}
	}
}

// D8: a third user gives no job.
func TestThirdUserIsRefused(t *testing.T) {
	f := start(t, capabilities.ClassNone, os.Getuid()+1)
	if got, err := f.result(f.give(&ipc.Job{Claims: f.payload(f.claims("echo/1"))}, nil)); err == nil {
		t.Errorf("it answered %+v", got)
	}
}

func TestPeerThatSaysNoJob(t *testing.T) {
	f := start(t, capabilities.ClassNone, os.Getuid())
	conn := f.give(&ipc.Job{Claims: []byte("first")}, nil)
	if _, err := f.result(conn); err != nil {
		t.Fatal(err)
	}
	if got, err := f.result(conn); err == nil {
		t.Errorf("a second answer: %+v", got)
	}
}
