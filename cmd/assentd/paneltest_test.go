package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/appliance/config"
	"assent.home.arpa/device"
	"assent.home.arpa/device/board"
	"assent.home.arpa/device/devicetest"
)

// TestPanelTestYieldsToTheGuard: two programs that see one press could each take it for theirs.
func TestPanelTestYieldsToTheGuard(t *testing.T) {
	var unclear unclearError
	err := notOpened(fmt.Errorf("board: gpio line %q is %w by %q", "assent-approve", board.ErrInUse, "assent"))
	if !errors.As(err, &unclear) || !strings.Contains(err.Error(), "systemctl stop assent-guard") {
		t.Errorf("a guard that runs: %v", err)
	}
	other := errors.New("no i2c bus")
	if got := notOpened(other); got != other {
		t.Errorf("a machine without parts: %v", got)
	}
}

func TestPanelTestEndsAsTheVisitDid(t *testing.T) {
	for name, tc := range map[string]struct {
		set     func(*devicetest.Panel, *devicetest.Buttons)
		unclear bool
	}{
		"nobody answers": {func(_ *devicetest.Panel, b *devicetest.Buttons) {}, true},
		"no display":     {func(p *devicetest.Panel, b *devicetest.Buttons) { p.Fail(0) }, false},
	} {
		c := clocktest.New()
		p, b := devicetest.NewPanel(c), devicetest.NewButtons(c)
		tc.set(p, b)
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // nobody presses either
		var out bytes.Buffer
		err := visit(ctx, &board.Board{Display: p, Buttons: b, Lamp: device.NoLamp{}}, config.Default().Panel, strings.NewReader(""), &out)
		var unclear unclearError
		if err == nil || errors.As(err, &unclear) != tc.unclear {
			t.Errorf("%s: %v; it said:\n%s", name, err, &out)
		}
	}
}
