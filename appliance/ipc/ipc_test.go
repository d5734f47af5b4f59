package ipc_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
)

var update = flag.Bool("update", false, "rewrite the golden bytes")

func fill(b byte) (out [32]byte) {
	for i := range out {
		out[i] = b
	}
	return out
}

// examples holds one message of every kind with every field set, so that the golden file fixes all keys.
func examples() []ipc.Message {
	id := ipc.ID(bytes.Repeat([]byte{0xa1}, 16))
	inv := capabilities.InvocationID(bytes.Repeat([]byte{0xb2}, 16))
	env := &ipc.Envelope{HTTPStatus: 200, Items: 5, Truncated: true, Retrieved: 1796000000000, RequestDigest: fill(1), AnswerDigest: fill(2), BodyDigest: fill(3)}
	return []ipc.Message{
		&ipc.Hello{Build: "1.2.3"},
		&ipc.Welcome{BootID: id, Registry: fill(4)},
		&ipc.Auth{Slot: 3, Nonce: fill(5), Sig: []byte{1, 2}},
		&ipc.AuthReply{OK: true, Name: "Kitchen", Role: ipc.RoleOwner, Counter: 9},
		&ipc.CatalogRequest{Slot: 3, Conversation: id},
		&ipc.Catalog{Registry: fill(4), Entries: []ipc.CatalogEntry{{Name: "web_search__v1", Version: 1, Description: "d", Parameters: []byte("{}")}}, PerTurn: map[string]int{"web_search__v1": 3}, Results: map[string]ipc.CatalogResults{"web_search__v1": {Shape: []byte("{}"), Bytes: 65536}}},
		&ipc.Ask{Slot: 3, Conversation: id, Counter: 10, TextDigest: fill(6), Sig: []byte{3}},
		&ipc.AskReply{Ask: id, Code: capabilities.CodeNoAsk, Message: "m"},
		&ipc.EndAsk{Ask: id},
		&ipc.Propose{Ask: id, Name: []byte("web_search__v1"), Arguments: []byte(`{"query":"tea"}`), Step: 1, Index: 2, RunDigest: fill(7)},
		&ipc.Pending{Inv: inv, Name: "web.search", Version: 1, Revision: "mediawiki/1", Title: "t", Text: "x", Destination: "wikipedia.org", Pages: 2, Request: []byte("GET"), ArgsDigest: fill(8), Decided: true},
		&ipc.Outcome{Inv: inv, Stage: capabilities.StageConfirm, Status: capabilities.Denied, Code: capabilities.CodeCoolDown, Message: "m", Name: "web.search", Version: 1, Revision: "mediawiki/1", Body: []byte("{}"), Retrieved: 5, Seq: 6, RetryIn: 30},
		&ipc.Withdraw{Inv: inv, Slot: 3, Deny: true},
		&ipc.Claim{Class: ipc.ClaimBudget, Ask: id, Slot: 3, Code: capabilities.CodeBudget, Detail: []byte{0xff}, Digest: fill(9), Step: 2},
		&ipc.Pair{Code: "K7QF2M", Name: "Kitchen", Key: []byte{4}},
		&ipc.PairReply{OK: true, Slot: 3, Name: "Kitchen", Role: ipc.RoleAdult, Code: capabilities.CodeNotAllowed, Message: "m"},
		&ipc.Notice{Class: ipc.NoticeFrozen, Slot: 3},
		&ipc.StatusRequest{},
		&ipc.Status{Frozen: true, Pairing: true, Phones: 2, HeadCode: "ABCD2345", Seal: []byte{1}, Display: true, Audit: true, Courier: true, Head: 7, Trouble: ipc.AuditFull, Root: []byte{2}, Unknown: 3},
		&ipc.Error{Code: capabilities.CodeInternal, Message: "m"},
		&ipc.InboxRequest{Slot: 3},
		&ipc.Inbox{Items: []ipc.Unknown{{Inv: inv, Slot: 3, Phone: "Kitchen", Name: "web.search", Version: 1, Title: "t", Text: "x", Destination: "wikipedia.org", When: 5, Seq: 6, Why: capabilities.CodeInterrupted, Cut: true, Sent: true}}, Older: 2},
		&ipc.Seen{Slot: 3, Inv: inv, Sig: []byte{3}},
		&ipc.Cable{Slot: 3, Counter: 11, Sig: []byte{3}},
		&ipc.CableReply{Seconds: 300},
		&ipc.Challenge{Nonce: fill(10), Start: id},
		&ipc.Execute{Grant: []byte{1}, Secret: []byte{2}},
		&ipc.Result{Inv: inv, Status: capabilities.Done, Code: capabilities.CodeTimeout, Sent: true, Duration: 7, Envelope: env, Body: []byte("{}")},
		&ipc.Abort{Inv: inv},
		&ipc.Job{Claims: []byte{1}, Secret: []byte{2}},
		&ipc.JobResult{Status: capabilities.Unknown, Code: capabilities.CodeInterrupted, Sent: true, Envelope: env, Body: []byte("{}")},
		&ipc.StickHello{Problem: ipc.StickExFAT, Label: []byte{0x9a, 'B'}, Size: 7 << 30, Cable: true},
		&ipc.StickOp{Verb: ipc.StickWrite, Name: "log/a", To: "b", Handle: 2, Offset: 3, Size: 4, Data: []byte{5}, Room: 8},
		&ipc.StickReply{Problem: ipc.StickFull, Yes: true, Size: 6, Data: []byte{7}},
	}
}

