package courier_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/courier"
	"assent.home.arpa/appliance/grant"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
)

func TestWorkerGetsTheCallAndTheConnection(t *testing.T) {
	port, accepted := listen(t, false)
	got := make(chan job, 1)
	envelope := &ipc.Envelope{HTTPStatus: 200, Items: 2, Retrieved: 5, RequestDigest: [32]byte{1}}
	r := start(t, func(j job) {
		io.WriteString(j.out, "hello")
		got <- j
		j.reply(&ipc.JobResult{Status: capabilities.Done, Sent: true, Envelope: envelope, Body: []byte(`{"a":1}`)})
	}, nil)
	claims := r.claims(to(port))
	m, err := r.guard.Call(t.Context(), &ipc.Execute{Grant: r.sign(claims), Secret: []byte("hunter2")}, nil)
	result, ok := m.(*ipc.Result)
	if err != nil || !ok {
		t.Fatalf("%v, %v", m, err)
	}
	want := &ipc.Result{Inv: claims.Inv, Status: capabilities.Done, Sent: true, Envelope: envelope, Body: []byte(`{"a":1}`)}
	if diff := cmp.Diff(want, result); diff != "" {
		t.Error(diff)
	}
	j := <-got
	j.claims.Nonce = claims.Nonce // made by Sign
	if diff := cmp.Diff(claims, j.claims); diff != "" {
		t.Error(diff)
	}
	if string(j.secret) != "hunter2" {
		t.Errorf("secret %q", j.secret)
	}
	// What the worker wrote arrives, and the connection ends with the call.
	if b, err := io.ReadAll(<-accepted); err != nil || string(b) != "hello" {
		t.Errorf("the destination got %q, %v", b, err)
	}
}

// Landlock does not cover Multipath TCP, so a worker must never hold such a connection.
func TestConnectsWithoutMultipathTCP(t *testing.T) {
	port, accepted := listen(t, true)
	control, err := func() (net.Conn, error) {
		var d net.Dialer
		d.SetMultipathTCP(true)
		return d.DialContext(t.Context(), "tcp", "127.0.0.1:"+strconv.Itoa(int(port)))
	}()
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	if multi, err := (<-accepted).MultipathTCP(); err != nil || !multi {
		t.Skipf("this kernel speaks no multipath TCP: %v, %v", multi, err)
	}
	r := start(t, done, nil)
	if _, refused := r.execute(r.sign(r.claims(to(port)))); refused != nil {
		t.Fatal(refused)
	}
	if multi, err := (<-accepted).MultipathTCP(); err != nil || multi {
		t.Errorf("multipath %v, %v", multi, err)
	}
}

func TestWorkersThatFail(t *testing.T) {
	port, _ := listen(t, false)
	for event, c := range map[string]struct {
		work func(job)
		code capabilities.Code
	}{
		"it dies":                    {func(job) {}, capabilities.CodeInterrupted},
		"it dies while answering":    {func(j job) { j.conn.Write([]byte{0, 0, 1, 0, 7}) }, capabilities.CodeInterrupted},
		"it speaks nonsense":         {func(j job) { j.conn.Write([]byte("\x00\x00\x00\x04nope")) }, capabilities.CodeInternal},
		"it promises a gigabyte":     {func(j job) { j.conn.Write([]byte{0x40, 0, 0, 0}) }, capabilities.CodeInternal},
		"it answers something else":  {func(j job) { j.reply(&ipc.StatusRequest{}) }, capabilities.CodeInternal},
		"it claims a denial":         {func(j job) { j.reply(&ipc.JobResult{Status: capabilities.Denied}) }, capabilities.CodeInternal},
		"it claims nothing":          {func(j job) { j.reply(&ipc.JobResult{}) }, capabilities.CodeInternal},
		"its body is over the bound": {func(j job) { j.reply(&ipc.JobResult{Status: capabilities.Done, Body: make([]byte, 1001)}) }, capabilities.CodeInternal},
	} {
		r := start(t, c.work, nil)
		for class, want := range map[string]struct {
			change func(*grant.Claims)
			status capabilities.Status
			sent   bool
		}{
			"net":   {to(port), capabilities.Unknown, true},
			"files": {func(c *grant.Claims) { automatic(c); c.Class = capabilities.ClassFiles }, capabilities.Unknown, false},
			"none":  {automatic, capabilities.Failed, false},
		} {
			result, refused := r.execute(r.sign(r.claims(want.change)))
			if refused != nil {
				t.Errorf("%s, class %s: %v", event, class, refused)
				continue
			}
			if result.Status != want.status || result.Code != c.code || result.Sent != want.sent || result.Body != nil || result.Envelope != nil {
				t.Errorf("%s, class %s: %+v", event, class, result)
			}
		}
	}
}

