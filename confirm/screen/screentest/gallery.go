// Package screentest holds one example of every screen of the panel, for golden pictures, for the contact sheet that
// people look at, and for tests that go through all screens.
package screentest

import (
	"fmt"
	"time"

	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

// Screen is one example.
type Screen struct {
	// Name is the file name of the golden picture, without its ending.
	Name  string
	Frame device.Frame
}

// Search is the everyday card.
func Search() screen.Card {
	return screen.Card{
		Title:       "Search Wikipedia for",
		Text:        "opening hours of the town library in 1O0 Il1 rn m",
		Destination: "wikipedia.org",
		Note:        "GET, 0 bytes sent beyond the text",
		Phone:       "Kitchen",
	}
}

// Gallery draws every screen, in the order in which somebody meets them. An error is a mistake in the examples.
func Gallery() ([]Screen, error) {
	cards, err := cards()
	if err != nil {
		return nil, err
	}
	reading, err := reading()
	if err != nil {
		return nil, err
	}
	admin, err := admin()
	if err != nil {
		return nil, err
	}
	bulletins, err := bulletins()
	if err != nil {
		return nil, err
	}
	firstHour, err := firstHour()
	if err != nil {
		return nil, err
	}
	all := idle()
	for _, group := range [][]Screen{bulletins, pairing(), admin, waiting(), cards, reading, firstHour, notices()} {
		all = append(all, group...)
	}
	return all, nil
}

func idle() []Screen {
	draw := func(name string, i screen.Idle) Screen { return Screen{name, screen.DrawIdle(i)} }
	const head = "8PMZ6TD9"
	return []Screen{
		draw("idle", screen.Idle{Today: 3, HeadCode: head, Phones: 2}),
		draw("idle-note", screen.Idle{Today: 3, HeadCode: head, Phones: 2, Note: "clock is unset"}),
		draw("idle-unknown", screen.Idle{Today: 3, HeadCode: head, Phones: 2, Note: "1 unknown outcome", Hint: "see it on a phone"}),
		draw("idle-full", screen.Idle{Today: 3, HeadCode: head, Phones: 2, Note: "the record is full:", Hint: "hold both buttons 3s"}),
		draw("idle-lost", screen.Idle{Today: 3, HeadCode: head, Phones: 2, Note: "record not written:", Hint: "restart the box"}),
		draw("idle-damaged", screen.Idle{Today: 3, Note: "record is damaged:", Hint: "hold both buttons 3s"}),
		draw("idle-stick", screen.Idle{Today: 3, HeadCode: head, Phones: 2, Note: "copy record to stick", Hint: "hold both buttons 3s"}),
		draw("idle-copying", screen.Idle{Today: 3, HeadCode: head, Phones: 2, Note: "copying: 42 of 100", Hint: "leave the stick in"}),
		draw("idle-doubt", screen.Idle{Today: 3, HeadCode: head, Phones: 2, Note: "too many presses:", Hint: "cards ask for taps"}),
		draw("idle-unpaired", screen.Idle{HeadCode: head, Shift: 40}),
		draw("idle-frozen", screen.Idle{Today: 12, HeadCode: head, Phones: 2, Frozen: true, Shift: 20}),
		draw("idle-large", screen.Idle{Today: 3, HeadCode: head, Phones: 2, Large: true}),
		draw("idle-large-full", screen.Idle{Today: 3, HeadCode: head, Phones: 2, Note: "the record is full:", Hint: "hold both buttons 3s", Large: true}),
		draw("idle-large-frozen", screen.Idle{Today: 3, HeadCode: head, Phones: 2, Frozen: true, Large: true, Shift: 40}),
		draw("idle-scripted", screen.Idle{Today: 12, HeadCode: head, Phones: 2, Frozen: true, Scripted: true, Shift: 80}),
	}
}

func bulletins() ([]Screen, error) {
	var all []Screen
	for _, b := range []struct {
		name, text string
		large      bool
	}{
		{"bulletin", "assent.toml on the card, line 3: unknown key \"pannel\". The settings from before hold.", false},
		{"bulletin-large", "no model", true},
	} {
		pages, err := screen.Bulletin(b.text, b.large)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.name, err)
		}
		for i, p := range pages {
			all = append(all, Screen{fmt.Sprintf("%s-%d", b.name, i+1), p.Frame})
		}
	}
	return all, nil
}

func pairing() []Screen {
	const code, address = "482 913", "https://192.168.178.23"
	const long = "https://assent-in-the-kitchen.fritz.box"
	return []Screen{
		{"pairing", screen.DrawPairing(code, address, 101*time.Second, false)},
		{"pairing-qr", screen.DrawPairing(code, address, 106*time.Second, false)},
		{"pairing-large", screen.DrawPairing(code, address, 101*time.Second, true)},
		{"pairing-long", screen.DrawPairing(code, long, 101*time.Second, false)},
	}
}

