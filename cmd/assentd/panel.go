package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"assent.home.arpa/appliance/box"
	"assent.home.arpa/appliance/config"
	"assent.home.arpa/device"
	"assent.home.arpa/device/board"
)

// panelRetry is how often a guard without a panel looks for one.
const panelRetry = 10 * time.Second

// errPanelCame ends a guard that has no panel once there is one, so that it is started again with it.
var errPanelCame = errors.New("the panel is there now; starting again with it")

// openPanel returns the box's panel. Where its parts cannot be opened the guard goes on without, so that people can chat and
// are told why nothing can be approved; the context ends with errPanelCame when open succeeds. done gives everything back.
func openPanel(ctx context.Context, c config.Panel, open func(config.Panel) (*board.Board, error), log *slog.Logger) (_ context.Context, _ box.Panel, done func()) {
	b, err := open(c)
	if err == nil {
		return ctx, box.Panel{Display: b.Display, Buttons: b.Buttons, Lamp: b.Lamp, Kit: c.Display}, func() { b.Close() }
	}
	log.Error("no panel, so nothing can be approved; chat goes on", "err", err)
	ctx, cancel := context.WithCancelCause(ctx)
	var looking sync.WaitGroup
	looking.Go(func() {
		again := time.NewTicker(panelRetry)
		defer again.Stop()
		for {
			select {
			case <-again.C:
			case <-ctx.Done():
				return
			}
			if b, err := open(c); err == nil {
				b.Close()
				cancel(errPanelCame)
				return
			}
		}
	})
	gone := noPanel{why: err, events: make(chan device.Event)}
	close(gone.events)
	return ctx, box.Panel{Display: gone, Buttons: gone, Lamp: device.NoLamp{}, Kit: "none"}, func() {
		cancel(nil)
		looking.Wait()
	}
}

// noPanel is a display that acknowledges nothing and buttons whose lines are lost.
type noPanel struct {
	why    error
	events chan device.Event // closed
}

// Draw implements device.Display.
func (p noPanel) Draw(*device.Frame) error { return fmt.Errorf("%w: %w", device.ErrBus, p.why) }

// Update implements device.Display.
func (p noPanel) Update(f *device.Frame) error { return p.Draw(f) }

// ReadsBack implements device.Display.
func (p noPanel) ReadsBack() bool { return false }

// Dim implements device.Display.
func (p noPanel) Dim(bool) error { return fmt.Errorf("%w: %w", device.ErrBus, p.why) }

// Events implements device.Buttons.
func (p noPanel) Events() <-chan device.Event { return p.events }

// Down implements device.Buttons.
func (p noPanel) Down(device.Button) (bool, error) { return false, p.why }

// Has implements device.Buttons.
func (p noPanel) Has(b device.Button) bool { return b == device.Approve }

// Err implements device.Buttons.
func (p noPanel) Err() error { return p.why }
