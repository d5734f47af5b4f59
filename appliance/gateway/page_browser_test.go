package gateway_test

import (
	"context"
	"encoding/json"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/conversation"
	"assent.home.arpa/appliance/gateway"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
)

// hostile is prose that tries to become something that can be tapped, or that fetches.
const hostile = "See [details](https://evil.example/?d=notes), ![x](https://evil.example/x.png), <img src=https://evil.example/y.png onerror=alert(1)>, " +
	"<a href=\"https://evil.example/\">here</a>, https://evil.example/bare, <https://evil.example/auto>, mail me@evil.example or call +44 20 7946 0000.\n\n[ref]: https://evil.example/ref"

var citations = json.RawMessage(`{"citations":[
	{"title":"Eiffel Tower","url":"https://en.wikipedia.org/wiki/Eiffel_Tower","content":"The Eiffel Tower is a wrought-iron lattice tower in Paris. It is 330 metres tall.","retrieved_at":"2026-11-03T12:00:00Z"},
	{"title":"<b>Not bold</b>","url":"javascript:alert(1)","content":"<script>alert(1)</script> [x](https://evil.example)","retrieved_at":"2026-11-03T12:00:00Z"},
	{"title":"A very long address","url":"https://en.wikipedia.org/wiki/` + strings.Repeat("Long_", 40) + `","content":"","retrieved_at":"2026-11-03T12:00:00Z"}]}`)

var health = json.RawMessage(`{"uptime":"3 days 2 hours","uptime_seconds":266400,"cpu_count":4,"load_1_min":0.42,"memory_total_mib":3792,"memory_available_mib":2210,"disk_free_mib":21480,"temperature_celsius":51.2,"under_voltage":false}`)

// decided is a press that has counted, of a call whose outcome is not there yet.
const decided = "decided"

// backwards is text of people who write from right to left, with an override that nothing ends; longest has no place to break.
const (
	backwards = "מגדל אייפל 330 \u202etall"
	longest   = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft"
)

// actor plays the turns that the page is shown; the test holds the press.
type actor struct {
	press chan string
	talk  *script
	turns int
}