func TestWithoutAWorkerNothingIsSent(t *testing.T) {
	port, accepted := listen(t, false)
	r := start(t, nil, func(o *courier.Options) {
		o.Workers = map[capabilities.Class]string{capabilities.ClassNet: filepath.Join(t.TempDir(), "nobody")}
	})
	if _, refused := r.execute(r.sign(r.claims(to(port)))); refused == nil || refused.Code != capabilities.CodeInternal {
		t.Errorf("%v", refused)
	}
	if b, err := io.ReadAll(<-accepted); err != nil || len(b) > 0 {
		t.Errorf("the destination got %q, %v", b, err)
	}
}

// C22: nobody hears from the worker until the deadline: unknown. The boot clock alone decides.
func TestDeadline(t *testing.T) {
	port, accepted := listen(t, false)
	for event, pass := range map[string]func(*rig){
		"time passes":    func(r *rig) { r.hand.Advance(30 * time.Second) },
		"the box sleeps": func(r *rig) { r.hand.Suspend(8 * time.Hour) },
	} {
		began, ended := make(chan struct{}), make(chan struct{})
		r := start(t, func(j job) {
			close(began)
			io.Copy(io.Discard, j.out) // for as long as the connection lives
			j.stopped()
			close(ended)
		}, nil)
		result := r.later(r.sign(r.claims(to(port))))
		<-began
		pass(r)
		got := <-result
		if got == nil || got.Status != capabilities.Unknown || got.Code != capabilities.CodeTimeout || !got.Sent || got.Duration < int64(30*time.Second) {
			t.Errorf("%s: %+v", event, got)
		}
		<-ended // the worker was told, and its connection to the outside is dead
		if b, err := io.ReadAll(<-accepted); err != nil || len(b) > 0 {
			t.Errorf("%s: the destination got %q, %v", event, b, err)
		}
	}
}

func TestAbort(t *testing.T) {
	port, _ := listen(t, false)
	report := &ipc.JobResult{Status: capabilities.Failed, Code: capabilities.CodeInterrupted}
	for event, c := range map[string]struct {
		work func(job)
		want ipc.Result
	}{
		"the worker says how far it came": {func(j job) { j.stopped(); j.reply(report) }, ipc.Result{Status: capabilities.Failed, Code: capabilities.CodeInterrupted}},
		"the worker just ends":            {func(j job) { j.stopped() }, ipc.Result{Status: capabilities.Unknown, Code: capabilities.CodeInterrupted, Sent: true}},
		"the worker does not listen":      {func(j job) { io.Copy(io.Discard, j.out) }, ipc.Result{Status: capabilities.Unknown, Code: capabilities.CodeInterrupted, Sent: true}},
	} {
		began := make(chan struct{})
		r := start(t, func(j job) { close(began); c.work(j) }, nil)
		claims := r.claims(to(port))
		result := r.later(r.sign(claims))
		<-began
		if err := r.guard.Tell(&ipc.Abort{Inv: capabilities.InvocationID{1}}); err != nil { // some other call
			t.Fatal(err)
		}
		if err := r.guard.Tell(&ipc.Abort{Inv: claims.Inv}); err != nil {
			t.Fatal(err)
		}
		c.want.Inv = claims.Inv
		if diff := cmp.Diff(&c.want, <-result); diff != "" {
			t.Errorf("%s: %s", event, diff)
		}
	}
}

func TestGuardThatGoesTakesItsCallsAlong(t *testing.T) {
	port, _ := listen(t, false)
	began, stopped := make(chan struct{}), make(chan struct{})
	r := start(t, func(j job) { close(began); j.stopped(); close(stopped) }, nil)
	r.later(r.sign(r.claims(to(port))))
	<-began
	r.guard.Close()
	<-stopped
}

// C43: what may have an effect runs alone; what only reads runs four at a time.
func TestConcurrencyFollowsConsequence(t *testing.T) {
	port, _ := listen(t, false)
	for event, c := range map[string]struct {
		change, other func(*grant.Claims)
		atOnce        int32
	}{"approved": {to(port), automatic, 1}, "automatic": {automatic, to(port), 4}} {
		var running, most atomic.Int32
		arrived, release := make(chan struct{}, 16), make(chan struct{})
		r := start(t, func(j job) {
			if j.claims.Revision == "probe/1" {
				done(j)
				return
			}
			n := running.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			arrived <- struct{}{}
			<-release
			running.Add(-1)
			done(j)
		}, nil)
		var results []<-chan *ipc.Result
		for range 10 {
			results = append(results, r.later(r.sign(r.claims(c.change))))
		}
		for range c.atOnce {
			<-arrived
		}
		// Calls of the other kind do not wait for these, and while they come and go, one too many would have begun.
		for range 10 {
			probe := r.claims(func(claims *grant.Claims) { c.other(claims); claims.Revision = "probe/1" })
			if got, refused := r.execute(r.sign(probe)); refused != nil || got.Status != capabilities.Done {
				t.Errorf("%s: the other kind waits: %+v, %v", event, got, refused)
			}
		}
		close(release)
		for _, result := range results {
			if got := <-result; got == nil || got.Status != capabilities.Done {
				t.Errorf("%s: %+v", event, got)
			}
		}
		if most.Load() != c.atOnce {
			t.Errorf("%s: %d ran at once, want %d", event, most.Load(), c.atOnce)
		}
	}
}

