package confirm_test

import (
	"testing"
	"time"

	"assent.home.arpa/confirm"
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

// say lets the box say something and returns its pages.
func (b *box) say(texts ...string) [][]screen.Page {
	b.Helper()
	var all []confirm.Bulletin
	var pages [][]screen.Page
	for i, text := range texts {
		p, err := screen.Bulletin(text, false)
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, confirm.Bulletin{ID: [32]byte{byte(len(text)), byte(i)}, Pages: p})
		pages = append(pages, p)
	}
	b.desk.SetBulletins(all)
	b.hands.Wait(time.Second)
	return pages
}

const (
	short = "no model on it"
	long  = "assent.toml on the card, line 3: unknown key pannel; the last good one holds"
)

func TestBulletinIsReadPageByPage(t *testing.T) {
	inBox(t, func(b *box) {
		said := b.say(long, short)
		if len(said[0]) < 2 {
			t.Fatal("the text is too short for this test")
		}
		for i, p := range said[0] {
			if !b.shows(p) {
				t.Fatalf("page %d is not on the glass", i+1)
			}
			b.hands.Tap([]device.Button{approve, deny}[i%2]) // any button
			b.hands.Wait(time.Second)
		}
		if n := b.noticed(confirm.BulletinRead); n != 1 || !b.shows(said[1][0]) {
			t.Errorf("%d were closed; the next one is not on the glass", n)
		}
		b.hands.Tap(approve)
		b.hands.Wait(time.Second)
		if n := b.noticed(confirm.BulletinRead); n != 2 || b.shows(said[1][0]) {
			t.Errorf("%d were closed, and the last is still on the glass", n)
		}
	})
}

func TestBulletinStaysUntilSomebodyPresses(t *testing.T) {
	for name, do := range map[string]func(b *box, p screen.Page){
		"a day":     func(b *box, _ screen.Page) { b.hands.Wait(24 * time.Hour / confirm.Thin) },
		"a suspend": func(b *box, _ screen.Page) { b.clock.Suspend(time.Hour); b.hands.Wait(time.Second) },
		"a lost display": func(b *box, _ screen.Page) {
			b.panel.Fail(0)
			b.clock.Suspend(time.Second)
			b.hands.Wait(3 * time.Second)
			b.panel.Heal()
			b.hands.Wait(5 * time.Second)
		},
		"a press in transit": func(b *box, _ screen.Page) { b.say(); b.say(short, long); b.say(); b.desk.SetBulletins(nil) },
		"a release":          func(b *box, _ screen.Page) {},
		"a card in between": func(b *box, _ screen.Page) {
			p := b.ask(request(1))
			b.reach()
			b.hands.Tap(deny)
			p.want(confirm.Denied)
			b.hands.Wait(3 * time.Second)
		},
		"another beside it": func(b *box, _ screen.Page) { b.say(short, long) },
	} {
		t.Run(name, func(t *testing.T) {
			inBox(t, func(b *box) {
				p := b.say(short)[0][0]
				do(b, p)
				if name == "a press in transit" {
					// It comes as a finger lands that was meant for the idle screen.
					b.desk.SetBulletins([]confirm.Bulletin{{ID: [32]byte{9}, Pages: []screen.Page{p}}})
					b.hands.Wait(100 * time.Millisecond)
					b.hands.Tap(approve)
					b.hands.Wait(time.Second)
				}
				if n := b.noticed(confirm.BulletinRead); n != 0 || !b.shows(p) {
					t.Errorf("%d were closed by nobody, or the glass shows something else", n)
				}
			})
		})
	}
}

func TestBulletinIsTakenBack(t *testing.T) {
	inBox(t, func(b *box) {
		first := b.say(short)[0][0]
		second := b.say(long)[0][0]
		if b.shows(first) || !b.shows(second) {
			t.Error("what is over is still on the glass")
		}
		b.say()
		if b.shows(second) || b.noticed(confirm.BulletinRead) != 0 {
			t.Error("what is over is still on the glass, or counts as read")
		}
	})
}

