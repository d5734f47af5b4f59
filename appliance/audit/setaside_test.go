package audit_test

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/clock/clocktest"
)

// damagedLog is a log of three segments with a torn tail that was set aside, in which a bit is wrong that was acknowledged,
// and the link of its last seal.
func damagedLog(t *testing.T) (*audittest.Disk, audit.Digest) {
	t.Helper()
	disk, _ := threeSegments(t)
	last := "seg-00000002.cborseq"
	content := disk.Content(last)
	copy(content[endOf(content):], "a torn tail")
	disk.Put(last, content)
	l := open(t, clocktest.New(), disk)
	keep(t, l, []byte("the last words"))
	link := l.Head().Link
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	content = disk.Content(last)
	content[bytes.Index(content, []byte(secret(4)))] ^= 1
	disk.Put(last, content)
	refused(t, disk)
	return disk, link
}

func refused(t *testing.T, disk *audittest.Disk) {
	t.Helper()
	before := listing(t, disk.FS(), ".")
	l, err := audit.Open(t.Context(), audittest.Options(clocktest.New(), disk))
	if !errors.Is(err, audit.ErrCorrupt) {
		l.Close()
		t.Fatalf("a damaged log was opened: %v", err)
	}
	if d := cmp.Diff(before, listing(t, disk.FS(), ".")); d != "" {
		t.Fatal("opening it changed something: ", d)
	}
}

