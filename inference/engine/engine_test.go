package engine_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assent.home.arpa/inference/engine"
)

const goodVersion = "version: 0.7.0 (build 11669, commit Debian)"

// options lists what the engine of these tests understands.
func options() string {
	var b strings.Builder
	for _, arg := range engine.Arguments(engine.Server{Model: "m", Socket: "s"}) {
		if strings.HasPrefix(arg, "--") {
			fmt.Fprintf(&b, "-x,   %s, --or-so N   does things\n", arg)
		}
	}
	return b.String()
}

// program writes an executable that answers --version and --help and otherwise prints how it was started.
func program(t *testing.T, path, version, help string) string {
	t.Helper()
	script := fmt.Sprintf("#!/bin/sh\ncase \"$1\" in\n--version) echo '%s' >&2 ;;\n--help) cat <<'END'\n%s\nEND\n;;\n*) env; echo \"args: $*\" ;;\nesac\n", version, help)
	write(t, path, script)
	return path
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

// alone leaves only the given folders and the plain tools on PATH, and an empty cache.
func alone(t *testing.T, folders ...string) engine.Options {
	t.Helper()
	tools := t.TempDir()
	for _, tool := range []string{"sh", "cat", "env", "cp", "mkdir", "dirname", "readlink", "chmod"} {
		for _, dir := range []string{"/bin", "/usr/bin"} {
			if _, err := os.Stat(filepath.Join(dir, tool)); err == nil {
				if err := os.Symlink(filepath.Join(dir, tool), filepath.Join(tools, tool)); err != nil {
					t.Fatal(err)
				}
				break
			}
		}
	}
	t.Setenv("PATH", strings.Join(append(folders, tools), ":"))
	return engine.Options{Dir: filepath.Join(t.TempDir(), "engine"), NoInstall: true}
}

func TestExplicitEngineIsUsedOrRefusedWithTheReason(t *testing.T) {
	for name, tt := range map[string]struct{ version, help, want string }{
		"debian's":               {goodVersion, options(), ""},
		"a later one":            {"version: 1.2.3 (build 20000, commit abc)", options(), ""},
		"upstream's":             {"version: 12000 (0123abc)", options(), ""},
		"an older one":           {"version: 0.6.9 (build 11000, commit Debian)", options(), "older than 0.7.0"},
		"upstream's older one":   {"version: 4000 (0123abc)", options(), "older than build 11669"},
		"something else":         {"nginx version: 1.2", options(), "does not say a version"},
		"silent":                 {"", options(), "does not say a version"},
		"one with fewer options": {goodVersion, strings.ReplaceAll(options(), "--no-slots", "--no-slots-2"), "does not know the option --no-slots"},
	} {
		t.Run(name, func(t *testing.T) {
			o := alone(t)
			o.Path = program(t, filepath.Join(t.TempDir(), "engine"), tt.version, tt.help)
			e, err := engine.Find(t.Context(), o)
			if tt.want == "" {
				if err != nil || e.Path != o.Path || e.Origin != engine.Explicit || "version: "+e.Version != tt.version {
					t.Errorf("%+v, %v", e, err)
				}
				return
			}
			var unsuitable *engine.UnsuitableError
			if !errors.As(err, &unsuitable) || !strings.Contains(unsuitable.Reason, tt.want) || unsuitable.Path != o.Path {
				t.Errorf("got %v, want something with %q", err, tt.want)
			}
		})
	}
}

func TestExplicitEngineThatDoesNotRunIsRefused(t *testing.T) {
	o := alone(t)
	o.Path = filepath.Join(t.TempDir(), "absent")
	if _, err := engine.Find(t.Context(), o); !errors.As(err, new(*engine.UnsuitableError)) {
		t.Errorf("absent: %v", err)
	}
	write(t, o.Path, "#!/bin/sh\necho 'libllama.so.0: cannot open shared object file' >&2\nexit 127\n")
	if _, err := engine.Find(t.Context(), o); err == nil || !strings.Contains(err.Error(), "libllama.so.0") {
		t.Errorf("without its libraries: %v", err)
	}
}

func TestFindPrefersWhatWasUnpackedToWhatIsInstalled(t *testing.T) {
	bin := t.TempDir()
	installed := program(t, filepath.Join(bin, "llama-server"), goodVersion, options())
	o := alone(t, bin)
	if e, err := engine.Find(t.Context(), o); err != nil || e.Path != installed || e.Origin != engine.OnPath {
		t.Fatalf("%+v, %v", e, err)
	}
	program(t, filepath.Join(o.Dir, ".work-1", "llama-server"), goodVersion, options())
	program(t, filepath.Join(o.Dir, "aaaa", "llama-server"), "version: 0.1.0 (build 1, commit x)", options())
	older := program(t, filepath.Join(o.Dir, "bbbb", "llama-server"), goodVersion, options())
	newer := program(t, filepath.Join(o.Dir, "cccc", "llama-server"), goodVersion, options())
	if err := os.Chtimes(older, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if e, err := engine.Find(t.Context(), o); err != nil || e.Path != newer || e.Origin != engine.Cached {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestFindSaysWhyAnInstalledEngineWasPassedOver(t *testing.T) {
	bin := t.TempDir()
	program(t, filepath.Join(bin, "llama-server"), "version: 0.5.0 (build 9000, commit Debian)", options())
	_, err := engine.Find(t.Context(), alone(t, bin))
	var missing *engine.NotFoundError
	if !errors.As(err, &missing) || missing.Passed == nil || !strings.Contains(err.Error(), "older than 0.7.0") {
		t.Fatalf("got %v", err)
	}
	_, err = engine.Find(t.Context(), alone(t))
	if !errors.As(err, &missing) || missing.Passed != nil || !strings.Contains(err.Error(), "set ENGINE") {
		t.Errorf("got %v", err)
	}
}
