package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"assent.home.arpa/appliance/checkup"
	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/config"
	"assent.home.arpa/device"
	"assent.home.arpa/device/board"
)

// panelTest checks the parts on the real box. It needs the buttons' lines for itself, so it cannot run beside the guard:
// two programs that see one press could each take it for theirs.
func panelTest(ctx context.Context, e env) error {
	if len(e.args) != 0 {
		return usageError("panel-test takes nothing but -config")
	}
	b, err := board.OpenRaw(e.config.Panel)
	if err != nil {
		return notOpened(err)
	}
	return errors.Join(visit(ctx, b, e.config.Panel, e.stdin, e.out), b.Close())
}

// notOpened says what to do where the parts are in use.
func notOpened(err error) error {
	if errors.Is(err, board.ErrInUse) {
		return unclearError(fmt.Sprintf("%v; if it is the guard: systemctl stop assent-guard, test, and start it again", err))
	}
	return err
}

func visit(ctx context.Context, b *board.Board, p config.Panel, in io.Reader, out io.Writer) error {
	parts := checkup.Parts{Display: b.Display, Buttons: b.Buttons, Lamp: b.Lamp, Mono: clock.System().Mono}
	if p.Lamp == "" && p.Buzzer == "" {
		parts.Lamp = device.NoLamp{}
	}
	switch checkup.Run(ctx, parts, in, out) {
	case checkup.Good:
		return nil
	case checkup.Unknown:
		return unclearError("panel: not all of it was tried; run this again to the end")
	}
	return errors.New("panel: something does not work; see above")
}
