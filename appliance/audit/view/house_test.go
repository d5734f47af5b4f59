package view_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/audit/view"
	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

// evil would be markup, a formula, a script's end, an escape sequence or another order of letters.
const evil = "=cmd|' /C calc'!A0</script><img src=https://evil.example/x onerror=alert(1)>';alert(2);//\u2028\u202e\x1b[2J"

// house is a household's log that a test writes.
type house struct {
	*audit.Log
	t     testing.TB
	clock *clocktest.Clock
	disk  *audittest.Disk
	calls uint32
}

func newHouse(t testing.TB) *house {
	t.Helper()
	h := &house{t: t, clock: clocktest.New(), disk: audittest.NewDisk()}
	h.start()
	return h
}

func (h *house) start() {
	h.t.Helper()
	o := audittest.Options(h.clock, h.disk)
	o.Boot.Build, o.Quota = "1.0.0", 1<<30
	l, err := audit.Open(h.t.Context(), o)
	if err != nil {
		h.t.Fatal(err)
	}
	h.Log = l
	h.t.Cleanup(func() { l.Close() })
}

func (h *house) powerCut() {
	h.t.Helper()
	h.disk = h.disk.Crash(func(int) int { return 0 })
	h.start()
}

func (h *house) barrier(entries ...audit.Entry) {
	h.t.Helper()
	if _, err := h.Barrier(h.t.Context(), entries...); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) note(p audit.Payload) { h.t.Helper(); h.barrier(audit.Entry{Payload: p}) }

func (h *house) intend(c audittest.Call) audit.Intent {
	h.t.Helper()
	i, err := h.Intend(h.t.Context(), c.Entries(), c.Intent, c.Inv)
	if err != nil {
		h.t.Fatal(err)
	}
	return i
}

func (h *house) effect(i audit.Intent, e audit.EffectRecord) {
	h.t.Helper()
	if _, err := h.Effect(h.t.Context(), i, e); err != nil {
		h.t.Fatal(err)
	}
}

// name gives a call an invocation of its own.
func (h *house) name(c *audittest.Call) {
	h.calls++
	binary.BigEndian.PutUint32(c.Inv[8:], h.calls)
	for i := range c.Blobs {
		c.Blobs[i].Inv = c.Inv
	}
	c.Proposal.Step, c.Proposal.Ask = 1, audit.ID{0: 0xa5, 12: byte(h.calls >> 8), 13: byte(h.calls)}
}

// health is a call that needs no press.
func (h *house) health(slot uint32) {
	h.t.Helper()
	c := audittest.Automatic(1)
	h.name(&c)
	c.Proposal.Slot = slot
	i := h.intend(c)
	h.clock.Advance(40 * time.Millisecond)
	h.effect(i, audit.EffectRecord{
		Status: capabilities.Done, Duration: 40 * time.Millisecond, ResultDigest: audittest.Sum("health"), ResultBytes: 412, GrantDigest: audittest.Sum("grant"),
	})
}

