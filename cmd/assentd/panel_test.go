package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"assent.home.arpa/appliance/config"
	"assent.home.arpa/device"
	"assent.home.arpa/device/board"
)

// A guard without a panel goes on without, can be pressed by nobody, and is started again when the panel comes.
func TestGuardWithoutAPanel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		open := func(config.Panel) (*board.Board, error) {
			tries++
			return nil, fs.ErrNotExist
		}
		ctx, p, done := openPanel(t.Context(), config.Default().Panel, open, slog.New(slog.DiscardHandler))
		if err := p.Display.Draw(&device.Frame{}); !errors.Is(err, device.ErrBus) {
			t.Errorf("a display that is not there acknowledges: %v", err)
		}
		if _, ok := <-p.Buttons.Events(); ok || p.Buttons.Err() == nil {
			t.Error("buttons that are not there can be pressed")
		}
		if down, err := p.Buttons.Down(device.Approve); down || err == nil {
			t.Errorf("a button that is not there is down: %v, %v", down, err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if ctx.Err() != nil || tries < 300 {
			t.Errorf("%v after %d tries", context.Cause(ctx), tries)
		}
		done()
	})
}
