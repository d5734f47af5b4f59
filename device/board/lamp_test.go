package board_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"assent.home.arpa/device"
	"assent.home.arpa/device/board"
	"assent.home.arpa/device/board/boardtest"
)

// shop is a machine with a lamp and a buzzer on two chips.
func shop(t *testing.T) (k *boardtest.Kernel, lamp, buzzer *boardtest.Line) {
	lamp, buzzer = &boardtest.Line{Name: "assent-lamp", Active: true}, &boardtest.Line{Name: "assent-buzzer", Active: true}
	k = boardtest.NewKernel(t)
	k.AddChip(0, headerPins, &boardtest.Line{}, lamp)
	k.AddChip(1, expander, buzzer)
	return k, lamp, buzzer
}

// TestSignals watches both for five seconds after each signal, and writes down what changes: L and B are lamp and buzzer.
func TestSignals(t *testing.T) {
	for _, tt := range []struct {
		signal device.Signal
		want   []string
	}{
		{device.Quiet, nil},
		{device.Waiting, []string{"0s LB", "80ms L-", "200ms --", "2s L-", "2.2s --", "4s L-", "4.2s --"}},
		{device.Still, []string{"0s L-", "200ms --", "2s L-", "2.2s --", "4s L-", "4.2s --"}},
		{device.Holding, []string{"0s L-"}},
		{device.Alarm, []string{
			"0s LB", "250ms --", "500ms LB", "750ms --", "1s LB", "1.25s --", "1.5s L-", "1.75s --", "2s L-", "2.25s --", "2.5s L-",
			"2.75s --", "3s L-", "3.25s --", "3.5s L-", "3.75s --", "4s L-", "4.25s --", "4.5s L-", "4.75s --",
		}},
	} {
		t.Run(fmt.Sprint(tt.signal), func(t *testing.T) {
			k, lamp, buzzer := shop(t)
			synctest.Test(t, func(t *testing.T) {
				l, closeIt, err := board.OpenSignals(k.Root, k, "assent-lamp@fe200000.gpio", "assent-buzzer")
				if err != nil {
					t.Fatal(err)
				}
				look := func() string {
					synctest.Wait()
					s := []byte("--")
					if k.Lit(lamp) {
						s[0] = 'L'
					}
					if k.Lit(buzzer) {
						s[1] = 'B'
					}
					return string(s)
				}
				last := look()
				if last != "--" {
					t.Errorf("before any signal: %s", last)
				}
				if err := l.Show(tt.signal); err != nil {
					t.Error(err)
				}
				var got []string
				const step = 10 * time.Millisecond
				for at := time.Duration(0); at < 5*time.Second; at += step {
					if now := look(); now != last {
						got, last = append(got, fmt.Sprint(at, " ", now)), now
					}
					time.Sleep(step)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Error(diff)
				}
				if err := closeIt(); err != nil {
					t.Error(err)
				}
				if now := look(); now != "--" {
					t.Errorf("after the end: %s", now)
				}
			})
		})
	}
}

// TestLatestSignalCounts shows several before anybody looks.
func TestLatestSignalCounts(t *testing.T) {
	k, lamp, _ := shop(t)
	synctest.Test(t, func(t *testing.T) {
		l, closeIt, err := board.OpenSignals(k.Root, k, "assent-lamp", "")
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []device.Signal{device.Alarm, device.Waiting, device.Holding, device.Quiet, device.Holding} {
			if err := l.Show(s); err != nil {
				t.Error(err)
			}
		}
		for range 20 {
			time.Sleep(130 * time.Millisecond)
			if !k.Lit(lamp) {
				t.Fatal("the lamp shows another signal")
			}
		}
		k.LoseOutput(lamp)
		_ = l.Show(device.Quiet)
		synctest.Wait()
		if err := l.Show(device.Alarm); !errors.Is(err, unix.ENODEV) {
			t.Errorf("a lamp that is gone says %v", err)
		}
		if err := closeIt(); err != nil {
			t.Error(err)
		}
	})
}

func TestKitWithoutSignals(t *testing.T) {
	l, closeIt, err := board.OpenSignals(t.TempDir(), boardtest.NewKernel(t), "", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []device.Signal{device.Waiting, device.Holding, device.Alarm, device.Quiet} {
		if err := l.Show(s); err != nil {
			t.Error(err)
		}
	}
	if err := closeIt(); err != nil {
		t.Error(err)
	}
}
