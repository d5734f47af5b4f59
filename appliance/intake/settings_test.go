package intake_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/config"
	"assent.home.arpa/appliance/intake"
)

func drop(text string) intake.Drop { return intake.Drop{Content: []byte(text)} }

const (
	kitchen = "[box]\nname = \"Kitchen\"\n"
	cellar  = "[box]\nname = \"Cellar\"\n"
	broken  = "[box]\nname = \"Attic\"\ncolour = \"red\"\n"
)

func TestWhichSettingsAreInForce(t *testing.T) {
	type start struct {
		drop    intake.Drop
		change  string // somebody changes the last good settings before it
		name    string
		source  intake.Source
		problem string
	}
	none := intake.Drop{}
	for _, tc := range []struct {
		name   string
		starts []start
	}{
		{"a new box", []start{{none, "", "Assent", intake.FromDefaults, ""}}},
		{"a drop is taken, and stays when the card's file goes", []start{
			{drop(kitchen), "", "Kitchen", intake.FromDrop, ""},
			{none, "", "Kitchen", intake.FromLastGood, ""},
		}},
		{"an empty file is one, too", []start{
			{drop(kitchen), "", "Kitchen", intake.FromDrop, ""},
			{intake.Drop{Content: []byte{}}, "", "Assent", intake.FromDrop, ""},
		}},
		{"a broken drop leaves the last good settings in force", []start{
			{drop(kitchen), "", "Kitchen", intake.FromDrop, ""},
			{drop(broken), "", "Kitchen", intake.FromLastGood, "assent.toml on the card is not valid: unknown key box.colour; run assentd check-config to see the keys. In force: the last good settings."},
			{drop(broken), "", "Kitchen", intake.FromLastGood, "unknown key box.colour"},
			{drop(cellar), "", "Cellar", intake.FromDrop, ""},
		}},
		{"a broken drop on a new box", []start{{drop("[box\n"), "", "Assent", intake.FromDefaults, "line 2"}}},
		{"a drop that would have the record elsewhere", []start{
			{drop("[paths]\nstate = \"/tmp/x\"\n"), "", "Assent", intake.FromDefaults, "paths cannot be changed on a box"},
			{none, "[paths]\nruntime = \"/tmp/x\"\n", "Assent", intake.FromDefaults, "paths cannot be changed on a box"},
		}},
		{"a drop that is over the bound", []start{{drop("# " + strings.Repeat("x", config.MaxBytes)), "", "Assent", intake.FromDefaults, "over the bound"}}},
		{"a drop that cannot be read", []start{{intake.Drop{Err: syscall.EIO}, "", "Assent", intake.FromDefaults, "cannot be read: input/output error"}}},
		{"a drop is not taken twice after the settings have changed", []start{
			{drop(kitchen), "", "Kitchen", intake.FromDrop, ""},
			{drop(kitchen), cellar, "Cellar", intake.FromLastGood, ""},
			{drop(kitchen + "\n"), "", "Kitchen", intake.FromDrop, ""},
		}},
		{"a drop is taken again where the last good settings are lost", []start{
			{drop(kitchen), "", "Kitchen", intake.FromDrop, ""},
			{drop(kitchen), broken, "Kitchen", intake.FromDrop, ""},
		}},
		{"last good settings that an update does not know any more", []start{
			{none, broken, "Assent", intake.FromDefaults, "the last good settings cannot be used: unknown key"},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := audittest.NewDisk()
			for i, s := range tc.starts {
				if s.change != "" {
					d.Put("assent.toml", []byte(s.change))
				}
				got := intake.TakeSettings(config.Default(), s.drop, dir{d})
				if got.Config.Box.Name != s.name || got.Source != s.source {
					t.Errorf("start %d: %s by %s, want %s by %s", i, got.Config.Box.Name, got.Source, s.name, s.source)
				}
				if (got.Problem == "") != (s.problem == "") || !strings.Contains(got.Problem, s.problem) {
					t.Errorf("start %d: the problem is %q, want %q", i, got.Problem, s.problem)
				}
			}
		})
	}
}

