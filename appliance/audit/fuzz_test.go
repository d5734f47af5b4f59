package audit_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/clock/clocktest"
)

// template is a whole log to be damaged: three starts, calls, one that was cut off, a new day, an export.
type template struct {
	disk *audittest.Disk
	head audit.Head
	root audit.Digest
}

// newTemplate makes the template once for all that share it.
func newTemplate() func(testing.TB) template {
	var once sync.Once
	var made template
	return func(t testing.TB) template {
		once.Do(func() {
			u := scenario{}.user(t, audittest.NewDisk())
			u.open()
			scenarios()["a new day"].run(u)
			u.automatic()
			u.close()
			u.open()
			u.pressed()
			u.finish()
			u.blob(600)
			u.close()
			if u.err != nil {
				t.Fatal(u.err)
			}
			r := judge(t, u.disk.FS(), audit.VerifyOptions{AllSeals: true})
			made = template{disk: u.disk.Copy(), head: u.known.head, root: r.Root}
		})
		if made.disk == nil {
			t.Fatal("there is no template")
		}
		return made
	}
}

// damage runs a program over a directory: of each six bytes, what to do, to which file, where and with what. It returns
// which files it touched.
func damage(disk *audittest.Disk, program []byte, only ...string) []string {
	names, err := disk.List()
	if err != nil {
		return nil
	}
	if len(only) > 0 {
		names = only
	}
	touched := map[string]bool{}
	for len(program) >= 6 && len(names) > 0 {
		step := program[:6]
		program = program[6:]
		name := names[int(step[1])%len(names)]
		content := disk.Content(name)
		if content == nil {
			continue
		}
		// Segments are zeros for the most part; what is written is at the front.
		used := max(1, min(len(content), len(bytes.TrimRight(content, "\x00"))+audit.Block))
		at := (int(step[2])<<16 | int(step[3])<<8 | int(step[4])) % used
		touched[name] = true
		switch step[0] % 7 {
		case 0: // flip
			if at < len(content) {
				content[at] ^= max(1, step[5])
			}
		case 1: // a sector that never reached flash, or whose contents are gone
			clear(content[at/512*512 : min(len(content), at/512*512+512)])
		case 2: // cut
			content = content[:min(at, len(content))]
		case 3: // bytes inserted
			content = slices.Insert(content, min(at, len(content)), program[:min(len(program), int(step[5]))]...)
		case 4: // a block copied over another
			to := int(step[5]) * audit.Block % max(1, used)
			copy(content[to:], bytes.Clone(content[at/audit.Block*audit.Block:min(len(content), at/audit.Block*audit.Block+audit.Block)]))
		case 5: // another file's contents
			content = disk.Content(names[int(step[5])%len(names)])
		case 6:
			_ = disk.Remove(name)
			continue
		}
		disk.Put(name, content)
	}
	return slices.Sorted(maps.Keys(touched))
}

func everything(disk *audittest.Disk) map[string]string {
	all := map[string]string{}
	names, err := disk.List()
	if err != nil {
		return nil
	}
	for _, n := range names {
		all[n] = string(disk.Content(n))
	}
	return all
}

func seedPrograms(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("090000C00002"))       // a torn tail, and no file with the root key
	f.Add([]byte("A1P0\x000490000000")) // a file with too much for a root key
	f.Add([]byte{6, 1, 0, 0, 0, 0, 6, 4, 0, 0, 0, 0, 6, 1, 0, 0, 0, 0})
	for op := range byte(7) {
		f.Add([]byte{op, 0, 0, 3, 7, 2})
		f.Add([]byte{op, 3, 0, 40, 0, 1, op, 4, 0, 0x10, 0x11, 9})
	}
}

