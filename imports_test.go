// Package assent holds the tests that are about the whole tree: who may import whom, and what the box's program contains.
package assent

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "assent.home.arpa/"

// pkg is what go list says of one package.
type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
	Doc        string
	Name       string
}

// targets are the machines that the rules must hold for: build tags must not hide an import.
var targets = [][]string{{"GOOS=linux", "GOARCH=arm64"}, {}}

func list(t *testing.T, env []string, patterns ...string) map[string]pkg {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Imports,Deps,Doc,Name"}, patterns...)...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	pkgs := map[string]pkg{}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs[p.ImportPath] = p
	}
}

// within reports whether path is root or lies below it.
func within(path, root string) bool { return path == root || strings.HasPrefix(path, root+"/") }

// only says that nothing but the listed packages (and what lies below them) may import a package.
var only = []struct {
	imported string
	by       []string
	why      string
}{
	{"periph.io/x/", []string{"device/board"}, "one room talks to hardware; everything else can be tested without it"},
	{"github.com/gorilla/websocket", []string{"appliance/gateway", "appliance/phone"}, "the websocket is the phone's door; no other role may open one"},
	{"github.com/veraison/go-cose", []string{"appliance/audit", "confirm", "appliance/grant"}, "seals, receipts and grants are the only things signed"},
	{module + "confirm/internal/mint", []string{"confirm"}, "receipts come from a completed hold and from nowhere else"},
	{module + "cmd/assentsim", []string{"cmd/assentsim"}, "the drawn panel must not reach the box's program"},
	{module + "image/hil", []string{"image"}, "simulated lines and buses must not reach the box's program"},
	{"github.com/diskfs/go-diskfs", []string{"image", "appliance/stick"}, "the box reads no foreign file system but a stick's, and that in a room of its own"},
	{module + "image/boot", []string{"image/boot"}, "fingers on simulated buttons must not reach the box's program"},
	{module + "image/debs", []string{"image"}, "the box fetches no packages"},
	{module + "image/blockmap", []string{"image/build"}, "the map of an image is made with it"},
	{module + "image/emulator", []string{"image"}, "test machines are made by tests"},
	{"modernc.org/sqlite", []string{"appliance/conversation", "inference/runs"}, "databases hold conversations and invocation records, never evidence"},
	{"github.com/landlock-lsm/go-landlock", []string{"appliance/cage", "appliance/worker"}, "roles are caged from inside in one way (workers' test looks at the kernel)"},
}

// never says that a package must not depend on another, at any depth.
var never = []struct{ from, to, why string }{
	{"inference", module + "confirm", "the model's side cannot show, press or mint"},
	{"inference", module + "device", "the model's side has no display and no button"},
	{"inference", module + "capabilities/executor", "the model proposes; it never executes"},
	{"inference", module + "appliance/audit", "the model's side cannot write evidence"},
	{"confirm", module + "inference", "what is shown does not depend on who proposed it"},
	{"confirm", module + "appliance/gateway", "the panel takes no word from the LAN"},
	{"confirm", module + "appliance/wire", "no phone message reaches the panel"},
	{"confirm", module + "appliance/notice", "the panel is handed what to say; it reads no files"},
	{"device", module + "confirm", "hardware knows nothing of decisions"},
	{"device", module + "appliance/gateway", "hardware knows nothing of the LAN"},
	{"capabilities/executor", module + "inference", "a proposal's origin is invisible to the stages"},
	{"capabilities/executor", module + "appliance/gateway", "the stages take no word from the LAN"},
	{"capabilities/executor", "net/http", "the executor opens nothing"},
	{"capabilities/policy", module + "confirm", "policy is pure"},
	{"capabilities/policy", module + "appliance/audit", "policy is pure"},
	{"appliance/gateway", module + "capabilities/executor", "the gateway cannot execute"},
	{"appliance/gateway", module + "confirm", "the gateway cannot show, press or mint"},
	{"appliance/gateway", module + "appliance/audit", "the gateway cannot write evidence"},
	{"appliance/gateway", module + "appliance/grant", "the gateway cannot make or read grants"},
	{"appliance/gateway", module + "device", "the gateway touches no device"},
	{"appliance/conversation", module + "appliance/grant", "the turn loop cannot make or read grants"},
	{"appliance/conversation", module + "capabilities/executor", "the turn loop cannot execute"},
	{"appliance/courier", module + "appliance/audit", "what connects holds no keys and no evidence"},
	{"appliance/courier", module + "confirm", "what connects cannot mint"},
	{"appliance/courier", module + "capabilities/executor", "what connects cannot decide"},
	{"appliance/courier", "net/http", "the courier parses nothing that comes back"},
	{"appliance/worker", module + "confirm", "a worker cannot mint"},
	{"appliance/worker", module + "appliance/audit", "a worker cannot write evidence"},
	{"appliance/lan", "net/http", "who notes the address opens no connection"},
	{"appliance/guard", "github.com/gorilla/websocket", "the guard has no network"},
	{"appliance/guard", "net/http", "the guard has no network"},
	{"appliance/guard", module + "appliance/stick", "the guard parses nothing of a stick"},
	{"appliance/stick", module + "appliance/audit", "what parses a stick holds no evidence"},
	{"appliance/stick", module + "confirm", "what parses a stick cannot mint"},
	{"appliance/stick", module + "device", "what parses a stick has no display and no button"},
	{"appliance/stick", "net/http", "what parses a stick has no network"},
	{"appliance/guard", module + "appliance/cable", "the guard says what is on the cable, and has no hand on it"},
	{"appliance/cable", module + "appliance/audit", "what is at the cable holds no evidence but what it was given"},
	{"appliance/cable", module + "confirm", "what is at the cable cannot mint"},
	{"appliance/cable", module + "device", "what is at the cable has no display and no button"},
	{"appliance/cable", "net/http", "what is at the cable has no network"},
	{"capabilities", "net/http", "leaves are data"},
	{"appliance/phone", module + "appliance/guard", "a phone cannot be a guard"},
	{"cmd/assentd", module + "cmd/assentsim", "the box's program contains no drawn panel"},
	{"cmd/assentd", module + "device/board/boardtest", "the box's program contains no fake kernel or display"},
	{"cmd/assentd", module + "image/hil/hiltest", "the box's program contains no simulated line or bus"},
	{"image/initrd", module + "appliance/config", "the first process knows disks and nothing of the box"},
	{"image/initrd", "net", "the first process has no network"},
	{"cmd/assentd", module + "image/flash", "the box writes no cards"},
	{"cmd/assentd", module + "image/card/cardtest", "the box's program contains no made-up card"},
	{"cmd/assentd", module + "device/devicetest", "the box's program contains no fake button"},
	{"cmd/assentd", module + "appliance/finger", "the box's program presses nothing"},
	{"cmd/assentd", "github.com/diskfs/go-diskfs/filesystem", "it writes directories anew, and those on a stick are other people's"},
	{"cmd/assentd", module + "appliance/stick/sticktest", "the box's program contains no simulated stick"},
	{"cmd/assentd", module + "appliance/cable/cabletest", "the box's program contains no simulated port"},
	{"cmd/assentd", module + "capabilities/websearch/websearchtest", "the box's program contains no fixture site"},
	{"cmd/assentd", module + "appliance/courier/loopback", "the box's program contains no loopback exception"},
	{"cmd/assentd", module + "appliance/phone", "the box's program cannot act as a phone"},
	{"cmd/assentd", module + "inference/scripted", "the box's program contains no scripted model"},
	{"cmd/assentd", module + "inference/remote", "the box's program contains no remote provider"},
}