func (a *actor) run(ctx context.Context, q conversation.Turn, emit conversation.Emit) error {
	a.turns++
	id, turn := q.Conversation.String(), "t"+strconv.Itoa(a.turns)
	items := []wire.Item{{Kind: "question", Turn: turn, Text: q.Text}}
	emit(wire.TypeTurn, wire.Turn{Conversation: id, Turn: turn, Text: q.Text})
	say := func(s string) {
		emit(wire.TypeText, wire.Text{Conversation: id, Turn: turn, Text: s})
		items = append(items, wire.Item{Kind: "prose", Turn: turn, Text: s})
	}
	result := func(o wire.Outcome) {
		emit(wire.TypeResult, wire.Result{Conversation: id, Turn: turn, Outcome: o})
		items = append(items, wire.Item{Kind: "outcome", Turn: turn, Outcome: &o})
	}
	end := wire.TurnEnd{Conversation: id, Turn: turn, Reason: "complete"}
	switch q.Text {
	case "search":
		say("I will look that up.")
		card := wire.Pending{
			Conversation: id, Turn: turn, Invocation: invocation, Capability: "web.search", Version: 1, Revision: "mediawiki/1",
			Title: "Search Wikipedia for", Text: "how tall is\nthe Eiffel tower", Destination: "wikipedia.org", Pages: 3,
			Request: "GET /w/api.php?action=query&list=search&srsearch=how+tall HTTP/1.1\r\nHost: en.wikipedia.org\r\n\r\n", ArgsDigest: strings.Repeat("ab", 32),
		}
		emit(wire.TypePending, card)
		o := wire.Outcome{Invocation: invocation, Capability: "web.search", Version: 1, Status: decided}
		for o.Status == decided {
			select {
			case o.Status = <-a.press:
			case <-ctx.Done():
				o.Status = "withdrawn"
			}
			if o.Status == decided {
				card.Decided = true
				emit(wire.TypePending, card)
			}
		}
		if o.Status == "done" {
			o.RetrievedAt, o.Data = "2026-11-03T12:00:00Z", citations
		} else {
			o.Stage = "confirm"
		}
		result(o)
		say("The tower is 330 metres tall.")
	case "cut off":
		emit(wire.TypePending, wire.Pending{Conversation: id, Turn: turn, Invocation: invocation, Title: "Search Wikipedia for", Text: "tea", Pages: 1})
		a.talk.keep(q.Conversation, wire.Snapshot{Conversation: id, Items: items})
		<-ctx.Done()
		return nil
	case "health":
		result(wire.Outcome{Invocation: strings.Repeat("11", 16), Capability: "system.health", Version: 1, Status: "done", RetrievedAt: "2026-11-03T12:00:00Z", Data: health})
		say("All is well.")
	case "hostile":
		for _, word := range strings.SplitAfter(hostile, " ") {
			say(word)
		}
	case "stopped":
		result(wire.Outcome{Invocation: invocation, Capability: "web.search", Version: 1, Status: "rejected", Stage: "policy", Code: "frozen", Message: "the box is frozen"})
		say("I cannot search at the moment.")
	case backwards:
		say(backwards + "\n" + longest)
		emit(wire.TypePending, wire.Pending{
			Conversation: id, Turn: turn, Invocation: invocation, Capability: "web.search", Version: 1, Revision: "mediawiki/1", Pages: 3,
			Title: "Search Wikipedia for", Text: backwards + "\n" + longest, Destination: "ויקיפדיה.org", Request: "GET /?q=" + backwards,
		})
		select {
		case <-a.press:
		case <-ctx.Done():
			return nil
		}
		result(wire.Outcome{Invocation: invocation, Capability: "web.search", Version: 1, Status: "done", Data: json.RawMessage(
			`{"citations":[{"title":"` + backwards + `","url":"` + backwards + `","content":"` + backwards + `"}]}`)})
		result(wire.Outcome{Invocation: strings.Repeat("22", 16), Capability: "system.health", Version: 1, Status: "done", Data: json.RawMessage(
			`{"` + backwards + `":"` + backwards + `","` + longest + `":"` + longest + `"}`)})
	case "endings":
		for _, o := range []wire.Outcome{
			{Status: "rejected", Stage: "parse", Code: "malformed_call"},
			{Capability: "web.search", Status: "rejected", Stage: "policy", Code: "cool_down", RetryIn: 120},
			{Capability: "web.search", Status: "expired_unseen", Stage: "confirm"},
			{Capability: "web.search", Status: "rejected", Stage: "confirm", Code: "display_unavailable"},
			{Capability: "web.search", Status: "unknown", Stage: "execute", Code: "interrupted"},
		} {
			result(o)
		}
		end.Reason, end.Code, end.Message = "failed", "model_unavailable", "the model stopped in the middle of its answer; ask again"
	default:
		say("You said: " + q.Text)
	}
	a.talk.keep(q.Conversation, wire.Snapshot{Conversation: id, Items: items})
	emit(wire.TypeTurnEnd, end)
	return nil
}

func startPage(t *testing.T, adjust ...func(*gateway.Options)) (*box, *actor) {
	t.Helper()
	a := &actor{press: make(chan string)}
	b := start(t, a.run, adjust...)
	a.talk = b.turns
	return b, a
}

func TestPage(t *testing.T) {
	browser := launch(t)
	for name, test := range map[string]func(*testing.T, context.Context){
		"a question that needs a press":  pagePress,
		"prose yields nothing to tap":    pageHostile,
		"connection lost and back":       pageResume,
		"what the box says about itself": pageStates,
		"pairing refused":                pagePairing,
		"a page without https":           pageInsecure,
		"taken back":                     pageDeny,
		"text that runs the other way":   pageBackwards,
		"unknown outcomes":               pageInbox,
		"a record that became shorter":   pageRollback,
		"trouble with the record":        pageAuditTrouble,
		"the record as it grows":         pageRecord,
		"a question that was cut off":    pageCutOff,
		"another start of the box":       pageRestart,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, browser)
		})
	}
}

