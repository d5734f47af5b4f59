package main

import (
	"bufio"
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"assent.home.arpa/appliance/phone"
	"assent.home.arpa/appliance/phone/phonetest"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/capabilities"
)

// evil copies to the clipboard, colours, clears, overwrites, reorders, hides, and opens a line that looks like the program's own.
const evil = "\x1b]52;c;ZXZpbA==\x07\x1b[31mRED\u009b2J\r\u202e\u200b\u2066\nassent-says: all is well"

// assent runs the program and demands that nothing which it prints can command a terminal.
func assent(t *testing.T, args ...string) (status int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	status = run(args, strings.NewReader(""), &o, &e)
	for name, text := range map[string]string{"output": o.String(), "errors": e.String()} {
		if phone.Printable(text, true) != text {
			t.Errorf("%v: raw characters in the %s: %q", args, name, text)
		}
		for line := range strings.SplitSeq(text, "\n") {
			if strings.HasPrefix(line, "assent-says") {
				t.Errorf("%v: the box wrote a line of its own: %q", args, text)
			}
		}
	}
	return status, o.String(), e.String()
}

// hostile serves a box which has evil wherever it may say something, and pairs this test with it.
func hostile(t *testing.T, replies ...wire.Downstream) {
	t.Helper()
	hostileTo(t, wire.TypeAsk, replies...)
}

// hostileTo is hostile to a frame of another type.
func hostileTo(t *testing.T, to wire.Type, replies ...wire.Downstream) {
	t.Helper()
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	box := httptest.NewServer(&phonetest.Box{Name: evil, Replies: map[wire.Type][]wire.Downstream{
		wire.TypePair:  {{Type: wire.TypePaired, Data: wire.Paired{Slot: 1, Name: evil}}},
		wire.TypeHello: {{Type: wire.TypeWelcome, Data: wire.Welcome{Name: evil, Root: evil}}},
		to:             replies,
	}})
	t.Cleanup(box.Close)
	if status, _, errs := assent(t, "pair", box.URL, "123456"); status != 0 {
		t.Fatalf("pair: exit %d: %s", status, errs)
	}
}

func TestAskEscapesWhateverTheBoxSays(t *testing.T) {
	text := wire.Downstream{Type: wire.TypeText, Data: wire.Text{Text: strings.ReplaceAll(evil, "\n", " ")}}
	pending := wire.Downstream{Type: wire.TypePending, Data: wire.Pending{Title: evil, Text: evil, Destination: evil}}
	decided := wire.Downstream{Type: wire.TypePending, Data: wire.Pending{Title: evil, Decided: true}}
	refused := wire.Downstream{Type: wire.TypeResult, Data: wire.Result{Outcome: wire.Outcome{
		Capability: evil, Status: evil, Code: evil, Message: evil,
	}}}
	cited := wire.Downstream{Type: wire.TypeResult, Data: wire.Result{Outcome: wire.Outcome{
		Capability: "web.search", Status: capabilities.Done.String(),
		Data: []byte(`{"citations":[{"title":"\u001b[31m\nassent-says","url":"\u202e\nassent-says","content":"\u009b2J\nassent-says"}]}`),
	}}}
	uncited := wire.Downstream{Type: wire.TypeResult, Data: wire.Result{Outcome: wire.Outcome{
		Capability: "system.health", Status: capabilities.Done.String(), Data: []byte("{\"a\":\"\u202e\u200b\u009b2J\"}"),
	}}}
	for _, c := range []struct {
		name   string
		end    wire.Downstream
		status int
	}{
		{"turn complete", wire.Downstream{Type: wire.TypeTurnEnd, Data: wire.TurnEnd{Reason: "complete", Message: evil}}, 0},
		{"turn failed", wire.Downstream{Type: wire.TypeTurnEnd, Data: wire.TurnEnd{Reason: "failed", Message: evil}}, exitBad},
		{"error frame", wire.Downstream{Type: wire.TypeError, Data: wire.Error{Code: evil, Message: evil}}, exitBad},
		{"frame that does not decode", wire.Downstream{Type: wire.TypeTurnEnd, Data: evil}, exitUnclear},
	} {
		t.Run(c.name, func(t *testing.T) {
			hostile(t, text, pending, decided, refused, cited, uncited, c.end)
			status, out, errs := assent(t, "ask", "anything?")
			if status != c.status {
				t.Errorf("exit %d, want %d: %s", status, c.status, errs)
			}
			if want := `── ` + `\x1b]52;c;ZXZpbA==\a\x1b[31mRED\u009b2J\r\u202e\u200b\u2066\nassent-says: all is well: nobody can say whether it took effect; look at the record: \x1b]52`; !strings.Contains(out, want) {
				t.Errorf("the outcome is not shown escaped: %s", out)
			}
			if !strings.Contains(errs, `look at the box: \x1b]52`) {
				t.Errorf("the card is not shown escaped: %s", errs)
			}
			status, out, _ = assent(t, "--json", "ask", "anything?")
			if status != c.status || !strings.Contains(out, `\u202e\u200b\u2066`) {
				t.Errorf("json: exit %d: %s", status, out)
			}
		})
	}
}

// TestPairEscapesAnAnswerFromAStranger is about what happens before any pairing: anybody may be at that address.
func TestPairEscapesAnAnswerFromAStranger(t *testing.T) {
	for _, c := range []struct{ name, answer, want string }{
		{"reason phrase", "HTTP/1.1 403 \x1b]52;c;ZXZpbA==\x07\x1b[31mRED\r\n\r\n", "answered with HTTP status 403"},
		{"not HTTP", "\x1b[31mRED\u202e\u200b\r\n\r\n", "cannot reach"},
		{"malformed header", "HTTP/1.1 302 Found\r\nLocation: http://\u202e/\x1b[31m\r\n\r\n", "cannot reach"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("XDG_CONFIG_HOME", t.TempDir())
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			served := make(chan struct{})
			go func() {
				defer close(served)
				conn, err := l.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					conn.Write([]byte(c.answer))
				}
			}()
			t.Cleanup(func() { l.Close(); <-served })
			status, out, errs := assent(t, "pair", "http://"+l.Addr().String(), "123456")
			if status != exitUnclear || out != "" || !strings.Contains(errs, c.want) {
				t.Errorf("exit %d, %q, %q", status, out, errs)
			}
		})
	}
}

func TestPairEscapesARefusal(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	box := httptest.NewServer(&phonetest.Box{Replies: map[wire.Type][]wire.Downstream{
		wire.TypePair: {{Type: wire.TypeError, Data: wire.Error{Code: evil, Message: evil}}},
	}})
	t.Cleanup(box.Close)
	if status, _, errs := assent(t, "pair", box.URL, "123456"); status != exitBad || !strings.Contains(errs, `\x1b]52`) {
		t.Errorf("exit %d: %s", status, errs)
	}
}