// TestPressOnABulletinApprovesNothing: what closes it cannot open, turn, arm or hold a card that follows at once.
func TestPressOnABulletinApprovesNothing(t *testing.T) {
	inBox(t, func(b *box) {
		b.say(short)
		b.hands.Press(approve) // closes it, and stays down
		p := b.ask(request(1))
		b.hands.Wait(5 * time.Second)
		b.hands.Release(approve)
		b.hands.Wait(time.Second)
		if b.passed(confirm.StateReading) || b.passed(confirm.StateHolding) {
			t.Error("the press that closed the notice went on into the card")
		}
		p.undecided()
		b.read(request(1))
		b.hands.Hold(approve, fullHold)
		p.want(confirm.Approved)
	})
}

func TestCardTakesThePanelFromABulletin(t *testing.T) {
	inBox(t, func(b *box) {
		said := b.say(long)[0]
		b.hands.Tap(approve) // its second page
		b.hands.Wait(time.Second)
		b.grant(request(1))
		b.hands.Wait(3 * time.Second)
		if !b.shows(said[0]) {
			t.Error("the notice did not begin again after the card")
		}
	})
}

func TestBulletinKeepsNobodyFromTheBox(t *testing.T) {
	t.Run("gesture", func(t *testing.T) {
		inBox(t, func(b *box) {
			b.say(short)
			b.hands.Tap(deny)
			b.hands.Wait(time.Second)
			b.gesture()
			b.hands.Wait(time.Second)
			if _, open := b.desk.PairingCode(); !open {
				t.Error("pairing mode does not open")
			}
			said := b.say(long)
			if b.shows(said[0][0]) || !b.passed(confirm.StatePairing) {
				t.Error("a notice hides the pairing code")
			}
			p := b.admin(confirm.AdminFeed)
			b.hands.Wait(2 * time.Second)
			b.hands.HoldBoth(3100 * time.Millisecond)
			p.want(confirm.AdminConfirmed)
		})
	})
	for name, texts := range map[string][]string{"held on a notice": {short}, "held on the first of several pages": {long, short}} {
		t.Run(name, func(t *testing.T) {
			inBox(t, func(b *box) {
				b.say(texts...)
				b.hands.HoldBoth(2900 * time.Millisecond)
				b.hands.Wait(time.Second)
				if _, open := b.desk.PairingCode(); open {
					t.Fatal("a gesture that is too short opens pairing mode")
				}
				b.say()
				said := b.say(texts...)
				b.gesture()
				if _, open := b.desk.PairingCode(); !open {
					t.Fatal("pairing mode does not open")
				}
				b.hands.Tap(deny) // closes pairing mode
				b.hands.Wait(time.Second)
				if unread := len(said[0]) > 1; unread != b.shows(said[0][0]) {
					t.Errorf("what was not read is on the glass: %v", !unread)
				}
			})
		})
	}
	t.Run("held on a notice, and something is offered", func(t *testing.T) {
		inBox(t, func(b *box) {
			b.offer()
			b.say(short)
			b.gesture()
			if !b.offered() {
				t.Error("it is not opened")
			}
			b.noPairing()
		})
	})
	t.Run("held since before the notice", func(t *testing.T) {
		inBox(t, func(b *box) {
			p := b.ask(request(1))
			b.hands.Press(approve)
			b.hands.Press(deny)
			p.cancel()
			b.say(short)
			b.hands.Wait(20 * time.Second)
			if _, open := b.desk.PairingCode(); open {
				t.Error("a hold that was meant for something else opens pairing mode")
			}
		})
	})
	t.Run("panic", func(t *testing.T) {
		inBox(t, func(b *box) {
			b.say(short)
			b.hands.Hold(deny, 5100*time.Millisecond)
			if b.noticed(confirm.Panic) != 1 {
				t.Error("no panic")
			}
		})
	})
	t.Run("one button", func(t *testing.T) {
		inBox(t, func(b *box) {
			b.say(short)
			b.hands.Tap(approve)
			b.hands.Wait(time.Second)
			if b.noticed(confirm.BulletinRead) != 1 {
				t.Error("the only button does not close it")
			}
		}, oneButton)
	})
}
