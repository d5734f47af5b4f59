package main

import (
	"context"
	"time"

	"assent.home.arpa/image/emulator"
)

// machine is what is to be booted.
type machine struct{ image, initrd, log string }

// boot runs a machine until it turns itself off, passes on every line of its console, and returns how long it ran. The clock
// counts instructions, four nanoseconds each; that needs a single processor.
func boot(ctx context.Context, limit time.Duration, m machine, line func(string)) (time.Duration, error) {
	running, err := emulator.Start(ctx, emulator.Machine{
		Args: []string{
			"-machine", "virt", "-cpu", "max,pauth-impdef=on", "-accel", "tcg", "-icount", "shift=2,align=off,sleep=off", "-smp", "1", "-m", "512M",
			"-kernel", m.image, "-initrd", m.initrd, "-append", "console=ttyAMA0 loglevel=4 panic=-1",
			"-rtc", "clock=vm", "-monitor", "none", "-nic", "none", "-no-reboot",
		},
		Log: m.log, Line: line,
	})
	if err != nil {
		return 0, err
	}
	return running.Wait(ctx, limit)
}
