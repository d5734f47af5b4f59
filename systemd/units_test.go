package systemd_test

import (
	"bufio"
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"assent.home.arpa/appliance/box"
)

const unitDir = "usr/lib/systemd/system"

// analyzer returns a systemd-analyze that can judge units which are not of this machine, and its version.
func analyzer(t *testing.T) (path string, version int) {
	t.Helper()
	path = os.Getenv("ASSENT_SYSTEMD_ANALYZE")
	if path == "" {
		found, err := exec.LookPath("systemd-analyze")
		if err != nil {
			t.Skip("SKIPPED: unit hardening: this machine has no systemd-analyze; install systemd 250 or later")
		}
		path = found
	}
	out, err := exec.Command(path, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	if fields := strings.Fields(string(out)); len(fields) > 1 {
		version, _ = strconv.Atoi(fields[1])
	}
	if version < 250 {
		t.Skipf("SKIPPED: unit hardening: systemd-analyze is of version %d, which cannot judge files; 250 or later can", version)
	}
	return path, version
}

// services lists the unit files of services.
func services(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(unitDir, "*.service"))
	if err != nil || len(all) < 10 {
		t.Fatalf("%d units: %v", len(all), err)
	}
	return all
}

// D8: what systemd thinks of what a unit could do if it were taken over (0 nothing, 10 everything).
func TestExposure(t *testing.T) {
	program, _ := analyzer(t)
	limits := map[string]float64{"assent-guard.service": 1.0, "assent-model.service": 1.0, "assent-gateway.service": 1.6, "assent-courier.service": 1.6}
	overall := regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+)`)
	for _, file := range services(t) {
		abs, err := filepath.Abs(file)
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(program, "security", "--no-pager", "--offline=yes", abs).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", file, err, out)
			continue
		}
		found := overall.FindSubmatch(out)
		if found == nil {
			t.Errorf("%s: no verdict:\n%s", file, out)
			continue
		}
		exposure, err := strconv.ParseFloat(string(found[1]), 64)
		limit, ok := limits[filepath.Base(file)]
		if !ok {
			limit = 2.0
		}
		t.Logf("%-32s %.1f of %.1f", filepath.Base(file), exposure, limit)
		if err != nil || exposure > limit {
			t.Errorf("%s: exposure %s, limit %.1f", file, found[1], limit)
		}
	}
}

// around is what surrounds the box's units, as far as their order goes: Debian's own units in short.
func around() map[string]string {
	plain := "[Unit]\nDefaultDependencies=no\n"
	one := "[Service]\nType=oneshot\nExecStart=/usr/bin/assentd\n"
	return map[string]string{
		"local-fs.target":                    plain,
		"network-pre.target":                 plain,
		"network.target":                     plain + "After=network-pre.target\n",
		"time-set.target":                    plain,
		"sockets.target":                     plain,
		"shutdown.target":                    plain,
		"sysinit.target":                     plain + "Wants=local-fs.target\nAfter=local-fs.target\n",
		"basic.target":                       plain + "Requires=sysinit.target\nWants=sockets.target\nAfter=sysinit.target sockets.target\n",
		"multi-user.target":                  "[Unit]\nRequires=basic.target\nAfter=basic.target\n",
		"systemd-tmpfiles-setup.service":     plain + "After=local-fs.target\nBefore=sysinit.target\n" + one,
		"systemd-modules-load.service":       plain + "Before=sysinit.target\n" + one,
		"systemd-udev-trigger.service":       plain + "Before=sysinit.target\n" + one,
		"systemd-networkd.service":           plain + "Before=network.target\nAfter=network-pre.target\n" + one + "[Install]\nWantedBy=multi-user.target\n",
		"systemd-resolved.service":           plain + "Before=sysinit.target network.target\n" + one + "[Install]\nWantedBy=sysinit.target\n",
		"systemd-timesyncd.service":          plain + "After=systemd-tmpfiles-setup.service\nBefore=time-set.target sysinit.target\nWants=time-set.target\n" + one + "[Install]\nWantedBy=sysinit.target\n",
		"boot.mount":                         plain + "Before=local-fs.target\n[Mount]\nWhat=/dev/boot\nWhere=/boot\n",
		"var-lib-assent-guard.mount":         plain + "Before=local-fs.target\n[Mount]\nWhat=/dev/audit\nWhere=/var/lib/assent/guard\n",
		"systemd-tmpfiles-setup-dev.service": plain + one,
	}
}

// enable does what the preset does: it links units below those that want them.
func enable(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	wanted := regexp.MustCompile(`(?m)^WantedBy=(.*)$`)
	for _, e := range entries {
		if e.IsDir() || strings.Contains(e.Name(), "@") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range wanted.FindAllSubmatch(text, -1) {
			for by := range strings.FieldsSeq(string(m[1])) {
				wants := filepath.Join(dir, by+".wants")
				if err := os.MkdirAll(wants, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink("../"+e.Name(), filepath.Join(wants, e.Name())); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// Everything that the box starts is understood, names what is there, and can be put into an order. Of a circle, systemd would
// leave out an arbitrary part.
func TestUnitsFitTogether(t *testing.T) {
	program, version := analyzer(t)
	root := t.TempDir()
	if err := os.CopyFS(filepath.Join(root, "usr"), os.DirFS("usr")); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, unitDir)
	for name, text := range around() {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"usr/bin/assentd", "usr/sbin/nft", "usr/bin/udevadm", "usr/lib/systemd/systemd-sysctl"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	enable(t, dir)
	out, err := exec.Command(program, "--root="+root, "verify", "--man=no", "multi-user.target", "assent-worker-none@1.service", "assent-worker-net@1.service", "assent-cable.service").CombinedOutput()
	newer := regexp.MustCompile(`Unknown key '(RestartSteps|RestartMaxDelaySec)'`) // since 254, for which the box's is new enough
	for line := range bytes.Lines(out) {
		if version < 254 && newer.Match(line) {
			continue
		}
		t.Errorf("%s", bytes.TrimSpace(line))
	}
	if err != nil {
		t.Errorf("systemd-analyze verify: %v", err)
	}
}

// lines are the entries of a file, without comments.
func lines(t *testing.T, path string) [][]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all [][]string
	scan := bufio.NewScanner(bytes.NewReader(text))
	for scan.Scan() {
		if fields := strings.Fields(scan.Text()); len(fields) > 0 && !strings.HasPrefix(fields[0], "#") {
			all = append(all, fields)
		}
	}
	return all
}

// D8: two roles meet in a directory that nobody else can enter, whose socket nobody else can use, and where the programs look
// for it.
func TestMeetingPlacesAreClosed(t *testing.T) {
	users := map[string]bool{"root": true}
	for _, l := range lines(t, "usr/lib/sysusers.d/assent.conf") {
		users[l[1]] = true
	}
	dirs := map[string][]string{}
	for _, l := range lines(t, "usr/lib/tmpfiles.d/assent.conf") {
		if len(l) != 5 || !users[l[3]] || !users[l[4]] {
			t.Errorf("tmpfiles: %v", l)
			continue
		}
		dirs[l[1]] = l[2:]
	}
	at := box.At("/run/assent")
	for _, tc := range []struct{ path, owner, group, unit string }{
		{at.Guard, "assent-guard", "assent-gateway", "assent-guard.socket"},
		{at.Courier, "assent-guard", "assent-courier", "assent-courier.socket"},
		{at.WorkerNone, "assent-courier", "root", "assent-worker-none.socket"},
		{at.WorkerNet, "assent-courier", "root", "assent-worker-net.socket"},
		{at.Model, "assent-model", "assent-gateway", ""}, // the engine makes its own
	} {
		dir := dirs[filepath.Dir(tc.path)]
		if len(dir) != 3 || dir[1] != tc.owner || dir[2] != tc.group || !strings.HasSuffix(dir[0], "0") {
			t.Errorf("%s lies in a directory of %v", tc.path, dir)
		}
		if tc.unit == "" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(unitDir, tc.unit))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "ListenStream="+tc.path+"\n") || !regexp.MustCompile(`SocketMode=06[06]0\n`).Match(text) {
			t.Errorf("%s does not listen at %s, for the two alone", tc.unit, tc.path)
		}
	}
	for _, file := range services(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		user := regexp.MustCompile(`(?m)^User=(.*)$`).FindSubmatch(text)
		if user != nil && !users[string(user[1])] {
			t.Errorf("%s runs as %s, whom nobody makes", file, user[1])
		}
		// Who looks at peers cannot do so from another user namespace.
		private := strings.Contains(string(text), "\nPrivateUsers=yes")
		if looks := regexp.MustCompile(`assentd (guard|courier|worker)`).Match(text); looks && private {
			t.Errorf("%s could not see who connects", file)
		}
	}
}

// D2: nobody can log in, and no unit of a package starts that was not chosen.
func TestNothingElseStarts(t *testing.T) {
	var presets []string
	for _, l := range lines(t, "usr/lib/systemd/system-preset/00-assent.preset") {
		presets = append(presets, strings.Join(l, " "))
	}
	if len(presets) == 0 || presets[len(presets)-1] != "disable *" {
		t.Errorf("the preset ends with %v", presets)
	}
	for _, unit := range []string{
		"getty@.service", "serial-getty@.service", "console-getty.service", "container-getty@.service", "autovt@.service", "debug-shell.service", "systemd-logind.service", "ctrl-alt-del.target",
	} {
		if to, err := os.Readlink(filepath.Join("etc/systemd/system", unit)); err != nil || to != "/dev/null" {
			t.Errorf("%s can start: %v", unit, err)
		}
	}
	err := filepath.WalkDir("etc/systemd/system", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if to, err := os.Readlink(path); err != nil || to != "/dev/null" {
			t.Errorf("%s is no mask: %v", path, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	loaded := lines(t, "usr/lib/modules-load.d/assent.conf")
	for _, fake := range []string{"gpio-sim", "gpio-aggregator", "uinput", "uhid", "vhci-hcd", "usbip-host", "i2c-tiny-usb", "dummy_hcd", "i2c-stub", "usbhid", "hid"} {
		if slices.ContainsFunc(loaded, func(l []string) bool { return strings.ReplaceAll(l[0], "_", "-") == strings.ReplaceAll(fake, "_", "-") }) {
			t.Errorf("%s is loaded: it could pose as a part", fake)
		}
	}
}

// D8: a role that has files of its own in /run sees those and nothing else there.
func TestEveryRoleSeesItsOwnPartOfRun(t *testing.T) {
	seen := 0
	for _, path := range services(t) {
		name := filepath.Base(path)
		text, err := os.ReadFile(filepath.Join(unitDir, name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "/run/assent/") {
			continue
		}
		seen++
		if !strings.Contains(string(text), "\nTemporaryFileSystem=/run:ro\n") || regexp.MustCompile(`ReadWritePaths=.*/run`).Match(text) {
			t.Errorf("%s sees all of /run", name)
		}
	}
	if seen < 10 {
		t.Errorf("only %d units were looked at", seen)
	}
}