func pipe(t *testing.T) (*ipc.Conn, *ipc.Conn, net.Conn) {
	t.Helper()
	a, b := net.Pipe()
	t.Cleanup(func() { a.Close(); b.Close() })
	return ipc.NewConn(a), ipc.NewConn(b), a
}

func TestMessagesGolden(t *testing.T) {
	path := filepath.Join("..", "..", "testdata", "contracts", "ipc.golden")
	conn, _, _ := pipe(t)
	var got strings.Builder
	for _, m := range examples() {
		b, err := conn.Encode(7, m)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&got, "%d %s %x\n", m.Kind(), strings.TrimPrefix(fmt.Sprintf("%T", m), "*ipc."), b)
	}
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Fatalf("the contract changed (-golden +now):\n%s", diff)
	}
}

func TestEveryMessageCrosses(t *testing.T) {
	for _, m := range examples() {
		a, b, _ := pipe(t)
		go a.Send(7, m)
		id, got, err := b.Receive()
		if err != nil || id != 7 {
			t.Fatalf("%T: id %d, %v", m, id, err)
		}
		if diff := cmp.Diff(m, got); diff != "" {
			t.Errorf("%T (-sent +received):\n%s", m, diff)
		}
	}
}

func frame(payload string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(payload, " ", ""))
	if err != nil {
		panic(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

func TestBrokenGrammarIsRefused(t *testing.T) {
	for name, bytes := range map[string][]byte{
		"length zero":            {0, 0, 0, 0},
		"length over the bound":  {0xff, 0xff, 0xff, 0xff},
		"not cbor":               frame("ff"),
		"version 2":              frame("84 02 12 07 41a0"),
		"unknown kind":           frame("84 01 18c8 07 41a0"),
		"three elements":         frame("83 01 12 07"),
		"unknown field":          frame("84 01 12 07 43a10105"),
		"non-minimal integer":    frame("84 01 1812 07 41a0"),
		"non-minimal in body":    frame("84 01 11 07 45 a1 01 1801 00"),
		"unsorted keys":          frame("84 01 11 07 45 a202010101"),
		"repeated key":           frame("84 01 11 07 45 a201010102"),
		"indefinite length":      frame("84 01 12 07 42bfff"),
		"bytes after the body":   frame("84 01 12 07 42a000"),
		"bytes after message":    frame("84 01 12 07 41a0 00"),
		"body is not a map":      frame("84 01 12 07 4101"),
		"text is not UTF-8":      frame("84 01 01 07 44a10161ff"),
		"wrong type for a field": frame("84 01 01 07 43a10105"),
	} {
		t.Run(name, func(t *testing.T) {
			_, b, raw := pipe(t)
			go raw.Write(bytes)
			if _, m, err := b.Receive(); !errors.Is(err, ipc.ErrProtocol) {
				t.Fatalf("got %#v, %v", m, err)
			}
		})
	}
}

func TestCutFrameIsNotACleanEnd(t *testing.T) {
	_, b, raw := pipe(t)
	go func() { raw.Write(frame("84 01 12 07 41a0")[:6]); raw.Close() }()
	if _, _, err := b.Receive(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("got %v", err)
	}
}

func TestOversizeMessageIsNotSent(t *testing.T) {
	a, _, _ := pipe(t)
	if err := a.Send(1, &ipc.Job{Claims: make([]byte, ipc.MaxMessage)}); err == nil {
		t.Fatal("a message over the bound was sent")
	}
}

func TestCallPairsAnswersAndInterims(t *testing.T) {
	a, b, _ := pipe(t)
	go ipc.Serve(context.Background(), b, func(_ context.Context, m ipc.Message, reply func(ipc.Message) error) {
		p := m.(*ipc.Propose)
		reply(&ipc.Pending{Text: string(p.Name)})
		reply(&ipc.Outcome{Message: string(p.Name)})
	})
	client := ipc.NewClient(a, func(ipc.Message) {})
	defer client.Close()
	done := make(chan error, 8)
	for i := range 8 {
		go func() {
			name := fmt.Sprint("call", i)
			var shown string
			m, err := client.Call(context.Background(), &ipc.Propose{Name: []byte(name)}, func(p *ipc.Pending) { shown = p.Text })
			if err == nil && (shown != name || m.(*ipc.Outcome).Message != name) {
				err = fmt.Errorf("%s was answered %q, %v", name, shown, m)
			}
			done <- err
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestLostPeerEndsOpenCalls(t *testing.T) {
	a, b, _ := pipe(t)
	client := ipc.NewClient(a, func(ipc.Message) {})
	go func() { b.Receive(); b.Close() }()
	if _, err := client.Call(context.Background(), &ipc.StatusRequest{}, nil); !errors.Is(err, ipc.ErrClosed) {
		t.Fatalf("got %v", err)
	}
	if _, err := client.Call(context.Background(), &ipc.StatusRequest{}, nil); !errors.Is(err, ipc.ErrClosed) {
		t.Fatalf("a later call: got %v", err)
	}
}

func unixPair(t *testing.T) (net.Conn, net.Conn) {
	t.Helper()
	l, err := ipc.Listen(filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); s.Close() })
	return c, s
}

func TestDescriptorCrosses(t *testing.T) {
	c, s := unixPair(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := ipc.NewConn(c).SendFile(0, &ipc.Job{Claims: bytes.Repeat([]byte{7}, 100_000)}, w); err != nil {
		t.Fatal(err)
	}
	w.Close()
	_, m, f, err := ipc.NewConn(s).ReceiveFile()
	if err != nil || f == nil || len(m.(*ipc.Job).Claims) != 100_000 {
		t.Fatalf("file %v, %v", f, err)
	}
	fmt.Fprint(f, "through")
	f.Close()
	if got, _ := io.ReadAll(r); string(got) != "through" {
		t.Fatalf("read %q", got)
	}
	go ipc.NewConn(c).Send(0, &ipc.Job{})
	if _, _, f, err := ipc.NewConn(s).ReceiveFile(); err != nil || f != nil {
		t.Fatalf("a message without a descriptor: %v, %v", f, err)
	}
}

func TestPeerOfAnotherUserIsRefused(t *testing.T) {
	_, s := unixPair(t)
	if err := ipc.CheckPeer(s, uint32(os.Getuid())); err != nil {
		t.Fatal(err)
	}
	var peer *ipc.PeerError
	if err := ipc.CheckPeer(s, uint32(os.Getuid())+1); !errors.As(err, &peer) {
		t.Fatalf("got %v", err)
	}
	if err := ipc.CheckPeer(s); !errors.As(err, &peer) {
		t.Fatalf("nobody is allowed, and somebody got in: %v", err)
	}
	a, _ := net.Pipe()
	if err := ipc.CheckPeer(a, 0); err == nil {
		t.Fatal("a stream without credentials was let in")
	}
}

func TestListenReplacesOnlyDeadSockets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := ipc.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ipc.Listen(path); err == nil || !strings.Contains(err.Error(), "another process listens") {
		t.Fatalf("a live socket was taken over: %v", err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	again, err := ipc.Listen(path)
	if err != nil {
		t.Fatalf("a dead socket blocks the start: %v", err)
	}
	again.Close()
}

func FuzzReceive(f *testing.F) {
	for _, m := range examples() {
		a, _ := net.Pipe()
		b, err := ipc.NewConn(a).Encode(1, m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[4:])
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		if len(payload) == 0 || len(payload) > 4096 {
			return
		}
		_, b, raw := pipe(t)
		whole := append(binary.BigEndian.AppendUint32(nil, uint32(len(payload))), payload...)
		go raw.Write(whole)
		id, m, err := b.Receive()
		if err != nil {
			return
		}
		again, err := b.Encode(id, m)
		if err != nil || !bytes.Equal(again, whole) {
			t.Fatalf("accepted bytes have a second form:\n%x\n%x", whole, again)
		}
	})
}