// exact lists rules of never whose left side means that one package, not what lies below it.
var exact = []string{"capabilities"}

// always says that a package does depend on another: the line that makes a rule above worth having.
var always = []struct{ from, to, why string }{
	{"capabilities/executor", "confirm", "execution takes a receipt"},
	{"capabilities/executor", "appliance/audit", "execution takes a durable intent"},
	{"capabilities/executor", "appliance/grant", "execution ends in a grant"},
	{"appliance/courier", "appliance/grant", "the courier verifies what it is told to do"},
	{"appliance/guard", "appliance/notice", "the panel speaks for what has none"},
	{"cmd/assentd", "appliance/guard", "the box has a guard"},
	{"cmd/assentd", "appliance/cage", "gateway and courier are caged from inside"},
	{"cmd/assentd", "device/board", "the box has a real panel"},
	{"image/hil/guest", "device/board", "the hardware test drives the real parts"},
	{"image/hil/guest", "confirm", "the hardware test runs the real panel"},
	{"cmd/assentsim", "appliance/guard", "the simulator runs the real guard"},
	{"cmd/assentsim", "device/board", "the drawn panel gets its pixels from the real driver"},
	{"cmd/assentsim", "appliance/courier/loopback", "the loopback exception is the simulator's"},
}

// absent are packages that a rule names so that they cannot be added unseen.
var absent = []string{module + "inference/remote"}

func TestImports(t *testing.T) {
	for _, env := range targets {
		name := "host"
		if len(env) > 0 {
			name = strings.Join(env, " ")
		}
		t.Run(name, func(t *testing.T) {
			pkgs := list(t, env, "./...")
			for _, rule := range only {
				for path, p := range pkgs {
					local := strings.TrimPrefix(path, module)
					if slices.ContainsFunc(rule.by, func(by string) bool { return within(local, by) }) {
						continue
					}
					for _, imp := range p.Imports {
						if strings.HasPrefix(imp, rule.imported) {
							t.Errorf("%s imports %s: %s", local, imp, rule.why)
						}
					}
				}
			}
			for _, rule := range never {
				found := false
				for path, p := range pkgs {
					local := strings.TrimPrefix(path, module)
					if !within(local, rule.from) || (local != rule.from && slices.Contains(exact, rule.from)) || strings.HasSuffix(local, "test") {
						continue
					}
					found = true
					for _, dep := range p.Deps {
						if within(dep, rule.to) {
							t.Errorf("%s depends on %s: %s", local, dep, rule.why)
						}
					}
				}
				if !found {
					t.Errorf("the rule about %s is about nothing: the package is gone", rule.from)
				}
				if strings.HasPrefix(rule.to, module) && !slices.Contains(absent, rule.to) && pkgs[rule.to].ImportPath == "" {
					t.Errorf("the rule against %s is about nothing: the package is gone", rule.to)
				}
			}
			for _, rule := range always {
				if !slices.Contains(pkgs[module+rule.from].Deps, module+rule.to) {
					t.Errorf("%s does not depend on %s any more: %s", rule.from, rule.to, rule.why)
				}
			}
		})
	}
}

// TestEveryPackageSaysWhatItIs demands one package comment each.
func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for path, p := range list(t, nil, "./...") {
		if p.Doc == "" && path != strings.TrimSuffix(module, "/") {
			t.Errorf("%s has no package comment", path)
		}
		if base := path[strings.LastIndexByte(path, '/')+1:]; slices.Contains([]string{"util", "utils", "common", "types", "helpers", "pkg"}, base) {
			t.Errorf("%s is named for nothing", path)
		}
	}
}
