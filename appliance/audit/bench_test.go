package audit_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/capabilities"
)

// BenchmarkBarrier compares a barrier of one record with the least that a durable 4 KiB can cost on the same file system:
// pwrite and fdatasync into a preallocated file. The two are interleaved, so that both meet the same neighbours. It
// reports the medians' ratio.
func BenchmarkBarrier(b *testing.B) {
	dir := b.TempDir()
	o := audittest.Options(clock.System(), nil)
	o.Dir, o.Quota = filepath.Join(dir, "log"), 16<<30
	l, err := audit.Open(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	f, err := os.Create(filepath.Join(dir, "raw"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, audit.SegmentSize)); err != nil {
		b.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
	block := make([]byte, audit.Block)
	var raw, barrier []time.Duration
	for i := 0; b.Loop(); i++ {
		block[0] = byte(i)
		start := time.Now()
		if _, err := f.WriteAt(block, int64(i*audit.Block%audit.SegmentSize)); err != nil {
			b.Fatal(err)
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			b.Fatal(err)
		}
		raw = append(raw, time.Since(start))
		start = time.Now()
		if _, err := l.Barrier(b.Context(), audit.Entry{Payload: audit.Freeze{On: true, By: audit.ByBox}}); err != nil {
			b.Fatal(err)
		}
		barrier = append(barrier, time.Since(start))
	}
	for _, p := range []struct {
		of   float64
		name string
	}{{0.50, "p50"}, {0.99, "p99"}} {
		r, m := percentile(raw, p.of), percentile(barrier, p.of)
		b.ReportMetric(float64(m)/float64(r), p.name+"/raw")
		b.ReportMetric(float64(m.Microseconds()), p.name+"-µs")
	}
}

func percentile(d []time.Duration, of float64) time.Duration {
	slices.Sort(d)
	return d[int(of*float64(len(d)-1))]
}

// BenchmarkVerify reads a log of whole calls, as the command does.
func BenchmarkVerify(b *testing.B) {
	clk, disk := clocktest.New(), audittest.NewDisk()
	l, err := audit.Open(b.Context(), audittest.Options(clk, disk))
	if err != nil {
		b.Fatal(err)
	}
	for n := range 200 {
		c := audittest.Required(clk, byte(n))
		i, err := l.Intend(b.Context(), c.Entries(), c.Intent, c.Inv)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := l.Effect(b.Context(), i, audit.EffectRecord{Status: capabilities.Done}); err != nil {
			b.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	fsys := disk.FS()
	var records uint64
	for b.Loop() {
		r, err := audit.Verify(b.Context(), fsys, audit.VerifyOptions{})
		if err != nil || r.Status != audit.Intact {
			b.Fatal(r.Problem, err)
		}
		records += r.Records
	}
	b.ReportMetric(float64(records)/b.Elapsed().Seconds(), "records/s")
}
