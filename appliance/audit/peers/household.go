package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

// A household makes 100 effects a day, of which 20 needed a press: four questions in five are about the box or the house.
const (
	effectsADay = 100
	pressedIn   = 5
)

// A search's query, short and long, of the kind that people ask: their cards have 3 and 5 pages. Half of all searches are no longer
// than the first, nineteen in twenty no longer than the second.
const (
	queryP50 = "tide times bergen tomorrow"
	queryP95 = "which vaccinations are recommended for a family with two small children travelling to northern Tanzania in February"
)

// household writes calls as the executor does, record for record.
type household struct {
	clock *clocktest.Clock
	calls uint32
}

func newHousehold() *household {
	clk := clocktest.New()
	clk.SetWall(time.Date(2027, 1, 1, 6, 0, 0, 0, time.UTC), clock.Synced)
	return &household{clock: clk}
}

// open opens a log on disk that is never full.
func (h *household) open(ctx context.Context, disk audit.Disk) (*audit.Log, error) {
	o := audittest.Options(h.clock, disk)
	o.Quota = 16 << 30
	return audit.Open(ctx, o)
}

func openDir(dir, name string) (audit.Disk, error) { return audit.OpenDir(filepath.Join(dir, name)) }

// automatic is a call of system.health: what was asked and answered is kept, and nothing was shown at the box.
func (h *household) automatic() audittest.Call {
	c := audittest.Automatic(0)
	h.own(&c)
	view := h.keep(&c, audit.BlobView, []byte("Read the box's health\n\n"))
	c.Proposal.ArgsView = view
	c.Intent.EffectID = c.Inv
	return c
}

// pressed is a call of web.search that was approved at the panel.
func (h *household) pressed(query string) (audittest.Call, error) {
	c := audittest.Required(h.clock, 0)
	c.Blobs = nil
	h.own(&c)
	args := []byte(`{"query":"` + query + `"}`)
	p := &c.Proposal
	p.ArgsDigest = capabilities.ArgsDigest(h.keep(&c, audit.BlobRaw, args))
	h.keep(&c, audit.BlobArguments, args)
	request := h.keep(&c, audit.BlobRequest, []byte("GET /w/api.php?action=query&format=json&list=search&srlimit=10&srsearch="+
		strings.ReplaceAll(query, " ", "%20")+" HTTP/1.1\r\nHost: en.wikipedia.org\r\nUser-Agent: assent/1\r\nAccept: application/json\r\n"+
		"Accept-Encoding: identity\r\nConnection: close\r\n\r\n"))
	c.Intent.Destination = h.keep(&c, audit.BlobDestination, []byte("wikipedia.org"))
	pages, err := screen.Pages(screen.Card{
		Title: "Search Wikipedia for", Text: query, Destination: "wikipedia.org", Note: "GET, nothing else is sent", Phone: "KITCHEN",
	})
	if err != nil {
		return audittest.Call{}, err
	}
	var frames []byte
	for _, page := range pages {
		frames = append(frames, page.Frame[:]...)
	}
	c.Approval.Pages, c.Approval.PageCount = []audit.Digest{h.keep(&c, audit.BlobPages, frames)}, uint16(len(pages))
	// An edge for each page that was turned, and the hold's.
	c.Approval.Presses = nil
	for i := range pages {
		c.Approval.Presses = append(c.Approval.Presses, device.Event{
			Mono: c.Approval.Pressed + time.Duration(i)*time.Second, Edge: device.Press, Seq: uint32(i + 1), Button: device.Approve,
		})
	}
	c.Claims.Inv, c.Claims.ArgsDigest, c.Claims.RequestDigest = c.Inv, p.ArgsDigest, request
	c.Claims.NonceDigest = audittest.Sum(fmt.Sprint("nonce ", h.calls))
	c.Approval.ArgsDigest, c.Approval.RequestDigest = p.ArgsDigest, request
	c.Approval.Receipt = audittest.Sign(audittest.ReceiptKey(), c.Claims)
	c.Intent.ArgsDigest, c.Intent.RequestDigest, c.Intent.EffectID = p.ArgsDigest, request, c.Inv
	return c, nil
}

// own gives a call an invocation that no other has, and the ask that it came from.
func (h *household) own(c *audittest.Call) {
	h.calls++
	binary.BigEndian.PutUint32(c.Inv[1:], h.calls)
	for i := range c.Blobs {
		c.Blobs[i].Inv = c.Inv
	}
	p := &c.Proposal
	p.AskCounter = uint64(h.calls)
	p.SignedAsk = h.keep(c, audit.BlobAsk, bytes.Repeat([]byte{byte(h.calls), byte(h.calls >> 8)}, 120))
	if len(c.Blobs) > 1 { // the arguments, as written and as normalised
		p.RawDigest = h.keep(c, audit.BlobRaw, []byte(`{}`))
	}
}

func (h *household) keep(c *audittest.Call, purpose audit.Purpose, b []byte) audit.Digest {
	blob, digest := audit.BlobOf(purpose, c.Inv, b)
	c.Blobs = append(c.Blobs, blob)
	return digest
}

// settled is what is recorded after a call.
func settled(i audit.Intent, c audittest.Call) (audit.EffectRecord, audit.Entry) {
	effect := audit.EffectRecord{
		Status: capabilities.Done, Duration: 180 * time.Millisecond, ResultDigest: audittest.Sum("result"), ResultBytes: 3100,
		GrantDigest: audittest.Sum("grant"), AnswerDigest: audittest.Sum("answer"), AnswerBytes: 9000, Items: 10, Retrieved: 1_796_040_000_000,
	}
	if c.Approval.Outcome != 0 {
		effect.RequestDigest, effect.Attempts, effect.Sent, effect.HTTPStatus = c.Claims.RequestDigest, 1, true, 200
	}
	return effect, audit.Entry{Inv: c.Inv, Payload: audit.Observe{
		Intent: i.Seq(), Source: string(c.Proposal.Capability), Matches: audit.Yes, Status: capabilities.Done, Final: true, By: audit.ByGuard,
	}}
}

// live writes so many effects, spread over days.
func (h *household) live(ctx context.Context, l *audit.Log, effects int) error {
	for n := range effects {
		h.clock.Advance(24 * time.Hour / effectsADay)
		c := h.automatic()
		if n%pressedIn == 0 {
			query := queryP50
			if n%(20*pressedIn) == 0 {
				query = queryP95
			}
			var err error
			if c, err = h.pressed(query); err != nil {
				return err
			}
		}
		i, err := l.Intend(ctx, c.Entries(), c.Intent, c.Inv)
		if err != nil {
			return err
		}
		effect, observed := settled(i, c)
		if _, err := l.Effect(ctx, i, effect, observed); err != nil {
			return err
		}
	}
	return nil
}
