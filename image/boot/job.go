package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"assent.home.arpa/appliance/finger"
	"assent.home.arpa/appliance/phone"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/device"
)

// What a step of the job may take on an emulated box.
const (
	promptGaze  = 80 * time.Second
	turnLimit   = 4 * time.Minute
	modelLimit  = 4 * time.Minute
	pageLimit   = 2 * time.Minute
	shortPress  = 150 * time.Millisecond
	refuseWatch = 4 * time.Second // in which a hold that does not count is seen not to
)

// phones is somebody with a phone.
type phones struct {
	who  *phone.Identity
	box  *box
	test *test
}

// page loads the phone page over https, as a browser does, and returns it.
func (b *box) page(ctx context.Context) (string, error) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // a certificate of the box's own making
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.address+"/", nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the page's status is %d", resp.StatusCode)
	}
	return string(body), err
}

// pair pairs a phone of that name: both buttons are held, the code is read from the glass, and somebody at the box accepts.
func (t *test) pair(ctx context.Context, b *box, name string) (*phones, error) {
	// Buttons that are held before the first picture count for nothing.
	if _, err := b.finger.See(ctx, promptGaze, "anything", func(device.Frame) bool { return true }); err != nil {
		return nil, err
	}
	shown := "https://" + boxIP
	code, err := b.finger.OpenPairing(ctx, shown)
	if err != nil {
		return nil, err
	}
	t.picture(b, "pairing")
	t.say("the glass shows the pairing code " + code)
	var pin phone.Pin
	client, err := phone.Dial(ctx, b.address, pin.TLS())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	type paired struct {
		who *phone.Identity
		err error
	}
	done := make(chan paired, 1)
	go func() {
		who, err := client.Pair(ctx, code, name, nil)
		done <- paired{who, err}
	}()
	if _, err := b.finger.See(ctx, promptGaze, "who wants to be paired", finger.Inverted); err != nil {
		select {
		case p := <-done:
			return nil, errors.Join(p.err, err)
		default:
			return nil, err
		}
	}
	t.picture(b, "who-wants-to-be-paired")
	if err := b.finger.Read(ctx); err != nil {
		return nil, err
	}
	if err := b.agent.Hold(finger.BothHold, device.Approve, device.Deny); err != nil {
		return nil, err
	}
	select {
	case p := <-done:
		if p.err != nil {
			return nil, p.err
		}
		p.who.Address, p.who.Pin = b.address, pin
		return &phones{who: p.who, box: b, test: t}, nil
	case <-time.After(time.Minute):
		return nil, errors.New("nobody heard that the phone was accepted")
	}
}

// turn is what came of a question.
type turn struct {
	prose    string
	outcomes []wire.Outcome
	pressed  time.Time // when the hold that approved ended
}

// ask asks the question. At what waits at the panel, act is called; it is called again when that has been decided.
func (p *phones) ask(ctx context.Context, act func(wire.Pending) error) (turn, error) {
	ctx, cancel := context.WithTimeout(ctx, turnLimit)
	defer cancel()
	pin := p.who.Pin
	client, err := phone.Dial(ctx, p.box.address, pin.TLS())
	if err != nil {
		return turn{}, err
	}
	defer client.Close()
	if _, err := client.Hello(ctx, p.who, "", 0); err != nil {
		return turn{}, err
	}
	if _, err := client.Ask(p.who, phone.NewConversation(), question); err != nil {
		return turn{}, err
	}
	var t turn
	for {
		f, err := client.Next(ctx)
		if err != nil {
			return t, err
		}
		switch f.Type {
		case wire.TypeText:
			var text wire.Text
			if err := f.Decode(&text); err != nil {
				return t, err
			}
			t.prose += text.Text
		case wire.TypePending:
			var pending wire.Pending
			if err := f.Decode(&pending); err != nil {
				return t, err
			}
			if err := act(pending); err != nil {
				return t, err
			}
		case wire.TypeResult:
			var r wire.Result
			if err := f.Decode(&r); err != nil {
				return t, err
			}
			t.outcomes = append(t.outcomes, r.Outcome)
		case wire.TypeError:
			var e wire.Error
			if err := f.Decode(&e); err != nil {
				return t, err
			}
			return t, fmt.Errorf("%s (%s)", e.Message, e.Code)
		case wire.TypeTurnEnd:
			var end wire.TurnEnd
			if err := f.Decode(&end); err != nil {
				return t, err
			}
			if end.Reason != "complete" {
				return t, fmt.Errorf("the turn ended as %s: %s", end.Reason, end.Message)
			}
			return t, nil
		}
	}
}

