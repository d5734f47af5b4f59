package devicetest_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/device"
	"assent.home.arpa/device/devicetest"
)

func read(b *devicetest.Buttons) []device.Event {
	var events []device.Event
	for {
		select {
		case ev, ok := <-b.Events():
			if !ok {
				return events
			}
			events = append(events, ev)
		default:
			return events
		}
	}
}

func TestButtonsBehave(t *testing.T) {
	const approve = device.Approve
	at := time.Hour
	press := func(d time.Duration, seq uint32) device.Event {
		return device.Event{Mono: at + d, Edge: device.Press, Seq: seq, Button: approve}
	}
	release := func(d time.Duration, seq uint32) device.Event {
		return device.Event{Mono: at + d, Edge: device.Release, Seq: seq, Button: approve}
	}
	ms := time.Millisecond
	for _, tt := range []struct {
		name string
		do   func(b *devicetest.Buttons, c *clocktest.Clock)
		want []device.Event
		down bool
	}{
		{"tap", func(b *devicetest.Buttons, c *clocktest.Clock) {
			b.Press(approve)
			c.Advance(ms)
			b.Release(approve)
		}, []device.Event{press(0, 1), release(ms, 2)}, false},
		{"press twice without a release", func(b *devicetest.Buttons, _ *clocktest.Clock) {
			b.Press(approve)
			b.Press(approve)
		}, []device.Event{press(0, 1)}, true},
		{"bounce", func(b *devicetest.Buttons, _ *clocktest.Clock) {
			b.Bounce(approve, at, 0, 3*ms, 7*ms, 12*ms)
		}, []device.Event{press(0, 1), release(3*ms, 2), press(7*ms, 3), release(12*ms, 4)}, false},
		{"ring", func(b *devicetest.Buttons, _ *clocktest.Clock) {
			b.Ring(approve, 1, 2*ms)
		}, []device.Event{press(-2*ms, 1), release(-ms, 2)}, false},
		{"held since boot", func(b *devicetest.Buttons, _ *clocktest.Clock) { b.HeldSinceBoot(approve) }, nil, true},
		{"stuck down", func(b *devicetest.Buttons, _ *clocktest.Clock) {
			b.Press(approve)
			b.Stick(approve)
			b.Release(approve)
		}, []device.Event{press(0, 1)}, true},
		{"a lost edge leaves a gap", func(b *devicetest.Buttons, _ *clocktest.Clock) {
			b.Press(approve)
			b.Lose(approve, 1)
			b.Release(approve)
			b.Press(approve)
		}, []device.Event{press(0, 1), press(0, 3)}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := clocktest.New()
			b := devicetest.NewButtons(c)
			tt.do(b, c)
			if diff := cmp.Diff(tt.want, read(b)); diff != "" {
				t.Error(diff)
			}
			if down, err := b.Down(approve); err != nil || down != tt.down {
				t.Errorf("down is %v, %v; want %v", down, err, tt.down)
			}
		})
	}
}

func TestButtonsUnplugged(t *testing.T) {
	b := devicetest.NewButtons(clocktest.New())
	cut := errors.New("line gone")
	b.Unplug(cut)
	b.Unplug(cut)
	b.Press(device.Approve)
	if _, open := <-b.Events(); open {
		t.Error("events still come")
	}
	if _, err := b.Down(device.Approve); !errors.Is(err, cut) || !errors.Is(b.Err(), cut) {
		t.Errorf("down says %v, err says %v", err, b.Err())
	}
	if _, err := devicetest.NewOneButton(clocktest.New()).Down(device.Deny); !errors.Is(err, device.ErrNoButton) {
		t.Errorf("the missing button says %v", err)
	}
}

func TestPanelFails(t *testing.T) {
	p := devicetest.NewPanel(clocktest.New())
	p.Fail(1)
	var f device.Frame
	f.Set(1, 1, true)
	if err := p.Draw(&f); err != nil {
		t.Fatal(err)
	}
	var g device.Frame
	if err := p.Draw(&g); !errors.Is(err, device.ErrBus) {
		t.Errorf("second draw says %v", err)
	}
	if p.Glass() != f || p.Draws() != 1 {
		t.Error("a frame without acknowledgement is on the glass")
	}
	if err := p.Dim(true); !errors.Is(err, device.ErrBus) || p.Dimmed() {
		t.Errorf("dim on a dead bus says %v", err)
	}
	p.Heal()
	if err := p.Draw(&g); err != nil || p.Glass() != g {
		t.Errorf("draw after the bus came back says %v", err)
	}
}

func TestPanelHangsAndIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clocktest.New()
		p := devicetest.NewPanel(c)
		p.Hang()
		done := make(chan error, 1)
		go func() { done <- p.Draw(&device.Frame{}) }()
		synctest.Wait()
		if p.Draws() != 0 {
			t.Error("a hanging part acknowledged")
		}
		p.Heal()
		if err := <-done; err != nil {
			t.Error(err)
		}
		p.Slow(time.Second)
		go func() { done <- p.Draw(&device.Frame{}) }()
		synctest.Wait()
		c.Advance(999 * time.Millisecond)
		synctest.Wait()
		if p.Draws() != 1 {
			t.Error("a slow part acknowledged too early")
		}
		c.Advance(time.Millisecond)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
