package runs_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/inference/runs"
)

func open(t testing.TB, path string, keep runs.Retention) *runs.Store {
	t.Helper()
	s, err := runs.Open(context.Background(), path, keep)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func add(t testing.TB, s *runs.Store, r runs.RunInvocation) runs.Link {
	t.Helper()
	l, err := s.Append(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// B6, B7 and the case of six calls under a cap of four: requests and executions are counted apart.
func TestRequestsAndExecutionsAreKeptApart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a dir? with #odd% name.db")
	s := open(t, path, runs.DefaultRetention())
	r := invocation(t, "inv-1", strings.Repeat(call(sixCalls), 6))
	link := add(t, s, r)
	var events []runs.ToolCallEvent
	for i := range 4 {
		e := runs.ToolCallEvent{Invocation: "inv-1", Call: fmt.Sprintf("call_%d", i+1), Audit: "00ff", Status: "done", At: time.UnixMilli(int64(i)).UTC()}
		events = append(events, e)
		if err := s.AppendEvent(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path, runs.DefaultRetention())
	got, err := s.Get(t.Context(), "inv-1")
	if err != nil || len(got.Outputs.ToolCalls) != 6 || got.Outputs.Returned != 6 {
		t.Errorf("%d calls of %d (%v)", len(got.Outputs.ToolCalls), got.Outputs.Returned, err)
	}
	stored, err := s.Events(t.Context(), "inv-1")
	if diff := cmp.Diff(events, stored); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	links, err := s.List(t.Context(), "turn-1")
	if diff := cmp.Diff([]runs.Link{link}, links); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if again, err := got.Link(); err != nil || again != link {
		t.Errorf("the record read back has another digest (%v)", err)
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("file mode %v, %v", fi.Mode(), err)
	}
}

func TestWhatIsNotThereIsSaidSo(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "runs.db"), runs.DefaultRetention())
	if _, err := s.Get(t.Context(), "x"); !errors.Is(err, runs.ErrNotFound) {
		t.Errorf("get: %v", err)
	}
	if err := s.Forget(t.Context(), "x"); !errors.Is(err, runs.ErrNotFound) {
		t.Errorf("forget: %v", err)
	}
	if err := s.AppendEvent(t.Context(), runs.ToolCallEvent{Invocation: "x"}); !errors.Is(err, runs.ErrNotFound) {
		t.Errorf("event: %v", err)
	}
	add(t, s, invocation(t, "x", "a"))
	if _, err := s.Append(t.Context(), invocation(t, "x", "b")); !errors.Is(err, runs.ErrExists) {
		t.Errorf("again: %v", err)
	}
	if _, err := s.Append(t.Context(), invocation(t, "", "b")); !errors.Is(err, runs.ErrInvalid) {
		t.Errorf("invalid: %v", err)
	}
	if _, err := runs.Open(t.Context(), filepath.Join(t.TempDir(), "y"), runs.Retention{}); err == nil {
		t.Error("opened with no retention")
	}
}

// B13: a payload can be deleted; its digest, and so the chain that names it, stays.
func TestAForgottenPayloadIsGoneAndItsDigestStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	s := open(t, path, runs.DefaultRetention())
	link := add(t, s, invocation(t, "inv-1", "the secret garden"))
	add(t, s, invocation(t, "inv-2", "something else"))
	if err := s.Forget(t.Context(), "inv-1"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), "inv-1"); !errors.Is(err, runs.ErrForgotten) {
		t.Errorf("get: %v", err)
	}
	links, err := s.List(t.Context(), "turn-1")
	if err != nil || len(links) != 2 || links[0] != link {
		t.Errorf("list: %v, %v", links, err)
	}
	files, _ := filepath.Glob(path + "*")
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte("secret garden")) {
			t.Errorf("%s still has the payload", filepath.Base(f))
		}
	}
}

func TestTheOldestRecordsGoFirst(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "runs.db"), runs.Retention{Invocations: 3, Bytes: runs.MaxInvocation})
	for i := range 5 {
		add(t, s, invocation(t, fmt.Sprintf("inv-%d", i), "x"))
		if err := s.AppendEvent(t.Context(), runs.ToolCallEvent{Invocation: fmt.Sprintf("inv-%d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	ids := func() (out []string) {
		links, err := s.List(t.Context(), "turn-1")
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range links {
			out = append(out, l.Ref)
		}
		return out
	}
	if diff := cmp.Diff([]string{"inv-2", "inv-3", "inv-4"}, ids()); diff != "" {
		t.Error(diff)
	}
	if events, err := s.Events(t.Context(), "inv-1"); err != nil || len(events) != 0 {
		t.Errorf("events of a record that is gone: %v, %v", events, err)
	}
	add(t, s, invocation(t, "large", strings.Repeat("x", runs.MaxInvocation-4000)))
	if got := ids(); got[len(got)-1] != "large" || len(got) > 3 {
		t.Errorf("kept %v", got)
	}
	add(t, s, invocation(t, "larger", strings.Repeat("x", runs.MaxInvocation-2000)))
	if diff := cmp.Diff([]string{"larger"}, ids()); diff != "" {
		t.Error(diff)
	}
}

func TestAnAlteredFileIsNoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	s := open(t, path, runs.DefaultRetention())
	add(t, s, invocation(t, "inv-1", "original"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	change := func(statement string) {
		t.Helper()
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	change(`UPDATE invocations SET body = CAST(replace(CAST(body AS TEXT), 'original', 'modified') AS BLOB)`)
	s = open(t, path, runs.DefaultRetention())
	if _, err := s.Get(t.Context(), "inv-1"); !errors.Is(err, runs.ErrAltered) {
		t.Errorf("got %v", err)
	}
	s.Close()
	change(`PRAGMA user_version = 2`)
	if _, err := runs.Open(t.Context(), path, runs.DefaultRetention()); err == nil {
		t.Error("opened a file of a later version")
	}
}

// TestMain lets this binary be the process that is killed in TestWhatWasAcknowledgedSurvivesAKill.
func TestMain(m *testing.M) {
	if path := os.Getenv("RUNS_TEST_APPEND"); path != "" {
		os.Exit(appendForEver(path))
	}
	os.Exit(m.Run())
}

func appendForEver(path string) int {
	s, err := runs.Open(context.Background(), path, runs.DefaultRetention())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for i := 0; ; i++ {
		r := runs.RunInvocation{ID: fmt.Sprintf("inv-%d", i), Run: "turn-1"}
		if _, err := s.Append(context.Background(), r); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println(r.ID)
	}
}

func TestWhatWasAcknowledgedSurvivesAKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "RUNS_TEST_APPEND="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var acknowledged []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if acknowledged = append(acknowledged, lines.Text()); len(acknowledged) == 30 {
			cmd.Process.Kill()
		}
	}
	cmd.Wait()
	s := open(t, path, runs.DefaultRetention())
	links, err := s.List(t.Context(), "turn-1")
	if err != nil || len(links) < len(acknowledged) || len(acknowledged) < 30 {
		t.Fatalf("%d acknowledged, %d found (%v)", len(acknowledged), len(links), err)
	}
	for i, l := range links {
		if i < len(acknowledged) && l.Ref != acknowledged[i] {
			t.Errorf("record %d is %s", i, l.Ref)
		}
		if _, err := s.Get(t.Context(), l.Ref); err != nil {
			t.Errorf("%s: %v", l.Ref, err)
		}
	}
}
