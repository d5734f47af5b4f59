package stick_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/stick"
	"assent.home.arpa/appliance/stick/fat"
)

// BenchmarkSegments writes a record of 50 segments onto an image, and reads it back, through the exporter.
func BenchmarkSegments(b *testing.B) {
	const segments, segment, size = 50, 1 << 20, 300 << 20
	file := filepath.Join(b.TempDir(), "stick.img")
	f, err := os.Create(file)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		b.Fatal(err)
	}
	if err := fat.Format(f, size, "X"); err != nil {
		b.Fatal(err)
	}
	d, err := stick.OpenDevice(file)
	if err != nil {
		b.Fatal(err)
	}
	x := export(b, of(d))
	data := make([]byte, ipc.MaxStickChunk)
	do := func(op ipc.StickOp) {
		if r := x.do(b, op); r.Problem != 0 {
			b.Fatalf("%+v: problem %d", op.Verb, r.Problem)
		}
	}
	b.SetBytes(segments * segment)
	for b.Loop() {
		do(ipc.StickOp{Verb: ipc.StickRemove, Name: "A"})
		do(ipc.StickOp{Verb: ipc.StickMkdir, Name: "A"})
		for i := range segments {
			name := fmt.Sprintf("A/seg-%08d.cborseq", i)
			do(ipc.StickOp{Verb: ipc.StickCreate, Name: name, Handle: 1})
			for range segment / len(data) {
				do(ipc.StickOp{Verb: ipc.StickWrite, Handle: 1, Data: data})
			}
			do(ipc.StickOp{Verb: ipc.StickClose, Handle: 1})
			for off := int64(0); off < segment; off += int64(len(data)) {
				do(ipc.StickOp{Verb: ipc.StickRead, Name: name, Offset: off, Size: uint32(len(data))})
			}
		}
	}
}
