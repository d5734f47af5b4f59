package gateway_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"

	"assent.home.arpa/appliance/gateway"
	"assent.home.arpa/appliance/wire"
)

// Ten thousand frames at once cost the other phones nothing.
func TestFloodHurtsNobodyElse(t *testing.T) {
	b := start(t, say("calm"))
	p, other := newHandset(t, b, 1), newHandset(t, b, 2)
	p.connect()
	other.connect()
	var sent sync.WaitGroup
	sent.Go(func() {
		for range 10_000 {
			if p.ws.WriteMessage(websocket.TextMessage, []byte(`{"v":1,"id":"f","type":"ping"}`)) != nil {
				return
			}
		}
	})
	other.ask(talkA, "still there?")
	other.want(wire.TypeTurn)
	other.want(wire.TypeText)
	other.want(wire.TypeTurnEnd)
	p.closed()
	sent.Wait()
}

// Whoever goes on too fast is told so a few times, and then hung up on.
func TestTooManyFramesEndTheConnection(t *testing.T) {
	b := start(t, say())
	p := newHandset(t, b, 1)
	p.connect()
	warnings := 0
	for {
		if p.ws.WriteMessage(websocket.TextMessage, []byte(`{"v":1,"id":"f","type":"ping"}`)) != nil {
			break
		}
		f, err := p.receive()
		if err != nil {
			break
		}
		if f.code() == "too_fast" {
			warnings++
		}
	}
	if warnings != gateway.MaxOffences {
		t.Errorf("%d warnings, want %d", warnings, gateway.MaxOffences)
	}
}

func TestQuestionsAreLimitedOverAllConnections(t *testing.T) {
	b := start(t, say())
	p := newHandset(t, b, 1)
	for range 8 {
		p.connect()
		p.send(wire.TypeAsk, wire.Ask{Conversation: talkA, Counter: 1, Text: "x", Sig: strings.Repeat("A", 86)})
		f := p.want(wire.TypeError)
		p.ws.Close()
		if f.code() == "too_fast" {
			return
		}
	}
	t.Error("eight questions at once were let through")
}

func TestQuestionBounds(t *testing.T) {
	b := start(t, say())
	slot := uint32(1)
	for name, c := range map[string]struct {
		change func(*wire.Ask)
		code   string
	}{
		"empty":              {func(q *wire.Ask) { q.Text = " \n" }, "bad_question"},
		"too long":           {func(q *wire.Ask) { q.Text = strings.Repeat("é", wire.MaxQuestion/2+1) }, "bad_question"},
		"upper-case id":      {func(q *wire.Ask) { q.Conversation = strings.ToUpper(talkB) }, "bad_frame"},
		"no conversation":    {func(q *wire.Ask) { q.Conversation = strings.Repeat("0", 32) }, "bad_frame"},
		"short signature":    {func(q *wire.Ask) { q.Sig = q.Sig[1:] }, "bad_frame"},
		"padded signature":   {func(q *wire.Ask) { q.Sig = q.Sig[:84] + "==" }, "bad_frame"},
		"another's text":     {func(q *wire.Ask) { q.Text = "y" }, "bad_signature"},
		"another's counter":  {func(q *wire.Ask) { q.Counter++ }, "bad_signature"},
		"other conversation": {func(q *wire.Ask) { q.Conversation = talkB }, "bad_signature"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newHandset(t, b, slot)
			slot++ // each may ask but so often
			p.connect()
			q := p.askData(talkA, "x")
			c.change(&q)
			p.send(wire.TypeAsk, q)
			p.wantError(c.code)
		})
	}
}

func TestFrameTooLarge(t *testing.T) {
	b := start(t, say())
	p := newHandset(t, b, 1).dial()
	p.ws.WriteMessage(websocket.TextMessage, []byte(`{"v":1,"id":"`+strings.Repeat("x", wire.MaxFrame)))
	if code := p.closed(); code != websocket.CloseMessageTooBig {
		t.Errorf("closed with %d", code)
	}
}

func TestFramesAreStrict(t *testing.T) {
	b := start(t, say())
	p := newHandset(t, b, 1).dial()
	for name, text := range map[string]string{
		"not JSON":        `approve`,
		"an array":        `[1]`,
		"two values":      `{"v":1,"id":"a","type":"ping"} {}`,
		"unknown field":   `{"v":1,"id":"a","type":"ping","approve":true}`,
		"a field twice":   `{"v":1,"id":"a","type":"ping","type":"ask"}`,
		"another case":    `{"v":1,"id":"a","Type":"ping"}`,
		"wrong version":   `{"v":2,"id":"a","type":"ping"}`,
		"wrong type":      `{"v":"1","id":"a","type":"ping"}`,
		"long id":         `{"v":1,"id":"` + strings.Repeat("a", wire.MaxID+1) + `","type":"ping"}`,
		"not UTF-8":       "{\"v\":1,\"id\":\"\xff\",\"type\":\"ping\"}",
		"field in data":   `{"v":1,"id":"a","type":"hello","data":{"slot":1,"sig":"","role":"owner"}}`,
		"data of hello":   `{"v":1,"id":"a","type":"hello"}`,
		"cut off":         `{"v":1,"id":"a","type":"hello","data":{`,
		"deep":            `{"v":1,"id":"a","type":"ping","data":` + strings.Repeat("[", 12000),
		"data is a list":  `{"v":1,"id":"a","type":"hello","data":[]}`,
		"nothing":         ``,
		"pair without":    `{"v":1,"id":"a","type":"pair","data":{"code":"","name":"x","key":"x"}}`,
		"unknown in pair": `{"v":1,"id":"a","type":"pair","data":{"code":"A","name":"x","key":"x","role":"owner"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if err := p.ws.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
				t.Fatal(err)
			}
			p.wantError("bad_frame")
		})
	}
	if err := p.ws.WriteMessage(websocket.BinaryMessage, []byte(`{"v":1,"id":"a","type":"ping"}`)); err != nil {
		t.Fatal(err)
	}
	p.wantError("bad_frame")
}
