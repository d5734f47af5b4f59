package main

import (
	"time"

	"assent.home.arpa/appliance/finger"
	"assent.home.arpa/cmd/assentsim/internal/panel"
	"assent.home.arpa/device"
)

// hands are what a finger has of the drawn panel.
type hands struct{ glass *panel.Glass }

var _ finger.Panel = hands{}

func (h hands) View() (device.Frame, bool) {
	v := h.glass.View()
	return v.Frame, !v.Lost
}

func (h hands) Watch() (<-chan struct{}, func()) { return h.glass.Watch() }

func (h hands) Hold(d time.Duration, buttons ...device.Button) error {
	h.glass.Hold(d, buttons...)
	return nil
}