// A28, A29, C25: the card waits, nothing on it approves, and citations are apart from prose and open by the sheet alone.
func pagePress(t *testing.T, browser context.Context) {
	b, a := startPage(t)
	p := openTab(t, browser, "http://"+b.addr+"/")
	p.see("#code")
	p.shot("pairing")
	p.pair(b)
	p.see("#empty")
	p.shot("empty")
	p.dark(true)
	p.shot("empty-dark")
	p.dark(false)
	p.ask("search")
	p.see(".pending")
	p.says(".glass-text", "⏎")
	if got := p.text(".glass-to strong"); got != "wikipedia.org" {
		t.Errorf("destination %q", got)
	}
	p.shot("pending")
	p.dark(true)
	p.shot("pending-dark")
	p.dark(false)
	p.click(".pending summary")
	p.says(".pending dd", "GET /w/api.php?action=query&list=search&srsearch=how+tall HTTP/1.1")
	p.says(".pending dd", "mediawiki/1")
	p.shot("pending-details")
	labels := read[[]string](p, `[...document.querySelectorAll('.pending button, .pending a, .pending input, .pending summary')].map((n) => n.textContent)`)
	if diff := cmp.Diff([]string{"Details", "Don’t do it"}, labels); diff != "" {
		t.Errorf("what can be tapped on the card (-want +got)\n%s", diff)
	}
	a.press <- decided
	p.says(".working .look", "Approved, working…")
	if n := p.count(".pending button"); n != 0 {
		t.Error("what was approved can still be taken back")
	}
	if got := p.text("#spoken"); got != "Approved at the box. It is under way." {
		t.Errorf("said is %q", got)
	}
	p.shot("working")
	p.dark(true)
	p.shot("working-dark")
	p.dark(false)
	a.press <- "done"
	p.says(".prose", "The tower is 330 metres tall.")
	p.gone(".pending")
	if n := p.count(".prose .citations, .citations .prose"); n != 0 {
		t.Error("citations and prose are mixed")
	}
	if n := p.count(".citations li"); n != 3 {
		t.Errorf("%d citations", n)
	}
	if n := p.count(".citations b, .citations script, .log a"); n != 0 {
		t.Errorf("%d elements came from a web page", n)
	}
	p.shot("result")
	p.dark(true)
	p.shot("result-dark")
	p.dark(false)
	p.run(chromedp.Evaluate[chromedp.Void](`scrollTo(0, 0)`))
	p.shot("result-top")
	p.click(".citations li:nth-child(3) button")
	p.see("#sheet[open] #sheet-open")
	if got := p.text("#sheet-url"); got != "https://en.wikipedia.org/wiki/"+strings.Repeat("Long_", 40) {
		t.Errorf("the sheet shows %q", got)
	}
	p.shot("sheet")
	p.click("#sheet-close")
	p.click(".citations li:nth-child(2) button")
	p.says("#sheet-host", "cannot be opened")
	if read[bool](p, `document.getElementById('sheet-open').hasAttribute('href')`) {
		t.Error("a javascript: address can be opened")
	}
}

// C25: prose yields no link, image, form or detected address.
func pageHostile(t *testing.T, browser context.Context) {
	b, _ := startPage(t)
	p := openTab(t, browser, "http://"+b.addr+"/")
	p.pair(b)
	p.ask("hostile")
	p.says(".prose", "evil.example/ref")
	if got := p.text(".prose"); got != hostile {
		t.Errorf("the prose was changed (-want +got)\n%s", cmp.Diff(hostile, got))
	}
	if n := p.count(".log a, .log img, .log form, .log iframe, .log button, .log [href], .log [src], .log [onerror]"); n != 0 {
		t.Errorf("prose became %d elements", n)
	}
	if n := p.count(`.prose *`); n != 0 {
		t.Errorf("prose has %d child elements", n)
	}
	if n := p.count(`meta[name="format-detection"][content*="telephone=no"]`); n != 1 {
		t.Error("phones may turn numbers in prose into links")
	}
	p.shot("hostile")
}