// listing is every file below dir by its bytes.
func listing(t *testing.T, fsys fs.FS, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(fsys, dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		files[name] = string(content(t, fsys, name))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// evidence is what of a log must be kept, by its name in dir.
func evidence(t *testing.T, disk *audittest.Disk, dir string) map[string]string {
	t.Helper()
	kept := map[string]string{}
	for name, content := range listing(t, disk.FS(), ".") {
		if !strings.HasPrefix(name, "key.") && !strings.HasSuffix(name, ".spare") {
			kept[dir+"/"+name] = content
		}
	}
	if len(kept) < 5 { // segments, root, torn tail
		t.Fatalf("only %d files", len(kept))
	}
	return kept
}

// prevLog is the link that the log's genesis names.
func prevLog(t *testing.T, disk *audittest.Disk) audit.Digest {
	t.Helper()
	var sign1 struct {
		_                               struct{} `cbor:",toarray"`
		Protected, Unprotected, Payload cbor.RawMessage
		Signature                       []byte
	}
	var payload []byte
	var claims audit.GenesisClaims
	g := records(t, disk)[0].Payload.(*audit.Genesis)
	for _, err := range []error{
		cbor.Unmarshal(g.Statement[1:], &sign1), cbor.Unmarshal(sign1.Payload, &payload), cbor.Unmarshal(payload, &claims),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return claims.PrevLog
}

func TestADamagedLogIsSetAsideAndTheNextNamesIt(t *testing.T) {
	disk, link := damagedLog(t)
	key := string(disk.Content("key.cur")[4:])
	want := evidence(t, disk, "damaged-0001")
	got, err := audit.SetAside(disk)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(audit.Damaged{Dir: "damaged-0001", Link: link}, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(want, listing(t, disk.FS(), "damaged-0001")); d != "" {
		t.Error("the evidence is not what it was: ", d)
	}
	if names := holding(t, disk.FS(), key); len(names) != 0 {
		t.Errorf("the old seal key is in %v", names)
	}
	if _, err := audit.SetAside(disk); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("where there is no log: %v", err)
	}
	l := open(t, clocktest.New(), disk)
	root := l.Root()
	keep(t, l, []byte("a new log"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	intact(t, disk)
	if got := prevLog(t, disk); got != link {
		t.Errorf("the new log follows %v, where the old one ended with %v", got, link)
	}
	old, err := fs.Sub(disk.FS(), "damaged-0001")
	if err != nil {
		t.Fatal(err)
	}
	if r := judge(t, old, audit.VerifyOptions{}); r.Status != audit.Altered || r.Root == root || r.Root == (audit.Digest{}) {
		t.Errorf("the old log is %s, and its root is %v", r.Status, r.Root)
	}
	// And again, with the log that followed.
	content := disk.Content(segment0)
	content[audit.Block/2] ^= 1
	content[20] ^= 1
	disk.Put(segment0, content)
	refused(t, disk)
	again, err := audit.SetAside(disk)
	if err != nil || again.Dir != "damaged-0002" || again.Link == link || again.Link == (audit.Digest{}) {
		t.Errorf("%+v, %v", again, err)
	}
	if d := cmp.Diff(want, listing(t, disk.FS(), "damaged-0001")); d != "" {
		t.Error("the first log's evidence is not what it was: ", d)
	}
}

// Power is lost at any operation: Open never begins anew before everything is in its place, and who goes on finds it all.
func TestPowerLossWhileSettingAside(t *testing.T) {
	t.Parallel()
	base, link := damagedLog(t)
	want := evidence(t, base, "damaged-0001")
	whole := base.Copy()
	if _, err := audit.SetAside(whole); err != nil {
		t.Fatal(err)
	}
	total := whole.Ops()
	dead := errors.New("the power is gone")
	random := rand.New(rand.NewPCG(7, 8))
	nothing, everything := func(int) int { return 0 }, func(n int) int { return n - 1 }
	var begun, done int
	for at := 1 + total%thin; at <= total+1; at += thin { // the last is among them
		for how, choose := range [][]func(int) int{{nothing, everything}, {everything, random.IntN}, {random.IntN, nothing}}[at%3] {
			disk := base.Copy()
			disk.Arm(audittest.Fault{At: at, Err: dead, Dead: true, Short: at%2 == 0})
			_, err := audit.SetAside(disk)
			acknowledged := err == nil
			image := disk.Crash(choose)
			if image.Content("previous.log") == nil || image.Content("setaside.todo") != nil {
				if acknowledged {
					t.Error("it was acknowledged and is not done")
				}
				refused(t, image)
				image.Arm(audittest.Fault{At: 1 + random.IntN(10), Err: dead, Dead: true})
				_, _ = audit.SetAside(image)
				image = image.Crash(random.IntN)
				begun++
			} else {
				done++
			}
			if got, err := audit.SetAside(image); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("once more: %+v, %v", got, err)
			}
			if d := cmp.Diff(want, listing(t, image.FS(), "damaged-0001")); d != "" {
				t.Error("the evidence is not what it was: ", d)
			}
			l := open(t, clocktest.New(), image)
			l.Close()
			intact(t, image)
			if got := prevLog(t, image); got != link {
				t.Errorf("the new log follows %v", got)
			}
			if dirs, err := image.Dirs(); err != nil || !slices.Equal(dirs, []string{"damaged-0001"}) {
				t.Errorf("directories %v, %v", dirs, err)
			}
			if t.Failed() {
				t.Fatalf("power lost at operation %d of %d, way %d", at, total, how)
			}
		}
	}
	if begun == 0 || done == 0 {
		t.Errorf("cut short %d times, done %d times", begun, done)
	}
}

func TestTheLastLinkIsFoundWhateverIsDamaged(t *testing.T) {
	base, link := damagedLog(t)
	names := []string{"seg-00000000.cborseq", "seg-00000001.cborseq", "seg-00000002.cborseq"}
	last := base.Content(names[2])
	for name, c := range map[string]struct {
		damage func(*audittest.Disk)
		whole  bool // the last seal can be read
		any    bool
	}{
		"the first segment": {func(d *audittest.Disk) { d.Put(names[0], bytes.Repeat([]byte{0xff}, 10)) }, true, true},
		"the last seal": {func(d *audittest.Disk) {
			b := bytes.Clone(last)
			b[len(bytes.TrimRight(b, "\x00"))-9] ^= 1
			d.Put(names[2], b)
		}, false, true},
		"the last segment": {func(d *audittest.Disk) { d.Put(names[2], bytes.Repeat([]byte{0x83}, audit.SegmentSize)) }, false, true},
		"every segment": {func(d *audittest.Disk) {
			for _, n := range names {
				d.Put(n, []byte("nothing"))
			}
		}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			disk := base.Copy()
			c.damage(disk)
			got, err := audit.SetAside(disk)
			if err != nil || (got.Link == link) != c.whole || (got.Link != audit.Digest{}) != c.any {
				t.Fatalf("%+v, %v, where the last link was %v", got, err, link)
			}
			open(t, clocktest.New(), disk).Close()
			if prev := prevLog(t, disk); prev != got.Link {
				t.Errorf("the new log follows %v", prev)
			}
		})
	}
}

func TestALogWithoutSegmentsIsSetAside(t *testing.T) {
	disk := audittest.NewDisk()
	live(t, disk)
	if err := disk.Remove(segment0); err != nil {
		t.Fatal(err)
	}
	refused(t, disk)
	if got, err := audit.SetAside(disk); err != nil || got != (audit.Damaged{Dir: "damaged-0001"}) {
		t.Fatalf("%+v, %v", got, err)
	}
	open(t, clocktest.New(), disk).Close()
	intact(t, disk)
}

// On a real directory.
func TestALogOnFlashIsSetAside(t *testing.T) {
	dir := t.TempDir()
	o := audittest.Options(clocktest.New(), nil)
	o.Dir = dir
	l, err := audit.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	keep(t, l, []byte(secret(1)))
	link := l.Head().Link
	setAside := func() (audit.Damaged, error) {
		disk, err := audit.OpenDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return audit.SetAside(disk)
	}
	if _, err := setAside(); !errors.Is(err, audit.ErrLocked) {
		t.Errorf("while it is open: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	segment := filepath.Join(dir, segment0)
	b, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	b[30] ^= 1
	if err := os.WriteFile(segment, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.Open(t.Context(), o); !errors.Is(err, audit.ErrCorrupt) {
		t.Fatalf("got %v", err)
	}
	got, err := setAside()
	if d := cmp.Diff(audit.Damaged{Dir: "damaged-0001", Link: link}, got); d != "" || err != nil {
		t.Fatal(d, err)
	}
	if moved, err := os.ReadFile(filepath.Join(dir, got.Dir, segment0)); err != nil || !bytes.Equal(moved, b) {
		t.Errorf("the evidence is not what it was: %v", err)
	}
	info, err := os.Stat(filepath.Join(dir, got.Dir))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if l, err = audit.Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	audittest.Verify(t, dir)
	if _, err := audit.SetAside(audittest.NewDisk()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty directory: %v", err)
	}
}
