package confirm_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/confirm"
	"assent.home.arpa/confirm/receipt"
	"assent.home.arpa/device/devicetest"
)

// parts are those of a panel that never runs.
func parts() confirm.Config {
	c := clocktest.New()
	return confirm.Config{
		Display: devicetest.NewPanel(c), Buttons: devicetest.NewButtons(c), Clock: c, BootID: [16]byte{1}, Key: testKey(),
		Rand: rand.NewChaCha8([32]byte{2}),
	}
}

func TestRedeemIsEvidence(t *testing.T) {
	inBox(t, func(b *box) {
		r := request(1)
		d := b.grant(r)
		e, err := b.desk.Redeem(d.Receipt, binding(r))
		if err != nil {
			t.Fatal(err)
		}
		want := receipt.Claims{
			Inv: r.Inv, ArgsDigest: r.ArgsDigest, ScreenDigest: d.ScreenDigest, RequestDigest: r.RequestDigest,
			Capability: r.Capability, Version: r.Version, Revision: r.Revision, SchemaDigest: r.SchemaDigest,
			NonceDigest: e.Claims.NonceDigest, BootID: [16]byte{1}, Shown: d.Shown, Pressed: d.Pressed, Completed: d.Completed,
			Expires: d.Expires, Slot: r.Slot, Registry: r.Registry,
		}
		if diff := cmp.Diff(want, e.Claims); diff != "" {
			t.Error(diff)
		}
		if e.Claims.NonceDigest == [32]byte{} || e.Digest != sha256.Sum256(e.COSE) {
			t.Error("nonce or evidence digest is missing")
		}
	})
}

// TestRedeemOnce: the first use consumes a receipt, whatever becomes of it (A24), and it is worth what was shown and nothing else
// (A22).
func TestRedeemOnce(t *testing.T) {
	good := func(b *confirm.Binding) {}
	for _, tt := range []struct {
		name   string
		want   error
		change func(*confirm.Binding)
		before func(b *box)
	}{
		{"used", nil, good, nil},
		{"another invocation", confirm.ErrReceiptMismatch, func(b *confirm.Binding) { b.Inv[0]++ }, nil},
		{"other arguments", confirm.ErrReceiptMismatch, func(b *confirm.Binding) { b.ArgsDigest[31]++ }, nil},
		{"other bytes to send", confirm.ErrReceiptMismatch, func(b *confirm.Binding) { b.RequestDigest[0]++ }, nil},
		{"another capability", confirm.ErrReceiptMismatch, func(b *confirm.Binding) { b.Capability = "web.fetch" }, nil},
		{"another version", confirm.ErrReceiptMismatch, func(b *confirm.Binding) { b.Version++ }, nil},
		{"another adapter", confirm.ErrReceiptMismatch, func(b *confirm.Binding) { b.Revision = "mediawiki/2" }, nil},
		{"another schema", confirm.ErrReceiptMismatch, func(b *confirm.Binding) { b.SchemaDigest[0]++ }, nil},
		{"another registry", confirm.ErrReceiptMismatch, func(b *confirm.Binding) { b.Registry = "r2" }, nil},
		{"another phone", confirm.ErrReceiptMismatch, func(b *confirm.Binding) { b.Slot++ }, nil},
		{"too late", confirm.ErrReceiptExpired, good, func(b *box) { b.hands.Wait(time.Minute) }},
		{"too late, the box slept", confirm.ErrReceiptExpired, good, func(b *box) { b.clock.Suspend(time.Minute) }},
		{"after a panic", confirm.ErrReceiptRevoked, good, func(b *box) { b.hands.Hold(deny, 5100*time.Millisecond) }},
		{"after the panel ended", confirm.ErrReceiptRevoked, good, func(b *box) {
			_ = b.stop()
			b.stop = func() error { return context.Canceled }
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBox(t, func(b *box) {
				r := request(1)
				d := b.grant(r)
				if tt.before != nil {
					tt.before(b)
				}
				bind := binding(r)
				tt.change(&bind)
				if _, err := b.desk.Redeem(d.Receipt, bind); !errors.Is(err, tt.want) {
					t.Fatalf("first use says %v, want %v", err, tt.want)
				}
				if _, err := b.desk.Redeem(d.Receipt, binding(r)); !errors.Is(err, confirm.ErrReceiptUnknown) {
					t.Errorf("second use says %v", err)
				}
			})
		})
	}
}

func TestRedeemKnowsOnlyItsOwnBoot(t *testing.T) {
	inBox(t, func(b *box) {
		r := request(1)
		d := b.grant(r)
		cfg := parts()
		cfg.BootID = [16]byte{2}
		next, err := confirm.New(cfg) // the same key after a restart
		if err != nil {
			t.Fatal(err)
		}
		if _, err := next.Redeem(d.Receipt, binding(r)); !errors.Is(err, confirm.ErrReceiptUnknown) {
			t.Errorf("a receipt of the previous boot says %v", err)
		}
		if _, err := b.desk.Redeem(confirm.Receipt{}, binding(r)); !errors.Is(err, confirm.ErrReceiptUnknown) {
			t.Errorf("the zero receipt says %v", err)
		}
	})
}

func TestReceiptPrintsNothing(t *testing.T) {
	inBox(t, func(b *box) {
		d := b.grant(request(1))
		e := fmt.Sprintf("%v %+v %#v %s %x %q %d", d.Receipt, d.Receipt, d.Receipt, d.Receipt, d.Receipt, d.Receipt, d.Receipt)
		if e != strings.TrimSpace(strings.Repeat("receipt ", 7)) {
			t.Errorf("prints %s", e)
		}
		evidence, err := b.desk.Redeem(d.Receipt, binding(request(1)))
		if err != nil {
			t.Fatal(err)
		}
		hidden := fmt.Sprintf("%x", struct{ r confirm.Receipt }{d.Receipt})
		if len(hidden) > 64 || strings.Contains(hidden, fmt.Sprintf("%x", evidence.COSE)) {
			t.Errorf("prints %s inside a struct", hidden)
		}
		//lint:ignore SA9005 that nothing is marshalled is the point
		j, err := json.Marshal(d.Receipt)
		if err != nil || string(j) != "{}" {
			t.Errorf("marshals to %s, %v", j, err)
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "r", d.Receipt)
		if !strings.Contains(log.String(), "r=receipt\n") {
			t.Errorf("logs %s", log.String())
		}
	})
}

// TestNoRandomnessNoApproval: a box that cannot draw a nonce stops.
func TestNoRandomnessNoApproval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := parts()
		cfg.Rand = bytes.NewReader(make([]byte, 400))
		d, err := confirm.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- d.Run(context.Background()) }()
		synctest.Wait()
		c, ok := cfg.Clock.(*clocktest.Clock)
		if !ok {
			t.Fatal("not a test clock")
		}
		for range 100 {
			c.Advance(time.Minute)
			synctest.Wait()
		}
		if err := <-ended; err == nil {
			t.Error("runs on without randomness")
		}
		if _, err := d.Ask(context.Background(), request(1)); !errors.Is(err, confirm.ErrClosed) {
			t.Errorf("ask says %v", err)
		}
	})
}