// Whatever was done to a log's directory, opening it does not panic, and loses nothing without a word: either it says why
// not and has changed nothing, or it opens, and what is not there any more was set aside and is in the boot record. A log
// that was rolled back as a whole is the exception: nothing inside shows that, unless the anchors do.
func FuzzRecovery(f *testing.F) {
	seedPrograms(f)
	whole := newTemplate()
	f.Fuzz(func(t *testing.T, program []byte) {
		log := whole(t)
		disk := log.disk.Copy()
		damage(disk, program[:min(len(program), 60)])
		before := everything(disk)
		l, err := audit.Open(context.Background(), audittest.Options(clocktest.New(), disk))
		if err != nil {
			if !errors.Is(err, audit.ErrCorrupt) && !errors.Is(err, audit.ErrUnavailable) {
				t.Fatalf("no error that says what to do: %v", err)
			}
			for name, content := range segments(disk) {
				if was := []byte(before[name]); !bytes.HasPrefix(content, bytes.TrimRight(was, "\x00")) {
					t.Fatalf("it does not open (%v), and %s was changed", err, name)
				}
			}
			return
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		var last *audit.Boot
		var at int64
		o := audit.VerifyOptions{AllSeals: true, Anchors: [][]byte{log.head.Seal}, Visit: func(e audit.Entered) error {
			if p, ok := e.Payload.(*audit.Boot); ok {
				last, at = p, e.Offset
			}
			return nil
		}}
		r := judge(t, disk.FS(), o)
		held := r.Status == audit.Intact && r.Anchors[0].State == audit.AnchorHeld
		o.Anchors = nil
		switch r := judge(t, disk.FS(), o); {
		case r.Status != audit.Intact:
			t.Fatalf("it opened, and is %s, %v", r.Status, r.Problem)
		case held:
		case r.Root != log.root:
			if before[anchors] != "" {
				t.Fatalf("a new log was begun though there are anchors of another")
			}
		case last.TailBytes == 0 && len(strings.TrimRight(before[segment0], "\x00")) > int(at):
			t.Fatal("what was acknowledged is gone, and no record says so")
		}
	})
}

// Whatever was done to the bytes of a log, it is intact only with the same records.
func FuzzVerify(f *testing.F) {
	seedPrograms(f)
	whole := newTemplate()
	f.Fuzz(func(t *testing.T, program []byte) {
		log := whole(t)
		disk := log.disk.Copy()
		damage(disk, program[:min(len(program), 60)], segment0)
		if disk.Content(segment0) == nil {
			return
		}
		var seen []audit.Digest
		r, err := audit.Verify(context.Background(), disk.FS(), audit.VerifyOptions{Visit: func(e audit.Entered) error {
			seen = append(seen, e.Link)
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		if r.Status != audit.Intact {
			if r.Problem == nil || r.Status.ExitCode() == 0 {
				t.Fatalf("%s without a problem", r.Status)
			}
			return
		}
		var were []audit.Digest
		judge(t, log.disk.FS(), audit.VerifyOptions{Visit: func(e audit.Entered) error {
			were = append(were, e.Link)
			return nil
		}})
		// The anchors are not touched, so even a rollback to an earlier epoch shows; one within the last epoch does not.
		if !slices.Equal(seen, were[:min(len(seen), len(were))]) || r.Epochs != judge(t, log.disk.FS(), audit.VerifyOptions{}).Epochs {
			t.Fatalf("intact, with %d other records", len(seen))
		}
	})
}

// Whatever the anchors file holds, it leads to no other root and no other keys, and never makes a whole log altered
// without saying that it is the anchors.
func FuzzAnchors(f *testing.F) {
	seedPrograms(f)
	whole := newTemplate()
	f.Add([]byte{3, 0, 0, 0, 0, 40, 0x84, 1, 0x58, 32, 0x5f, 0x82, 0, 0x41, 1})
	f.Fuzz(func(t *testing.T, program []byte) {
		log := whole(t)
		disk := log.disk.Copy()
		damage(disk, program[:min(len(program), 60)], anchors)
		r := judge(t, disk.FS(), audit.VerifyOptions{})
		if r.Root != log.root && r.Status == audit.Intact {
			t.Fatalf("another root: %s", r.Root)
		}
		if r.Status != audit.Intact && !bytes.Contains([]byte(r.Problem.Reason), []byte(anchors)) {
			t.Fatalf("%s, and the anchors are not named: %v", r.Status, r.Problem)
		}
		// The box mends its anchors from a log that is all there, or says that it cannot.
		l, err := audit.Open(context.Background(), audittest.Options(clocktest.New(), disk))
		if err != nil {
			if !errors.Is(err, audit.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if r := judge(t, without(disk.FS()), audit.VerifyOptions{AllSeals: true}); r.Status != audit.Intact || r.Root != log.root {
			t.Fatalf("after a start: %s, %v", r.Status, r.Problem)
		}
	})
}