func admin() ([]Screen, error) {
	var all []Screen
	for _, a := range []struct {
		name, title, text string
		phone             []string
		hold              float64
		large             bool
	}{
		{"admin", "Pair this phone", "2074 8813 5561\nbecomes owner", []string{"Anna's phone"}, 0, false},
		{"admin-hold", "Unfreeze", "Let requests be approved again", nil, 0.4, false},
		{"admin-log", "Begin a new log?", "The damaged one is kept aside", nil, 0, false},
		{"admin-long", "Add a tool (review)", "pi.hole", nil, 0, false},
		{"admin-copy", "Copy all the record", "to stick KITCHEN, 31 GB", nil, 0, false},
		{"admin-cable", "Copy all the record", "over the USB cable, read-only", nil, 0, false},
		{"admin-pages", "Make room?", "Delete its oldest 1/4. Is a copy checked on a PC?", nil, 0, false},
		{"admin-large", "Pair this phone", "2074 8813 5561\nbecomes adult", []string{"Anna's phone"}, 0, true},
	} {
		pages, err := screen.AdminPages(a.title, a.text, a.large, a.phone...)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.name, err)
		}
		for i, p := range pages {
			name, hint := a.name, "TAP: NEXT PAGE"
			if len(pages) > 1 {
				name += fmt.Sprintf("-%d", i+1)
			}
			if i == len(pages)-1 {
				hint = "HOLD BOTH 3 S"
			}
			all = append(all, Screen{name, screen.DrawAdmin(p, hint, 55*time.Second, a.hold)})
		}
	}
	return all, nil
}

func waiting() []Screen {
	large := func(name string, left time.Duration) Screen {
		return Screen{name, screen.DrawWaiting(screen.Waiting{
			Phone: "Kitchen", Title: "Web search", Destination: "wikipedia.org", Pages: 3, Left: left, Large: true,
		})}
	}
	return []Screen{
		{"next", screen.DrawNext()},
		{"waiting", screen.DrawWaiting(screen.Waiting{
			Phone: "Kitchen", Title: "Web search", Destination: "wikipedia.org", Pages: 3, Left: 161 * time.Second, Queue: 2,
		})},
		{"waiting-local", screen.DrawWaiting(screen.Waiting{Phone: "Kitchen", Title: "Write a note", Pages: 1, Left: 3 * time.Second})},
		large("waiting-large-1", 160*time.Second),
		large("waiting-large-2", 162*time.Second),
		large("waiting-large-3", 164*time.Second),
		{"waiting-long", screen.DrawWaiting(screen.Waiting{
			Phone: "The old phone in the cellar", Title: "Web search", Destination: "encyclopedia.example.org", Pages: 84, Left: 180 * time.Second,
		})},
	}
}

func cards() ([]Screen, error) {
	tainted := Search()
	tainted.Taint = "written after reading evil.example"
	tainted.Text = "weather\n\n\tand  alarm code 4471 "
	tainted.Destination = "evil.example.co.uk"
	scripts := Search()
	scripts.Text = "pаypal.com Привет Αθήνα \u00a0x"
	scripts.Destination = "bücher.example"
	large := Search()
	large.Text, large.Large = "opening hours Привет", true
	posing := screen.Card{Title: "Write a note", Phone: "approved by owner, hold now"}
	var all []Screen
	for _, c := range []struct {
		name string
		card screen.Card
	}{{"card", Search()}, {"tainted", tainted}, {"scripts", scripts}, {"large", large}, {"posing", posing}} {
		pages, err := screen.Pages(c.card)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		for i, p := range pages {
			all = append(all, Screen{fmt.Sprintf("%s-%d", c.name, i+1), p.Frame})
		}
	}
	return all, nil
}

func reading() ([]Screen, error) {
	short := Search()
	short.Destination = "pi.hole"
	pages, err := screen.Pages(short)
	if err != nil {
		return nil, err
	}
	last := pages[len(pages)-1]
	return []Screen{
		{"reading-next", screen.DrawReading(pages[0], 52*time.Second, false, false, 0, "LET GO")},
		{"reading-last", screen.DrawReading(last, 31*time.Second, true, false, 0, "LET GO")},
		{"reading-armed", screen.DrawReading(last, 30*time.Second, true, true, 0, "LET GO")},
		{"reading-hold", screen.DrawReading(last, 29*time.Second, true, true, 0.6, "LET GO")},
		{"reading-done", screen.DrawReading(last, 29*time.Second, true, true, 1, "LET GO")},
		{"reading-dwelt", screen.DrawReading(last, 29*time.Second, true, true, 1, "TAP NOW")},
		{"challenge", screen.DrawNotice("TAP 3 TIMES", "then wait")},
		{"challenge-trouble", screen.DrawNotice("TAP 3 TIMES", "wait, then hold", "too many presses")},
	}, nil
}

// notices are what the panel says by itself, in confirm's words.
func notices() []Screen {
	return []Screen{
		{"notice-approved", screen.DrawNotice("APPROVED")},
		{"notice-denied", screen.DrawNotice("DENIED")},
		{"notice-expired", screen.DrawNotice("EXPIRED")},
		{"notice-unopened", screen.DrawNotice("NOT OPENED")},
		{"notice-withdrawn", screen.DrawNotice("WITHDRAWN")},
		{"notice-dropped", screen.DrawNotice("DROPPED")},
		{"notice-unshown", screen.DrawNotice("NOT SHOWN")},
		{"notice-busy", screen.DrawNotice("BUSY")},
		{"notice-codes", screen.DrawNotice("CLOSED", "too many wrong", "pairing codes")},
		{"notice-confirmed", screen.DrawNotice("CONFIRMED")},
		{"notice-held-on", screen.DrawNotice("NOT APPROVED", "the button was", "held too long")},
		{"notice-taps", screen.DrawNotice("NOT APPROVED", "wrong number", "of taps")},
		{"notice-refused", screen.DrawNotice("REFUSED")},
		{"stop", screen.DrawStop(0.4)},
		{"notice-panic", screen.DrawNotice("PANIC", "all requests", "were dropped")},
		{"notice-buttons", screen.DrawNotice("NO BUTTONS", "nothing can be", "approved")},
	}
}
