package devicetest

import (
	"time"

	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/device"
)

// Hands is a person at the box: it moves the buttons and lets time pass, in small steps so that the product can keep up.
type Hands struct {
	Buttons *Buttons
	Clock   *clocktest.Clock
	// Settle returns when the product has dealt with all that happened and waits. In a testing/synctest bubble it is
	// synctest.Wait.
	Settle func()
}

// stride is how much time passes between two looks at the product.
const stride = 50 * time.Millisecond

// Wait lets d pass.
func (h Hands) Wait(d time.Duration) {
	h.Settle()
	for d > 0 {
		step := min(d, stride)
		h.Clock.Advance(step)
		h.Settle()
		d -= step
	}
}

// Press closes the contact and leaves it closed.
func (h Hands) Press(b device.Button) {
	h.Buttons.Press(b)
	h.Settle()
}

// Release opens the contact.
func (h Hands) Release(b device.Button) {
	h.Buttons.Release(b)
	h.Settle()
}

// Hold presses for d.
func (h Hands) Hold(b device.Button, d time.Duration) {
	h.Press(b)
	h.Wait(d)
	h.Release(b)
}

// Tap presses for a tenth of a second.
func (h Hands) Tap(b device.Button) { h.Hold(b, 100*time.Millisecond) }

// HoldBoth presses both buttons for d.
func (h Hands) HoldBoth(d time.Duration) {
	h.Press(device.Approve)
	h.Press(device.Deny)
	h.Wait(d)
	h.Release(device.Deny)
	h.Release(device.Approve)
}
