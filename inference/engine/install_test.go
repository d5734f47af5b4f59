package engine_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assent.home.arpa/inference/engine"
)

// debian puts an apt and a dpkg on PATH that know one mirror with the engine's packages. They keep to the parts of their
// behaviour that Install relies on; the log says how apt-get was called. Files in the returned folder change them: "offline"
// and "forged" make apt fail, "other" gives another mirror, "broken" gives an engine that does not run.
func debian(t *testing.T) (engine.Options, string) {
	t.Helper()
	if _, err := os.Stat("/usr/share/keyrings"); err != nil {
		t.Skip("this machine has no folder for keyrings")
	}
	state, bin := t.TempDir(), t.TempDir()
	o := alone(t, bin)
	o.NoInstall = false
	write(t, filepath.Join(state, "help"), options())
	write(t, filepath.Join(bin, "dpkg"), "#!/bin/sh\necho arm64\n")
	write(t, filepath.Join(bin, "apt-get"), fmt.Sprintf(`#!/bin/sh
echo "$*" >>'%[1]s/log'
case "$*" in
*indextargets*)
	echo 'https://mirror.example/debian-security/'
	[ -e '%[1]s/other' ] || echo 'https://mirror.example/debian/'
	;;
*update)
	[ ! -e '%[1]s/offline' ] || { echo 'E: Failed to fetch the list' >&2; exit 100; }
	[ ! -e '%[1]s/forged' ] || { echo 'E: The repository is not signed.' >&2; exit 100; }
	for word in "$@"; do case "$word" in Dir::Etc::sourcelist=*) cat "${word#*=}" >>'%[1]s/sources' ;; esac; done
	;;
*download*)
	names=${*##*download }
	for name in $names; do echo "$name" >"${name}_1_arm64.deb"; done
	;;
esac
`, state))
	write(t, filepath.Join(bin, "dpkg-deb"), fmt.Sprintf(`#!/bin/sh
lib=$3/usr/lib/aarch64-linux-gnu
mkdir -p "$lib/ggml/backends0" "$3/usr/bin" "$3/usr/share/doc"
case "$2" in
*libc6_*)
	{
		echo '#!/bin/sh'
		[ ! -e '%[1]s/broken' ] || echo 'echo no such library >&2; exit 1'
		echo 'for last; do :; done; case "$last" in --version) echo "%[2]s" ;; --help) cat "%[1]s/help" ;; *) echo "loader $*" ;; esac'
	} >"$lib/../ld-linux-aarch64.so.1"
	chmod +x "$lib/../ld-linux-aarch64.so.1"
	;;
*libggml0_*) echo backend >"$lib/ggml/backends0/libggml-cpu.so" ;;
esac
exit 0
`, state, goodVersion))
	return o, state
}

func touch(t *testing.T, state, name string) {
	t.Helper()
	write(t, filepath.Join(state, name), "")
}

func TestInstallUnpacksDebiansPackages(t *testing.T) {
	o, state := debian(t)
	var lines []string
	o.Progress = func(line string) { lines = append(lines, line) }
	e, err := engine.Find(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if e.Origin != engine.Installed || filepath.Dir(filepath.Dir(e.Path)) != o.Dir || len(filepath.Base(filepath.Dir(e.Path))) != 64 {
		t.Errorf("%+v", e)
	}
	root := filepath.Dir(e.Path)
	if _, err := os.Stat(filepath.Join(root, "usr/lib/libggml-cpu.so")); err != nil {
		t.Errorf("the backend is not beside the loader: %v", err)
	}
	sources, err := os.ReadFile(filepath.Join(state, "sources"))
	if err != nil || !strings.Contains(string(sources), "https://mirror.example/debian/ forky main") || !strings.Contains(string(sources), "signed-by=/usr/share/keyrings/debian-archive-keyring.") {
		t.Errorf("sources %q, %v", sources, err)
	}
	if len(lines) < 3 {
		t.Errorf("it said only %q", lines)
	}
	entries, err := os.ReadDir(o.Dir)
	if err != nil || len(entries) != 2 { // the engine and the lock
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if e, err = engine.Find(t.Context(), o); err != nil || e.Origin != engine.Cached {
		t.Errorf("it was not found again: %+v, %v", e, err)
	}
}

func TestInstallThatFailsLeavesNothing(t *testing.T) {
	for name, want := range map[string]string{
		"offline": "Failed to fetch",
		"forged":  "not signed",
		"broken":  "no such library",
		"other":   "knows no Debian mirror",
	} {
		t.Run(name, func(t *testing.T) {
			o, state := debian(t)
			touch(t, state, name)
			_, err := engine.Find(t.Context(), o)
			var failed *engine.InstallError
			if !errors.As(err, &failed) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "set ENGINE") {
				t.Fatalf("got %v, want something with %q", err, want)
			}
			if name == "other" && !errors.Is(err, engine.ErrNotDebian) {
				t.Error("it is not ErrNotDebian")
			}
			entries, err := os.ReadDir(o.Dir)
			if err != nil || len(entries) != 1 || entries[0].Name() != ".lock" {
				t.Errorf("left behind: %v, %v", entries, err)
			}
		})
	}
}

func TestInstallWithoutAptSaysWhatToDo(t *testing.T) {
	o := alone(t)
	o.NoInstall = false
	_, err := engine.Find(t.Context(), o)
	if !errors.Is(err, engine.ErrNotDebian) || !strings.Contains(err.Error(), "set ENGINE") {
		t.Errorf("got %v", err)
	}
}

func TestAptIsNeverToldToTrustUnsignedLists(t *testing.T) {
	o, state := debian(t)
	if _, err := engine.Find(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(state, "log"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "indextargets") {
			continue
		}
		for _, need := range []string{"Acquire::AllowInsecureRepositories=false", "APT::Get::AllowUnauthenticated=false", "Dir::State::Lists=" + o.Dir} {
			if !strings.Contains(line, need) {
				t.Errorf("apt-get ran without %s: %s", need, line)
			}
		}
		for _, forbidden := range []string{"trusted=yes", "--allow-", "=true"} {
			if strings.Contains(line, forbidden) {
				t.Errorf("apt-get ran with %s: %s", forbidden, line)
			}
		}
	}
}