// Whenever power fails while a drop is taken, what is in force afterwards is the old settings or the new ones, whole, and the
// next start takes the drop.
func TestPowerFailsWhileADropIsTaken(t *testing.T) {
	d := audittest.NewDisk()
	if s := intake.TakeSettings(config.Default(), drop(kitchen), dir{d}); s.Source != intake.FromDrop {
		t.Fatal(s.Source)
	}
	cuts := 0
	take := func(d *audittest.Disk) { intake.TakeSettings(config.Default(), drop(cellar), dir{d}) }
	everyCut(d, take, func(cut int, d *audittest.Disk) {
		cuts++
		// With the drop gone, too, whatever was kept must be whole.
		alone := intake.TakeSettings(config.Default(), intake.Drop{}, dir{d.Copy()})
		if alone.Problem != "" || alone.Source != intake.FromLastGood || (alone.Config.Box.Name != "Kitchen" && alone.Config.Box.Name != "Cellar") {
			t.Fatalf("cut %d: %s by %s: %s", cut, alone.Config.Box.Name, alone.Source, alone.Problem)
		}
		next := intake.TakeSettings(config.Default(), drop(cellar), dir{d})
		if next.Config.Box.Name != "Cellar" || next.Problem != "" {
			t.Fatalf("cut %d: the next start has %s by %s: %s", cut, next.Config.Box.Name, next.Source, next.Problem)
		}
	})
	if cuts < 6*6 {
		t.Errorf("only %d cuts", cuts)
	}
}

func TestTheBoxIsFullWhenADropComes(t *testing.T) {
	d := audittest.NewDisk()
	intake.TakeSettings(config.Default(), drop(kitchen), dir{d})
	d.Arm(audittest.Fault{At: 1, Full: true})
	got := intake.TakeSettings(config.Default(), drop(cellar), dir{d})
	if got.Config.Box.Name != "Cellar" || got.Source != intake.FromDrop || !strings.Contains(got.Problem, "could not keep it: ") {
		t.Errorf("%s by %s: %s", got.Config.Box.Name, got.Source, got.Problem)
	}
	d.Arm(audittest.Fault{})
	if got := intake.TakeSettings(config.Default(), intake.Drop{}, dir{d}); got.Config.Box.Name != "Kitchen" {
		t.Errorf("the last good settings are gone: %s, %s", got.Config.Box.Name, got.Problem)
	}
}

func TestTheFileOnTheCard(t *testing.T) {
	card := t.TempDir()
	path := filepath.Join(card, "assent.toml")
	if d := intake.ReadDrop(path); d.Content != nil || d.Err != nil {
		t.Errorf("none: %+v", d)
	}
	if d := intake.ReadDrop(filepath.Join(card, "not mounted", "assent.toml")); d.Content != nil || d.Err != nil {
		t.Errorf("no partition: %+v", d)
	}
	if err := os.WriteFile(path, []byte(kitchen), 0o600); err != nil {
		t.Fatal(err)
	}
	if d := intake.ReadDrop(path); string(d.Content) != kitchen || d.Err != nil {
		t.Errorf("a file: %+v", d)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if d := intake.ReadDrop(path); d.Content == nil || d.Err != nil {
		t.Errorf("an empty file: %+v", d)
	}
	for name, make := range map[string]func() error{
		"a directory": func() error { return os.Mkdir(path, 0o700) },
		"a link":      func() error { return os.Symlink("/etc/passwd", path) },
		"a pipe":      func() error { return syscall.Mkfifo(path, 0o600) },
	} {
		if err := errors.Join(os.Remove(path), make()); err != nil {
			t.Fatal(err)
		}
		if d := intake.ReadDrop(path); d.Err == nil {
			t.Errorf("%s was read: %+v", name, d)
		}
	}
}

// The real directory does what the simulated one does.
func TestSettingsOnARealDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings")
	store, closer, err := intake.OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	intake.TakeSettings(config.Default(), drop(kitchen), store)
	if got := intake.TakeSettings(config.Default(), intake.Drop{}, store); got.Config.Box.Name != "Kitchen" || got.Problem != "" {
		t.Errorf("%s, %s", got.Config.Box.Name, got.Problem)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{"assent.toml", "dropped.sha256"}, names); diff != "" {
		t.Error(diff)
	}
}

// Where nobody says anything, the box has what its machine has; what was kept is read over that, too.
func TestTheMachineSaysTheRest(t *testing.T) {
	d := audittest.NewDisk()
	pi := config.On("raspberrypi,5-model-b\x00brcm,bcm2712\x00")
	for start, drop := range []intake.Drop{{}, drop(kitchen), {}, drop(broken)} {
		if got := intake.TakeSettings(pi, drop, dir{d}); got.Config.Panel != pi.Panel {
			t.Errorf("start %d: %+v", start, got.Config.Panel)
		}
	}
}

func TestWhoMayAskForTheTime(t *testing.T) {
	at := t.TempDir()
	published, closer, err := intake.OpenDir(at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closer.Close() })
	for _, chosen := range []bool{false, true, true, false} {
		c := config.Default()
		c.Box.NetworkTime = chosen
		if err := (intake.Settings{Config: c}).Publish(published); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(at, "network-time")); (err == nil) != chosen {
			t.Errorf("chosen %v, and the unit that asks sees: %v", chosen, err)
		}
	}
}