// D5: the connection breaks while a card waits; the press happens; the result is there once and the card is not.
func pageResume(t *testing.T, browser context.Context) {
	b, a := startPage(t)
	p := openTab(t, browser, "http://"+b.addr+"/")
	p.pair(b)
	p.ask("search")
	p.see(".pending")
	b.guard.stop()
	p.says(".banner", "guards requests")
	p.shot("guard-lost")
	b.guard.start(t)
	p.says("#state", "Connected")
	a.press <- "done"
	p.says(".prose", "The tower is 330 metres tall.")
	if n := p.count(".result"); n != 1 {
		t.Errorf("the result is there %d times", n)
	}
	p.gone(".pending")
	p.gone("#banner-guard")
	p.run(chromedp.Reload())
	p.says(".prose", "The tower is 330 metres tall.")
	if n := p.count(".result"); n != 1 {
		t.Errorf("after a reload the result is there %d times", n)
	}
	p.click("#new")
	p.see("#empty")
	p.ask("hello")
	p.says(".prose", "You said: hello")
	if n := p.count(".question"); n != 1 {
		t.Errorf("a new conversation has %d questions", n)
	}
	b.cancel()
	p.says(".banner", "cannot be reached")
	p.shot("offline")
}

func pageStates(t *testing.T, browser context.Context) {
	b, _ := startPage(t, func(o *gateway.Options) {
		o.Scripted, o.Fixture = true, "Web search uses a practice site: nothing leaves this computer."
	})
	b.guard.frozen = true
	p := openTab(t, browser, "http://"+b.addr+"/")
	p.pair(b)
	p.says(".banner", "Not a language model")
	p.says(".banner", "practice site")
	p.says("#banner-frozen", "holds both of its buttons for 3 seconds")
	p.ask("stopped")
	p.says(".ended", "The box was frozen.")
	p.shot("frozen")
	if n := read[int](p, `document.body.innerText.match(/frozen/gi).length`); n != 2 {
		t.Errorf("that the box is frozen is said %d times, once as what to do and once as what happened is enough", n)
	}
	p.ask("health")
	p.says(".prose", "All is well.")
	p.says("td", "51.2 °C")
	p.shot("health")
	b.guard.notice(t, ipc.Notice{Class: ipc.NoticeUnfrozen})
	p.says(".banner", "The box was released")
	p.gone("#banner-frozen")
	p.ask("endings")
	p.says(".ended", "2 minutes")
	p.says(".ended", "cannot tell whether it took effect")
	p.says(".problem", "The model stopped in the middle")
	p.shot("endings")
	p.dark(true)
	p.shot("endings-dark")
}

func pagePairing(t *testing.T, browser context.Context) {
	b, _ := startPage(t)
	p := openTab(t, browser, "http://"+b.addr+"/")
	p.see("#code")
	p.run(chromedp.SendKeys(chromedp.CSS("#code"), "000000"), chromedp.SendKeys(chromedp.CSS("#name"), "Anna"))
	p.click(".pair button")
	p.says(".pair-status", "not the code")
	p.shot("pairing-wrong")
	p.run(chromedp.SetValue(chromedp.CSS("#code"), "482913"))
	p.click(".pair button")
	p.says(".pair-status", "hold both buttons")
	compared := p.text(".key-code")
	if sent := b.guard.sentKey(); compared != wire.KeyCode("482913", sent) {
		t.Errorf("the page says to compare %q with what the box shows of %x", compared, sent)
	}
	p.shot("pairing-wait")
	b.guard.accept <- false
	p.says(".pair-status", "did not accept")
	p.shot("pairing-refused")
	p.click(".pair button")
	b.guard.accept <- true
	p.see("#composer")
	// The private half of the key is nowhere that a script could read.
	exported := read[bool](p, `new Promise((done) => {
		const r = indexedDB.open('assent');
		r.onsuccess = () => {
			const g = r.result.transaction('phone').objectStore('phone').get('identity');
			g.onsuccess = () => crypto.subtle.exportKey('pkcs8', g.result.keys.privateKey).then(() => done(true), () => done(false));
		};
	})`, chromedp.EvalAwaitPromise)
	if exported {
		t.Error("the phone's key can be copied")
	}
	b.guard.unpair(1)
	p.run(chromedp.Reload())
	p.says("#setup", "does not know this phone")
	p.shot("pairing-again")
}

func pageInsecure(t *testing.T, browser context.Context) {
	b, _ := startPage(t, func(o *gateway.Options) { o.Config.Gateway.Hosts = []string{"box.lan"} })
	_, port, _ := net.SplitHostPort(b.addr)
	p := openTab(t, browser, "http://box.lan:"+port+"/")
	p.says("#setup", "https://box.lan:"+port+"/")
	p.shot("insecure")
	// What a phone sees that does not take a live connection on an exception.
	p.run(chromedp.Evaluate[chromedp.Void](`import('/js/setup.js').then((setup) => setup.untrusted(() => {}))`, chromedp.EvalAwaitPromise))
	p.says("#setup", "does not trust the box yet")
	p.shot("untrusted")
}

