package story_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/audit/story"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/device"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// view is the readable rendering of a call, as the executor keeps it where the log policy is to.
func view(c *audittest.Call, text string) {
	blob, digest := audit.BlobOf(audit.BlobView, c.Inv, []byte("Search Wikipedia for\n"+text+"\nwikipedia.org"))
	c.Proposal.ArgsView = digest
	c.Blobs = append(c.Blobs, blob)
}

func TestPressedCallIsToldToItsEnd(t *testing.T) {
	b := newBox(t)
	b.noon()
	c := audittest.Required(b.clock, 7)
	view(&c, "tide times")
	raw, rawDigest := audit.BlobOf(audit.BlobRaw, c.Inv, []byte(` {"query": "tide times"}`))
	where, whereDigest := audit.BlobOf(audit.BlobDestination, c.Inv, []byte("wikipedia.org"))
	c.Proposal.RawDigest, c.Intent.Destination = rawDigest, whereDigest
	c.Blobs = append(c.Blobs, raw, where)
	i := b.intend(c)
	b.clock.Advance(time.Second)
	b.effect(i, audit.EffectRecord{
		Status: capabilities.Done, Sent: true, HTTPStatus: 200, ResultDigest: audittest.Sum("r"), ResultBytes: 9, GrantDigest: audittest.Sum("g"),
		RequestDigest: c.Intent.RequestDigest, Attempts: 1, Duration: time.Second, AnswerDigest: audittest.Sum("a"), Items: 5,
	}, audit.Entry{Inv: c.Inv, Payload: audit.Observe{
		Intent: i.Seq(), Matches: audit.Yes, Source: "web.search", Status: capabilities.Done, Final: true, By: audit.ByGuard,
	}})
	records := b.records()
	got := of(tell(t, records), c.Inv)
	j, err := json.MarshalIndent(got, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	j = append(j, '\n')
	const golden = "testdata/call.json"
	if *update {
		if err := os.WriteFile(golden, j, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(j)); diff != "" {
		t.Errorf("the JSON form is a contract (-want +got):\n%s", diff)
	}
	// The proof that each step names is there.
	for _, s := range got.Steps {
		for _, seq := range s.Records {
			if r := records[seq]; r.Inv != audit.ID(c.Inv) {
				t.Errorf("step %s names record %d, which is of %s", s.Name, seq, r.Inv)
			}
		}
	}
	var frame device.Frame
	frame.Set(3, 4, true)
	if p := step(got, story.StepShown).Pages; p == nil || len(p.Frames) != 1 || !bytes.Equal(p.Frames[0], frame[:]) {
		t.Errorf("the panel's picture is not the one that was drawn: %v", p)
	}
}

// TestCardThatNobodyReadIsToldFromItsFront: without a last page, times count from when it came to the front; what the log left out
// is said.
func TestCardThatNobodyReadIsToldFromItsFront(t *testing.T) {
	b := newBox(t)
	b.noon()
	c := audittest.Required(b.clock, 7)
	a := &c.Approval
	at := b.clock.Mono()
	a.Outcome, a.By, a.Receipt, a.Shown, a.Pressed, a.Completed = audit.Denied, audit.ByBox, nil, 0, 0, 0
	a.Presses = []device.Event{{Mono: at + 3*time.Second, Edge: device.Press, Seq: 1, Button: device.Deny}}
	a.Steps, a.LeftOut = []audit.PanelStep{
		{At: at, State: audit.PanelNext, Cause: 1},
		{At: at, State: audit.PanelNext, Cause: audit.PanelDrawn},
		{At: at + time.Second, State: audit.PanelWaiting, Cause: audit.PanelDrawn},
		{At: at + 2*time.Second, State: audit.PanelChallenge, Cause: audit.PanelDrawn},
		{At: at + 2*time.Second, State: 6, Cause: audit.PanelDrawn},
		{At: at + 3*time.Second, State: 8, Cause: 19},
	}, 5
	if _, err := b.Barrier(t.Context(), append(c.Entries(), audit.Entry{Inv: c.Inv, Payload: audit.Decision{
		Stage: capabilities.StageConfirm, Verdict: audit.Refuse, Status: capabilities.Denied, By: audit.ByBox,
	}})...); err != nil {
		t.Fatal(err)
	}
	got := step(of(tell(t, b.records()), c.Inv), story.StepDecided).Press
	want := &story.Press{
		Since: "it came to the front", Mode: "hold", LeftOut: 5,
		Edges: []story.Edge{{Button: "deny", Edge: "press", At: 3e9}},
		Moves: []story.Move{
			{Text: "it came to the front"},
			{Text: "NEXT REQUEST came on the glass"},
			{Text: "the announcement came on the glass", At: 1e9},
			{Text: "the number of taps came on the glass", At: 2e9},
			{Text: "armed came on the glass", At: 2e9},
			{Text: "denied", At: 3e9},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestHowCallsEnd(t *testing.T) {
	refuse := func(s capabilities.Status, code capabilities.Code, by audit.Actor) audit.Decision {
		return audit.Decision{Stage: capabilities.StageConfirm, Verdict: audit.Refuse, Status: s, Code: code, By: by, Reason: "the box's words"}
	}
	ending := func(o audit.ApprovalOutcome, by audit.Actor, d audit.Decision, more ...audit.Payload) func(*box, audittest.Call) {
		return func(b *box, c audittest.Call) {
			c.Approval.Outcome, c.Approval.By, c.Approval.Receipt = o, by, nil
			entries := c.Entries()
			for _, p := range append(more, d) {
				entries = append(entries, audit.Entry{Inv: c.Inv, Payload: p})
			}
			b.barrier(entries...)
		}
	}
	outcome := func(e audit.EffectRecord) func(*box, audittest.Call) {
		return func(b *box, c audittest.Call) { b.effect(b.intend(c), e) }
	}
	for _, c := range []struct {
		event   string
		do      func(*box, audittest.Call)
		outcome story.Outcome
		said    string
		last    story.StepName
	}{
		{"denied at the box", ending(audit.Denied, audit.ByBox, refuse(capabilities.Denied, "", audit.ByBox)), story.Denied, "Somebody at the box said no", story.StepRefused},
		{"denied by the phone", ending(audit.Withdrawn, audit.ByPhone, refuse(capabilities.Denied, "", audit.ByPhone), audit.Withdraw{By: audit.ByPhone, Slot: 2, Deny: true}), story.Denied, "The phone that asked said no", story.StepRefused},
		{"taken back", ending(audit.Withdrawn, audit.ByPhone, refuse(capabilities.Withdrawn, "", audit.ByPhone), audit.Withdraw{By: audit.ByPhone, Slot: 2}), story.Withdrawn, "taken back before it was decided", story.StepRefused},
		{"panic", ending(audit.Panicked, audit.ByBox, refuse(capabilities.Denied, capabilities.CodeFrozen, audit.ByBox)), story.Denied, "pressed panic", story.StepRefused},
		{"expired", ending(audit.Expired, audit.ByBox, refuse(capabilities.Expired, "", 0)), story.Expired, "Nobody decided in time", story.StepRefused},
		{"expired unseen", ending(audit.ExpiredUnseen, audit.ByBox, refuse(capabilities.ExpiredUnseen, "", 0)), story.ExpiredUnseen, "Nobody came to the box", story.StepRefused},
		{"display lost", ending(audit.DisplayLost, 0, refuse(capabilities.Rejected, capabilities.CodeDisplayUnavailable, 0)), story.Rejected, "refused it: the box's words", story.StepRefused},
		{"done", outcome(audit.EffectRecord{Status: capabilities.Done, Sent: true}), story.Done, "agreed, and it was done", story.StepAnswered},
		{"unreachable", outcome(audit.EffectRecord{Status: capabilities.Failed, Code: capabilities.CodeUnreachable}), story.Failed, "Nothing was sent: the destination did not answer", story.StepAnswered},
		{"remote error", outcome(audit.EffectRecord{Status: capabilities.Failed, Code: capabilities.CodeRemoteError, Sent: true}), story.Failed, "did not work: the destination answered that it failed", story.StepAnswered},
		{"no answer", outcome(audit.EffectRecord{Status: capabilities.Unknown, Code: capabilities.CodeTimeout, Sent: true}), story.Unknown, "no answer came in time. It may or may not have happened. The box did not repeat it", story.StepAnswered},
		{"panic while it ran", outcome(audit.EffectRecord{Status: capabilities.Unknown, Cause: audit.CausePanic, Sent: true}), story.Unknown, "pressed panic while it was under way", story.StepAnswered},
		{"power lost while it ran", func(b *box, c audittest.Call) { b.intend(c); b.cut() }, story.Unknown, "the power went, or it was restarted", story.StepAnswered},
		{"log read while it runs", func(b *box, c audittest.Call) { b.intend(c) }, story.Open, "It had begun when this log ends", story.StepPromised},
	} {
		t.Run(c.event, func(t *testing.T) {
			b := newBox(t)
			call := audittest.Required(b.clock, 1)
			c.do(b, call)
			s := of(tell(t, b.records()), call.Inv)
			if s.Outcome != c.outcome || !strings.Contains(s.Said, c.said) {
				t.Errorf("told as %s: %q", s.Outcome, s.Said)
			}
			if n := names(s); len(n) == 0 || n[len(n)-1] != c.last {
				t.Errorf("steps %v, want %s at the end", n, c.last)
			}
			if s.Seal == 0 || s.Capability != "web.search" || s.Phone != 2 {
				t.Errorf("sealed by %d, of %q for phone %d", s.Seal, s.Capability, s.Phone)
			}
		})
	}
}

func TestUnknownOutcomeGoesOnUntilSomebodyHasSeenIt(t *testing.T) {
	b := newBox(t)
	c := audittest.Required(b.clock, 1)
	i := b.intend(c)
	b.cut()
	look := audit.Observe{Intent: i.Seq(), Source: "home.look", Status: capabilities.Unknown, By: audit.ByGuard, Lookup: audit.ID{1}}
	seen := audit.Observe{Intent: i.Seq(), Status: capabilities.Unknown, Final: true, By: audit.ByPhone, Slot: 3}
	b.barrier(audit.Entry{Inv: c.Inv, Payload: look})
	b.barrier(audit.Entry{Inv: c.Inv, Payload: seen})
	stories := tell(t, b.records())
	s := of(stories, c.Inv)
	if s.Outcome != story.Unknown || !strings.Contains(s.Said, "Somebody has seen this since") {
		t.Errorf("%s: %s", s.Outcome, s.Said)
	}
	if n := names(s); !slices.Equal(n[len(n)-2:], []story.StepName{story.StepObserved, story.StepObserved}) {
		t.Errorf("steps %v", n)
	}
	last := stories[len(stories)-1]
	if last.ID != s.ID {
		t.Errorf("told before it ended: the last story is %q", last.Headline)
	}
	n := 0
	for _, other := range stories {
		if other.Kind == story.KindStart && strings.Contains(other.Said, "cut off, so that nobody can say what became of them: 1") {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d starts say that a call was cut off", n)
	}
}

// TestMissingTextsSayWhy: what is not there was withheld by policy, removed since, or never kept, and the story says which.
func TestMissingTextsSayWhy(t *testing.T) {
	for _, c := range []struct {
		event  string
		change func(*audittest.Call)
		remove bool
		pages  story.Kept
		words  string
	}{
		{"kept", func(*audittest.Call) {}, false, story.KeptYes, "showed one page."},
		{"withheld by the log policy", func(c *audittest.Call) {
			c.Proposal.Log, c.Blobs, c.Approval.Pages = capabilities.LogOmit, nil, nil
		}, false, story.KeptWithheld, "withheld"},
		{"removed since", func(*audittest.Call) {}, true, story.KeptRedacted, "removed from the log since"},
		{"never kept", func(c *audittest.Call) { c.Blobs = nil }, false, story.KeptNo, "not in the log"},
	} {
		t.Run(c.event, func(t *testing.T) {
			b := newBox(t)
			call := audittest.Required(b.clock, 1)
			c.change(&call)
			b.effect(b.intend(call), audit.EffectRecord{Status: capabilities.Done, Sent: true})
			records := b.records()
			for i := range records {
				if records[i].Kind == audit.KindBlob && c.remove {
					records[i] = audit.Entered{Record: audit.Record{Seq: records[i].Seq}, Redacted: true}
				}
			}
			s := of(tell(t, records), call.Inv)
			shown := step(s, story.StepShown)
			if shown.Pages.State != c.pages || shown.Pages.Count != 1 || !strings.Contains(shown.Text, c.words) {
				t.Errorf("%+v: %s", shown.Pages, shown.Text)
			}
			if l := literal(step(s, story.StepProposed), "what the model wrote"); l.State != c.pages || l.Digest == "" || (l.Text != "") != (c.pages == story.KeptYes) {
				t.Errorf("what the model wrote: %+v", l)
			}
			if l := literal(step(s, story.StepSent), "the exact request"); l.State != c.pages {
				t.Errorf("the request: %+v", l)
			}
			if !strings.Contains(s.Headline, "web.search") || strings.Contains(s.Headline, "tide times") != (c.pages == story.KeptYes) {
				t.Errorf("headline %q", s.Headline)
			}
		})
	}
}

// TestRequestIsShownWithWhereItGoes: the digest that is shown and signed covers both, and so does the literal.
func TestRequestIsShownWithWhereItGoes(t *testing.T) {
	b := newBox(t)
	c := audittest.Required(b.clock, 1)
	b.effect(b.intend(c), audit.EffectRecord{Status: capabilities.Done, Sent: true})
	s := step(of(tell(t, b.records()), c.Inv), story.StepSent)
	l := literal(s, "the exact request")
	if l.State != story.KeptYes || !bytes.HasPrefix(l.Bytes, []byte("GET /w/api.php")) || l.Digest != c.Intent.RequestDigest.String() {
		t.Errorf("%+v", l)
	}
	if !slices.Contains(s.Facts, story.Fact{Name: "goes to", Value: "https://wiki.example:443"}) {
		t.Errorf("%+v", s.Facts)
	}
}

func TestTimesBeforeTheClockWasSetAreEstimated(t *testing.T) {
	b := newBox(t)
	early := audittest.Automatic(1)
	b.effect(b.intend(early), audit.EffectRecord{Status: capabilities.Done})
	b.clock.Advance(time.Hour)
	b.noon()
	late := audittest.Automatic(2)
	b.effect(b.intend(late), audit.EffectRecord{Status: capabilities.Done})
	stories := tell(t, b.records())
	if w := of(stories, early.Inv).When; w.Clock != story.ClockEstimated || w.Text != "about 2026-11-30 11:00:00 UTC" {
		t.Errorf("an hour before noon is %+v", w)
	}
	if w := step(of(stories, early.Inv), story.StepProposed).When; w == nil || w.Clock != story.ClockEstimated {
		t.Errorf("a step's time is %+v", w)
	}
	if w := of(stories, late.Inv).When; w.Clock != story.ClockSynced || w.Text != "2026-11-30 12:00:00 UTC" {
		t.Errorf("noon is %+v", w)
	}
	if !slices.IsSortedFunc(stories, func(a, b story.Story) int { return int(a.First) - int(b.First) }) {
		t.Error("stories that ended in order are told in another")
	}
}

func TestTimesOfARunInWhichTheClockWasNeverSet(t *testing.T) {
	b := newBox(t)
	early := audittest.Automatic(1)
	b.effect(b.intend(early), audit.EffectRecord{Status: capabilities.Done})
	s := of(tell(t, b.records()), early.Inv)
	if s.When.Clock != story.ClockUnset || s.When.Unix != 0 || s.When.Text != "start+1h0m0s" {
		t.Errorf("%+v", s.When)
	}
}

// evil commands a terminal, reorders, hides, and would be markup or a formula.
const evil = "\x1b]52;c;aGk=\x07\u009b2J\u202e\u200b\ufeff=cmd|' /C calc'!A0<script>alert(1)</script>“\\"

func TestOtherPeoplesTextIsPrintable(t *testing.T) {
	b := newBox(t)
	c := audittest.Required(b.clock, 1)
	view(&c, evil)
	c.Proposal.Name, c.Proposal.Taint = []byte(evil), []audit.Bytes{[]byte(evil)}
	raw, digest := audit.BlobOf(audit.BlobRaw, c.Inv, []byte(evil))
	c.Blobs = append(c.Blobs, raw)
	c.Proposal.RawDigest = digest
	b.effect(b.intend(c), audit.EffectRecord{Status: capabilities.Done, Sent: true})
	b.barrier(
		audit.Entry{Payload: audit.Claim{From: audit.ByGateway, Class: audit.ClaimParseFailure, Text: []byte(evil), Name: []byte(evil)}},
		audit.Entry{Payload: audit.Tool{ID: audit.Digest{1}, State: audit.ToolDrifted, Name: []byte(evil), Version: []byte("\xff"), Publisher: []byte(evil)}},
		audit.Entry{Payload: audit.Export{OK: true, Volume: []byte(evil)}},
	)
	stories := tell(t, b.records())
	for _, s := range stories {
		walk(s, func(text string) {
			if text != "" && story.Printable([]byte(strings.ReplaceAll(text, `\`, ""))) != strings.ReplaceAll(text, `\`, "") {
				t.Errorf("%s is not printable: %q", s.Kind, text)
			}
		})
	}
	l := literal(step(of(stories, c.Inv), story.StepProposed), "what the model wrote")
	if string(l.Bytes) != evil || !strings.Contains(l.Text, `\u202e`) {
		t.Errorf("the exact bytes are lost: %+v", l)
	}
	if h := of(stories, c.Inv).Headline; strings.Count(h, "“") != 1 || strings.Count(h, "”") != 1 {
		t.Errorf("a quotation can be ended from within: %s", h)
	}
}

// walk visits every text of a story.
func walk(s story.Story, f func(string)) {
	f(s.Headline)
	f(s.Said)
	f(s.Code)
	f(s.Destination)
	f(s.Capability)
	for _, step := range s.Steps {
		f(step.Text)
		for _, fact := range step.Facts {
			f(fact.Value)
		}
		for _, l := range step.Literals {
			f(l.Text)
		}
	}
}

func TestEventsThatAreNoCalls(t *testing.T) {
	text, textDigest := audit.BlobOf(audit.BlobAdmin, [16]byte{}, []byte("Anna's phone"))
	for _, c := range []struct {
		event   string
		entries []audit.Entry
		kind    story.Kind
		outcome story.Outcome
		words   string
	}{
		{"a phone is paired", []audit.Entry{text, {Payload: audit.Admin{Action: audit.AdminPair, Outcome: audit.Approved, By: audit.ByBox, Slot: 1, Role: 3, Text: textDigest}}}, story.KindAdmin, story.Done, "Pairing of a phone"},
		{"a pairing is denied", []audit.Entry{{Payload: audit.Admin{Action: audit.AdminPair, Outcome: audit.Denied, By: audit.ByBox}}}, story.KindAdmin, story.Denied, "Pairing of a phone (denied)"},
		{"pairing mode closes", []audit.Entry{{Payload: audit.Admin{Action: audit.AdminPairing, Outcome: audit.Approved, By: audit.ByBox, On: audit.No}}}, story.KindAdmin, story.Done, "Pairing mode was closed"},
		{"an export fails", []audit.Entry{{Payload: audit.Export{Code: "no_room"}}}, story.KindAdmin, story.Failed, "could not be copied"},
		{"a cable was offered", []audit.Entry{{Payload: audit.Export{OK: true, Cable: true, Code: "ejected"}}}, story.KindAdmin, story.Done, "was offered over the USB cable"},
		{"a cable fails", []audit.Entry{{Payload: audit.Export{Cable: true, Code: "no_room"}}}, story.KindAdmin, story.Failed, "could not be copied"},
		{"panic", []audit.Entry{{Payload: audit.Freeze{On: true, By: audit.ByBox, Killed: 2}}}, story.KindFreeze, story.Noted, "Panic: the box was frozen"},
		{"release", []audit.Entry{{Payload: audit.Freeze{By: audit.ByBox}}}, story.KindFreeze, story.Noted, "The box was released"},
		{"the panel fails", []audit.Entry{{Payload: audit.Fault{Class: audit.FaultDisplay, Where: "panel"}}}, story.KindFault, story.Failed, "The panel stopped answering"},
		{"the buttons fail", []audit.Entry{{Payload: audit.Fault{Class: audit.FaultButton, Where: "panel"}}}, story.KindFault, story.Failed, "A button stopped answering"},
		{"approve is pressed too often", []audit.Entry{{Payload: audit.Fault{Class: audit.FaultButton, Where: "panel", Code: "doubted"}}}, story.KindFault, "", "Approve was pressed too often, so the box asked for taps for a while"},
		{"a flood", []audit.Entry{{Payload: audit.Suppressed{Of: audit.KindClaim, Count: 9, From: audit.ByGateway}}}, story.KindSuppressed, story.Noted, "9 records were too many to keep"},
		{"a call cannot be parsed", []audit.Entry{{Payload: audit.Claim{From: audit.ByGateway, Class: audit.ClaimParseFailure, Code: capabilities.CodeTruncated, Slot: 2}}}, story.KindClaim, story.Rejected, "a call that cannot be read"},
		{"a turn ends", []audit.Entry{{Payload: audit.Claim{From: audit.ByGateway, Class: audit.ClaimTurn, Slot: 2, Offered: []string{"web_search__v1"}}}}, story.KindTurn, story.Noted, "Phone 2 asked a question: no proposal"},
		{"a feed", []audit.Entry{{Payload: audit.Feed{ID: "pihole", Status: capabilities.Failed, Code: capabilities.CodeUnreachable}}}, story.KindFeed, story.Failed, "Feed “pihole”"},
		{"a tool drifts", []audit.Entry{{Payload: audit.Tool{ID: audit.Digest{1}, State: audit.ToolDrifted, Name: []byte("lamp")}}}, story.KindTool, story.Noted, "The tool “lamp” is no longer what was reviewed"},
		{"texts are removed", []audit.Entry{{Payload: audit.Redact{Seq: 1, By: audit.ByTimer}}, {Payload: audit.Redact{Seq: 2, By: audit.ByTimer}}}, story.KindAdmin, story.Done, "2 literal texts were removed"},
	} {
		t.Run(c.event, func(t *testing.T) {
			b := newBox(t)
			b.noon()
			b.barrier(c.entries...)
			stories := tell(t, b.records())
			if len(stories) != 4 || stories[0].Kind != story.KindStart || stories[1].Kind != story.KindStart || stories[2].Kind != story.KindClock {
				t.Fatalf("%d stories, want the beginning, the start, the clock and one more", len(stories))
			}
			s := stories[3]
			if s.Kind != c.kind || s.Outcome != c.outcome || !strings.Contains(s.Headline, c.words) || s.Said == "" {
				t.Errorf("%s %s %q: %s", s.Kind, s.Outcome, s.Headline, s.Said)
			}
			if s.Seal == 0 || s.ID[0] != '#' || s.When.Clock != story.ClockSynced {
				t.Errorf("sealed by %d, id %s, at %+v", s.Seal, s.ID, s.When)
			}
		})
	}
}

func TestPairingTellsWhatThePanelAsked(t *testing.T) {
	b := newBox(t)
	text, digest := audit.BlobOf(audit.BlobAdmin, [16]byte{}, []byte("Anna's phone"))
	b.barrier(text, audit.Entry{Payload: audit.Admin{Action: audit.AdminPair, Outcome: audit.Approved, By: audit.ByBox, Slot: 1, Text: digest}})
	stories := tell(t, b.records())
	if l := literal(stories[len(stories)-1].Steps[0], "what the panel asked about"); l.Text != "Anna's phone" || l.State != story.KeptYes {
		t.Errorf("%+v", l)
	}
}
