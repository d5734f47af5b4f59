package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
)

// rounds is enough for a 99th percentile of which forty rounds lie beyond.
const rounds = 4000

// raw is the least that durable bytes can cost: pwrite and fdatasync into a file that was written once.
type raw struct {
	file   *os.File
	offset int64
}

func newRaw(dir string) (*raw, error) {
	f, err := os.OpenFile(filepath.Join(dir, "raw"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err := f.Write(make([]byte, audit.SegmentSize)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &raw{file: f}, f.Sync()
}

func (r *raw) write(b []byte) error {
	if r.offset+int64(len(b)) > audit.SegmentSize {
		r.offset = 0
	}
	if _, err := r.file.WriteAt(b, r.offset); err != nil {
		return err
	}
	r.offset += int64(len(b))
	return unix.Fdatasync(int(r.file.Fd()))
}

// barriers compares barriers with raw writes on the same file system. A barrier of 4 KiB (the outcome of an automatic
// call) is held against one signature and the same bytes, and the promise of a pressed search, with its pages, against its
// bytes alone. The spare segment is made between barriers, as in a household, where calls are seconds apart: both sides
// wait until the log is at rest.
func barriers(ctx context.Context, dir string, f figures) error {
	h := newHousehold()
	disk, err := openDir(dir, "log")
	if err != nil {
		return err
	}
	tap := &tapped{Disk: disk}
	l, err := h.open(ctx, tap)
	if err != nil {
		return err
	}
	defer l.Close()
	r, err := newRaw(dir)
	if err != nil {
		return err
	}
	defer r.file.Close()
	if err := plainBarriers(ctx, h, l, r, f); err != nil {
		return err
	}
	for _, size := range []struct{ name, query string }{{"barrier_vs_raw", queryP50}, {"barrier_vs_raw_p95_size", queryP95}} {
		if err := pressedBarriers(ctx, h, l, tap, r, f, size.name, size.query); err != nil {
			return err
		}
	}
	return l.Close()
}

// rest waits until the log does nothing.
func rest(ctx context.Context, l *audit.Log) error { return l.Append(ctx) }

func plainBarriers(ctx context.Context, h *household, l *audit.Log, r *raw, f figures) error {
	key, block := audittest.GrantKey(), make([]byte, audit.Block)
	var ours, least times
	for n := range rounds {
		c := h.automatic()
		i, err := l.Intend(ctx, c.Entries(), c.Intent, c.Inv)
		if err != nil {
			return err
		}
		effect, observed := settled(i, c)
		err = inTurn(n, func() error {
			if err := rest(ctx, l); err != nil {
				return err
			}
			return ours.clock(func() error {
				_, err := l.Effect(ctx, i, effect, observed)
				return err
			})
		}, func() error {
			if err := rest(ctx, l); err != nil {
				return err
			}
			return least.clock(func() error {
				copy(block, ed25519.Sign(key, block[:128]))
				return r.write(block)
			})
		})
		if err != nil {
			return err
		}
	}
	f.print("barrier_p50_ratio", ours.at(0.50)/least.at(0.50), "ratio", "<=1.35")
	f.print("barrier_p99_ratio", ours.at(0.99)/least.at(0.99), "ratio", "<=1.6")
	f.print("barrier_p50_us", ours.at(0.50)/float64(time.Microsecond), "us", "-")
	f.print("barrier_p99_us", ours.at(0.99)/float64(time.Microsecond), "us", "-")
	return nil
}

func pressedBarriers(ctx context.Context, h *household, l *audit.Log, tap *tapped, r *raw, f figures, name, query string) error {
	var ours, least times
	block := make([]byte, audit.SegmentSize)
	size := 0
	for n := range rounds / 8 {
		c, err := h.pressed(query)
		if err != nil {
			return err
		}
		entries := c.Entries()
		var i audit.Intent
		err = inTurn(n, func() error {
			if err := rest(ctx, l); err != nil {
				return err
			}
			err := ours.clock(func() (err error) {
				i, err = l.Intend(ctx, entries, c.Intent, c.Inv)
				return err
			})
			size = len(tap.last)
			return err
		}, func() error {
			if err := rest(ctx, l); err != nil || size == 0 {
				return err
			}
			return least.clock(func() error { return r.write(block[:size]) })
		})
		if err != nil {
			return err
		}
		effect, observed := settled(i, c)
		if _, err := l.Effect(ctx, i, effect, observed); err != nil {
			return err
		}
	}
	f.print(name, ours.at(0.50)/least.at(0.50), "ratio", "-")
	f.print(name+"_bytes", float64(size), "bytes", "-")
	return nil
}

// software measures what a barrier costs without a disk, in processor time of the whole process: both barriers of automatic
// calls, and barrier 1 of pressed ones, in which a receipt is verified as well as a seal signed.
func software(ctx context.Context, _ string, f figures) error {
	h := newHousehold()
	const calls = 50 // fewer than may be under way at one time
	var plain, pressed times
	for range 40 {
		disk := newFree()
		l, err := h.open(ctx, disk)
		if err != nil {
			return err
		}
		if err := rest(ctx, l); err != nil {
			return err
		}
		disk.now = true
		automatic, required := make([]audittest.Call, calls), make([]audittest.Call, calls)
		for i := range calls {
			automatic[i] = h.automatic()
			if required[i], err = h.pressed(queryP50); err != nil {
				return err
			}
		}
		used, err := spent(func() error {
			for _, c := range automatic {
				i, err := l.Intend(ctx, c.Entries(), c.Intent, c.Inv)
				if err != nil {
					return err
				}
				effect, observed := settled(i, c)
				if _, err := l.Effect(ctx, i, effect, observed); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		plain = append(plain, used/(2*calls))
		used, err = spent(func() error {
			for _, c := range required {
				if _, err := l.Intend(ctx, c.Entries(), c.Intent, c.Inv); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		pressed = append(pressed, used/calls)
		if err := rest(ctx, l); err != nil {
			return err
		}
		if err := l.Close(); err != nil {
			return err
		}
	}
	f.print("barrier_cpu_us", plain.at(0.5)/float64(time.Microsecond), "us", "<=150")
	f.print("barrier_receipt_cpu_us", pressed.at(0.5)/float64(time.Microsecond), "us", "-")
	return nil
}

// spent is the processor time that the process uses while do runs.
func spent(do func() error) (time.Duration, error) {
	before, err := usage()
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	after, err := usage()
	return after - before, err
}

func usage() (time.Duration, error) {
	var u unix.Rusage
	err := unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), err
}