func TestWaitingCallEndsWithoutBeingSent(t *testing.T) {
	port, accepted := listen(t, false)
	var jobs atomic.Int32
	began, release := make(chan struct{}, 2), make(chan struct{})
	r := start(t, func(j job) { jobs.Add(1); began <- struct{}{}; <-release; done(j) }, nil)
	first := r.later(r.sign(r.claims(to(port))))
	<-began
	<-accepted
	aborted, late := r.claims(to(port)), r.claims(func(c *grant.Claims) { to(port)(c); c.Deadline -= 20 * time.Second })
	call := func(c grant.Claims) <-chan error {
		out := make(chan error, 1)
		go func() {
			_, err := r.guard.Call(context.Background(), &ipc.Execute{Grant: r.sign(c)}, nil)
			out <- err
		}()
		return out
	}
	abortedErr, lateErr := call(aborted), call(late)
	// The grants are known once presenting one again is refused; then the abort cannot come too early.
	for r.refusedAgain(aborted) == nil || r.refusedAgain(late) == nil {
	}
	if err := r.guard.Tell(&ipc.Abort{Inv: aborted.Inv}); err != nil {
		t.Fatal(err)
	}
	var e *ipc.Error
	if err := <-abortedErr; !errors.As(err, &e) || e.Code != capabilities.CodeInterrupted {
		t.Errorf("aborted: %v", err)
	}
	r.hand.Advance(15 * time.Second)
	if err := <-lateErr; !errors.As(err, &e) || e.Code != capabilities.CodeTimeout {
		t.Errorf("late: %v", err)
	}
	close(release)
	if got := <-first; got == nil || got.Status != capabilities.Done {
		t.Errorf("the call in front: %+v", got)
	}
	if jobs.Load() != 1 || len(accepted) != 0 {
		t.Errorf("%d jobs, %d more connections", jobs.Load(), len(accepted))
	}
}

// refusedAgain presents a call with another boot, so that it is refused in any case, and reports whether the reason was
// that it has been used.
func (r *rig) refusedAgain(c grant.Claims) *ipc.Error {
	c.BootID[0]++
	_, refused := r.execute(r.sign(c))
	if refused == nil || refused.Message != "the grant has been used" {
		return nil
	}
	return refused
}

func TestUnreachable(t *testing.T) {
	r := start(t, func(job) { t.Error("a worker started") }, nil)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	if _, refused := r.execute(r.sign(r.claims(to(port)))); refused == nil || refused.Code != capabilities.CodeUnreachable {
		t.Errorf("%v", refused)
	}
}

func TestProtocolBreachEndsTheConnection(t *testing.T) {
	r := start(t, done, nil)
	if err := r.guard.Tell(&ipc.JobResult{Status: capabilities.Done}); err != nil {
		t.Fatal(err)
	}
	<-r.guard.Done()
	r.guard, r.challenge = r.connect() // and the courier serves on
	if result, refused := r.execute(r.sign(r.claims(automatic))); refused != nil || result.Status != capabilities.Done {
		t.Errorf("%+v, %v", result, refused)
	}
}

func TestOptionsAreRequired(t *testing.T) {
	r := start(t, done, nil)
	for event, remove := range map[string]func(*courier.Options){
		"guard": func(o *courier.Options) { o.Guard = nil }, "clock": func(o *courier.Options) { o.Clock = nil },
		"addresses": func(o *courier.Options) { o.Addresses = nil }, "resolver": func(o *courier.Options) { o.Resolver = nil },
		"boot": func(o *courier.Options) { o.BootID = [16]byte{} }, "key": func(o *courier.Options) { o.GrantKeyFile = "" },
	} {
		o := r.options
		remove(&o)
		if err := courier.Run(t.Context(), o); err == nil {
			t.Errorf("it ran without %s", event)
		}
	}
	// A key that cannot be read ends the connection, and nothing is trusted in its place.
	if err := os.Remove(r.options.GrantKeyFile); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("unix", r.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, m, err := ipc.NewConn(conn).Receive(); err == nil {
		t.Errorf("without a key it says %T", m)
	}
}