// approved asks, reads the card to its end and holds the button.
func (p *phones) approved(ctx context.Context) (turn, error) {
	var pressed time.Time
	t, err := p.ask(ctx, func(w wire.Pending) error {
		if w.Decided {
			if pressed.IsZero() {
				return errors.New("the request was approved by a hold before its pages had been read")
			}
			return nil
		}
		p.test.say(fmt.Sprintf("the phone says: look at the box: %s %q → %s", w.Title, w.Text, w.Destination))
		if err := p.announced(ctx, w); err != nil {
			return err
		}
		searches := len(p.test.site.Searches())
		pages, err := p.box.finger.ReadOn(ctx, 0, w.Pages)
		for i, page := range pages {
			p.test.say(fmt.Sprintf("page %d of %d on the glass: %s", i+1, w.Pages, finger.Words(page, w.Destination)))
			p.test.save(page.Frame, fmt.Sprintf("card-page-%d", i+1))
		}
		if err != nil {
			return err
		}
		if n := len(p.test.site.Searches()); n != searches {
			return errors.New("something was sent before the button was held")
		}
		pressed = time.Now()
		return p.box.finger.HoldArmed(ctx)
	})
	t.pressed = pressed
	if err != nil {
		return t, err
	}
	if pressed.IsZero() {
		return t, errors.New("nothing waited at the panel")
	}
	return t, cited(t)
}

// announced waits until a request is announced on the glass: what is pressed before counts for nothing.
func (p *phones) announced(ctx context.Context, w wire.Pending) error {
	frame, err := p.box.finger.See(ctx, promptGaze, "that a request waits", func(f device.Frame) bool { return finger.Waiting(f, w.Pages) })
	if err == nil {
		p.test.save(frame, "waiting")
	}
	return err
}

// cited demands an answer with citations of what was searched for.
func cited(t turn) error {
	for _, o := range t.outcomes {
		var found struct {
			Citations []struct{ Title, URL, Content string }
		}
		if o.Status != capabilities.Done.String() || json.Unmarshal(o.Data, &found) != nil {
			continue
		}
		for _, c := range found.Citations {
			if strings.Contains(c.Title, "Eiffel") && c.URL != "" && c.Content != "" {
				return nil
			}
		}
	}
	return fmt.Errorf("the answer cites nothing: %+v", t.outcomes)
}

// denied asks, holds the button on what nobody has read, which must not count, and has somebody at the box say no.
func (p *phones) denied(ctx context.Context) error {
	searches := len(p.test.site.Searches())
	t, err := p.ask(ctx, func(w wire.Pending) error {
		if w.Decided {
			return errors.New("somebody approved what was to be denied")
		}
		if err := p.announced(ctx, w); err != nil {
			return err
		}
		if err := p.box.agent.Hold(finger.ApproveHold, device.Approve); err != nil {
			return err
		}
		time.Sleep(refuseWatch)
		if n := len(p.test.site.Searches()); n != searches {
			return errors.New("something was sent for a hold on a card that nobody had read")
		}
		return p.box.agent.Hold(shortPress, device.Deny)
	})
	if err != nil {
		return err
	}
	for _, o := range t.outcomes {
		if o.Status == capabilities.Denied.String() {
			if n := len(p.test.site.Searches()); n != searches {
				return errors.New("something was sent although it was denied")
			}
			return nil
		}
	}
	return fmt.Errorf("a denial ended otherwise: %+v", t.outcomes)
}