func pageDeny(t *testing.T, browser context.Context) {
	b, a := startPage(t)
	p := openTab(t, browser, "http://"+b.addr+"/")
	p.pair(b)
	p.ask("search")
	p.see(".pending")
	p.click(".pending > button")
	if w := await[*ipc.Withdraw](t, b.guard, 1); w[0].Inv.String() != invocation {
		t.Errorf("withdrawn: %+v", w[0])
	}
	a.press <- "denied"
	p.says(".ended", "Somebody said no")
	p.gone(".pending")
	p.shot("denied")
	p.ask("search")
	p.see(".pending")
	a.press <- "expired"
	p.says(".ended", "not decided in time")
	p.shot("expired")
	p.ask("search")
	p.see(".pending")
	p.click("#stop")
	p.says(".ended", "Taken back")
}

// What a person, a model, a web site or a name says in another direction turns nothing around it, wherever it stands.
func pageBackwards(t *testing.T, browser context.Context) {
	b, a := startPage(t, func(o *gateway.Options) {
		o.Config.Box.Name, o.ModelLabel = "תיבה", "מודל "+longest
	})
	set := unknown()
	set.Slot, set.Phone, set.Text, set.Destination = 9, "הטלפון", backwards, "ויקיפדיה.org"
	b.guard.setInbox(set)
	p := openTab(t, browser, "http://"+b.addr+"/")
	p.pair(b)
	turned := func(at string) {
		t.Helper()
		loose := read[[]string](p, `(() => {
			const out = [];
			const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
			for (let n; (n = walk.nextNode());) {
				const own = n.parentElement; // it must hold nothing else, and be apart from what stands around it
				const apart = own.hasAttribute('dir') && /isolate|plaintext/.test(getComputedStyle(own).unicodeBidi);
				if (/[\u0590-\u05ff\u202e]/.test(n.data) && !apart) out.push(n.parentElement.className + ': ' + n.data);
			}
			return out;
		})()`)
		for _, l := range loose {
			t.Errorf("%s: text that can turn what stands around it: %s", at, l)
		}
	}
	p.ask(backwards)
	p.see(".pending")
	turned("a card")
	p.shot("backwards-card")
	a.press <- "done"
	p.see(".citations")
	p.says("table", longest)
	turned("a result")
	p.shot("backwards-result")
	p.run(chromedp.Evaluate[chromedp.Void](`scrollTo(0, 0)`))
	p.shot("backwards-top")
	p.click("#lost")
	p.says("#about .said", "330")
	turned("what happened")
	p.shot("backwards-inbox")
}

// A question that the box did not come to answer says so, and nothing goes on asking for a press.
func pageCutOff(t *testing.T, browser context.Context) {
	b, _ := startPage(t)
	p := openTab(t, browser, "http://"+b.addr+"/")
	p.pair(b)
	p.ask("cut off")
	p.see(".pending")
	p.says("#spoken", "Something waits for a press")
	p.run(chromedp.Reload())
	p.says(".cut-off", "No answer came: the question was stopped, or the box was. What waited for a press was not done.")
	p.gone(".pending")
	if got := p.text("#spoken"); got != "" {
		t.Errorf("said is %q", got)
	}
	p.shot("cut-off")
}

// A notice of how the box was set up does not outlive that.
func pageRestart(t *testing.T, browser context.Context) {
	var o gateway.Options
	b, _ := startPage(t, func(first *gateway.Options) {
		first.Fixture = "Web search uses a practice site: nothing leaves this computer."
		o = *first
	})
	p := openTab(t, browser, "http://"+b.addr+"/")
	p.pair(b)
	p.says("#banner-fixture", "practice site")
	b.cancel()
	<-b.done
	l, err := net.Listen("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	o.Listener, o.Fixture = l, ""
	var ctx context.Context
	ctx, b.cancel = context.WithCancel(context.Background())
	go func() { b.done <- gateway.RunWith(ctx, o, b.turns) }()
	p.gone("#banner-fixture")
	p.says("#state", "Connected")
}
