package confirm_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"flag"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/confirm"
	"assent.home.arpa/device/devicetest"
)

// TestIdleCosts measures what a panel that shows its idle screen costs in a minute: its own goroutines, on the kernel's clocks.
func TestIdleCosts(t *testing.T) {
	figures := flag.Lookup("figures").Value.String()
	if figures == "" {
		t.Skip("measured where figures are asked for (-figures)")
	}
	c := clock.System()
	d, err := confirm.New(confirm.Config{
		Display: devicetest.NewPanel(c), Buttons: devicetest.NewButtons(c), Clock: c, BootID: [16]byte{1},
		Key: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize)),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	time.Sleep(time.Second) // the start is no idling
	before, from := usage(t), time.Now()
	time.Sleep(time.Minute)
	after, took := usage(t), time.Since(from)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	busy := time.Duration(after.Utime.Nano()-before.Utime.Nano()+after.Stime.Nano()-before.Stime.Nano()) * time.Nanosecond
	t.Logf("%v of processor time and %d waits in %v", busy, after.Nvcsw-before.Nvcsw, took.Round(time.Millisecond))
	f, err := os.OpenFile(figures, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(f, "panel/idle_cpu_percent %.3f %% <=0.5\n", 100*float64(busy)/float64(took))
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

func usage(t *testing.T) syscall.Rusage {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return u
}
