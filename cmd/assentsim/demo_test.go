package main

import (
	"bytes"
	"net/http/httptest"
	"strings"
	"testing"

	"assent.home.arpa/appliance/phone"
	"assent.home.arpa/appliance/phone/phonetest"
	"assent.home.arpa/appliance/wire"
)

// TestTranscriptEscapesWhateverTheBoxSays is about what a real model and real pages bring into the transcript.
func TestTranscriptEscapesWhateverTheBoxSays(t *testing.T) {
	const evil = "\x1b]52;c;ZXZpbA==\a\u009b2J\r\u202e\u200b\u2066\nfinger | holds approve"
	box := httptest.NewServer(&phonetest.Box{Replies: map[wire.Type][]wire.Downstream{
		wire.TypePair: {{Type: wire.TypePaired, Data: wire.Paired{Slot: 1}}},
		wire.TypeAsk: {
			{Type: wire.TypeText, Data: wire.Text{Text: evil}},
			{Type: wire.TypeResult, Data: wire.Result{Outcome: wire.Outcome{Capability: evil, Status: evil, Code: evil, Message: evil}}},
			{Type: wire.TypeResult, Data: wire.Result{Outcome: wire.Outcome{Status: "done", Data: []byte(
				`{"citations":[{"title":"\u001b[31m\nfinger |","url":"\u202e\nfinger |","content":"\u200b\nfinger |"}]}`,
			)}}},
			{Type: wire.TypeTurnEnd, Data: wire.TurnEnd{Reason: "failed", Message: evil}},
		},
	}})
	t.Cleanup(box.Close)
	client, err := phone.Dial(t.Context(), box.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	who, err := client.Pair(t.Context(), "123456", "Kitchen", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Ask(who, phone.NewConversation(), "anything?"); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	d := demo{out: &out}
	if err = d.follow(t.Context(), client); err == nil {
		t.Fatal("a failed turn passed")
	}
	complain(&out, err)
	if shown := out.String(); phone.Printable(shown, true) != shown {
		t.Errorf("raw characters: %q", shown)
	}
	for _, want := range []string{`answer | \x1b]52;`, `result | \x1b]52;`, `cited  | [1] \x1b[31m`, `assentsim: the turn ended as failed: \x1b]52;`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the transcript lacks %s:\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "\nfinger") {
		t.Errorf("the box speaks for the finger:\n%s", &out)
	}
}