// pages are what the panel draws for a search.
func pages(t testing.TB, text string) []screen.Page {
	t.Helper()
	p, err := screen.Pages(screen.Card{
		Title: "Search Wikipedia for", Text: text, Destination: "wikipedia.org", Note: "GET, nothing sent beyond the text", Phone: "Kitchen",
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// search is a call that was approved at the panel just now.
func (h *house) search(slot uint32, text string) audittest.Call {
	h.t.Helper()
	c := audittest.Required(h.clock, 1)
	c.Blobs = nil
	h.name(&c)
	args := []byte(fmt.Sprintf(`{"query":%q}`, text))
	keep := func(p audit.Purpose, b []byte) audit.Digest {
		e, d := audit.BlobOf(p, c.Inv, b)
		c.Blobs = append(c.Blobs, e)
		return d
	}
	argsDigest := keep(audit.BlobArguments, args)
	request := keep(audit.BlobRequest, []byte("GET /w/api.php?action=query&list=search&format=json&srsearch="+text+" HTTP/1.1\r\nHost: en.wikipedia.org\r\nUser-Agent: Assent\r\nAccept: application/json\r\n\r\n"))
	drawn := pages(h.t, text)
	var frames []byte
	for _, p := range drawn {
		frames = append(frames, p.Frame[:]...)
	}
	pagesDigest := keep(audit.BlobPages, frames)
	p := &c.Proposal
	p.RawDigest = keep(audit.BlobRaw, []byte(fmt.Sprintf(`{"query": %q }`, text)))
	p.SignedAsk = keep(audit.BlobAsk, append([]byte{0xd2, 0x84, 0x4a}, bytes.Repeat([]byte{0xff}, 135)...))
	p.ArgsView = keep(audit.BlobView, []byte("Search Wikipedia for\n"+text+"\nwikipedia.org"))
	p.ArgsDigest, p.Slot = capabilities.ArgsDigest(argsDigest), slot
	c.Intent.Destination = keep(audit.BlobDestination, []byte("wikipedia.org"))
	c.Claims.Inv, c.Claims.ArgsDigest, c.Claims.RequestDigest, c.Claims.ScreenDigest, c.Claims.Slot = c.Inv, p.ArgsDigest, request, screen.Digest(drawn), slot
	a := &c.Approval
	a.ArgsDigest, a.RequestDigest, a.ScreenDigest, a.Pages, a.PageCount = p.ArgsDigest, request, c.Claims.ScreenDigest, []audit.Digest{pagesDigest}, uint16(len(drawn))
	a.Presses = append(a.Presses, device.Event{Mono: a.Completed + 200*time.Millisecond, Edge: device.Release, Seq: 2, Button: device.Approve})
	a.Receipt = audittest.Sign(audittest.ReceiptKey(), c.Claims)
	c.Intent.ArgsDigest, c.Intent.RequestDigest = p.ArgsDigest, request
	return c
}

func (h *house) answered(c audittest.Call) {
	h.t.Helper()
	i := h.intend(c)
	h.clock.Advance(820 * time.Millisecond)
	h.effect(i, audit.EffectRecord{
		Status: capabilities.Done, Sent: true, HTTPStatus: 200, Items: 5, Attempts: 1, Duration: 820 * time.Millisecond, ResultBytes: 2210, AnswerBytes: 8120,
		ResultDigest: audittest.Sum("result"), AnswerDigest: audittest.Sum("answer"), GrantDigest: audittest.Sum("grant"), RequestDigest: c.Intent.RequestDigest,
	})
}

// ended is a search that was not approved.
func (h *house) ended(c audittest.Call, o audit.ApprovalOutcome, by audit.Actor, s capabilities.Status) {
	h.t.Helper()
	c.Approval.Outcome, c.Approval.By, c.Approval.Receipt = o, by, nil
	if o != audit.Denied {
		c.Approval.Pressed, c.Approval.Completed, c.Approval.Presses = 0, 0, nil
	}
	h.barrier(append(c.Entries(), audit.Entry{Inv: c.Inv, Payload: audit.Decision{
		Stage: capabilities.StageConfirm, Verdict: audit.Refuse, Status: s, By: by,
	}})...)
}

// record writes two days of a household in which everything happens once.
func record(t testing.TB) *house {
	t.Helper()
	h := newHouse(t)
	h.note(audit.Admin{Action: audit.AdminPair, Outcome: audit.Approved, By: audit.ByBox, Slot: 2, Person: "p1", Role: 2, Completed: h.clock.Mono(), Pressed: h.clock.Mono(), Shown: h.clock.Mono()})
	h.health(2)
	h.clock.Advance(90 * time.Minute)
	h.clock.SetWall(time.Date(2026, 11, 29, 9, 30, 0, 0, time.UTC), clock.Synced)
	h.health(2)
	h.answered(h.search(2, "tide times at Bristol"))
	h.clock.Advance(3 * time.Hour)
	h.ended(h.search(3, "how to pick a lock"), audit.Denied, audit.ByBox, capabilities.Denied)
	h.clock.Advance(20 * time.Minute)
	h.ended(h.search(3, "cinema in town tonight"), audit.ExpiredUnseen, 0, capabilities.ExpiredUnseen)
	hostile := audittest.Automatic(1)
	h.name(&hostile)
	hostile.Proposal.Capability, hostile.Proposal.ArgsDigest, hostile.Proposal.Name = "", capabilities.ArgsDigest{}, []byte(evil)
	raw, rawDigest := audit.BlobOf(audit.BlobRaw, hostile.Inv, []byte(`{"q": "`+evil+`"}`))
	hostile.Proposal.RawDigest = rawDigest
	h.barrier(raw, audit.Entry{Inv: hostile.Inv, Payload: hostile.Proposal}, audit.Entry{Inv: hostile.Inv, Payload: audit.Decision{
		Stage: capabilities.StageResolve, Verdict: audit.Refuse, Status: capabilities.Rejected, Code: capabilities.CodeUnknownCapability,
	}})
	h.note(audit.Claim{From: audit.ByGateway, Class: audit.ClaimParseFailure, Code: capabilities.CodeMalformed, Text: []byte(evil), Slot: 3})
	h.clock.Advance(14 * time.Hour)
	h.intend(h.search(2, "tallest building in Wales"))
	h.powerCut()
	h.clock.SetWall(time.Date(2026, 11, 30, 8, 5, 0, 0, time.UTC), clock.Synced)
	h.note(audit.Feed{ID: "pihole", Status: capabilities.Done, HTTPStatus: 200, Bytes: 900, Digest: audittest.Sum("feed")})
	h.note(audit.Fault{Class: audit.FaultDisplay, Where: "panel", Count: 1})
	h.clock.Advance(time.Hour)
	secret := h.search(4, "a present for Anna")
	secret.Proposal.Log, secret.Blobs, secret.Proposal.ArgsView, secret.Approval.Pages = capabilities.LogOmit, nil, audit.Digest{}, nil
	h.answered(secret)
	h.note(audit.Freeze{On: true, By: audit.ByBox, Reason: "panic"})
	h.clock.Advance(10 * time.Minute)
	h.note(audit.Freeze{By: audit.ByBox})
	h.answered(h.search(2, "Straße nach Köln, wie lang?"))
	h.health(3)
	return h
}

// write makes the page about a log in a new directory.
func write(t testing.TB, log fs.FS, o view.Options) (dir string, report audit.Report) {
	t.Helper()
	dir = t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	if o.Statement == "" {
		o.Statement = view.ByBox
	}
	report, err := view.Write(t.Context(), log, func(name string) (io.WriteCloser, error) { return os.Create(filepath.Join(dir, name)) }, o)
	if err != nil {
		t.Fatal(err)
	}
	return dir, report
}
