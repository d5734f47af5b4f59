package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"assent.home.arpa/image/boot/fat"
	"assent.home.arpa/image/boot/layer"
	"assent.home.arpa/image/card"
	"assent.home.arpa/image/emulator"
	"assent.home.arpa/inference/scripted"
)

// What make image leaves, below its folder.
const (
	imageFile = "assent-arm64.img"
	testUKI   = "test/assent-a.efi"
	biosFile  = "qemu/u-boot.bin"
	uki       = "EFI/Linux/assent-a.efi" // on the boot partition
)

// cardSize is the card's in bytes: larger than the image, as cards are.
const cardSize = 4 << 30

// modelName is what the scripted model is called.
const modelName = "test script (not a language model)"

// question is what the phone asks, and query what the model makes of it.
const (
	question = "How tall is the Eiffel Tower?"
	query    = "How tall is the Eiffel Tower"
)

// script is what the model says in each turn.
func script() scripted.Script {
	return scripted.Script{
		Name: "boot test",
		Replies: []string{
			"I will look that up. " + scripted.Call("web_search__v1", fmt.Sprintf(`{"query":%q}`, query)),
			"This is a recited answer. What the box found, if anything, is on the card above.",
		},
	}
}

// settings are what the owner of this box wrote: where its simulated panel is, and a search at home.
func settings(searchPort int) []byte {
	return fmt.Appendf(nil, `# The box of the boot test: a simulated panel, and a search engine at an address of the house.
[box]
name = "Assent"
[gateway]
hosts = ["assent.local", "127.0.0.1"]
[model]
name = %q
dialect = "chatml-hermes"
[panel]
display = "ssd1306"
bus = "vhci_hcd.0/usb1/1-1"
approve = "assent-approve@gpio-sim.0"
deny = "assent-deny@gpio-sim.0"
[search]
kind = "searxng"
url = "http://%s:%d/search"
label = "House search"
`, modelName, routerIP, searchPort)
}

// prepare makes what all starts need: the settings, the model, the card, and the test's own disk.
func (t *test) prepare(ctx context.Context) error {
	t.card, t.bios = filepath.Join(t.dir, "card.disk"), filepath.Join(t.image, biosFile)
	t.settings, t.model = filepath.Join(t.dir, "assent.toml"), filepath.Join(t.dir, "boot-test.gguf")
	if err := os.WriteFile(t.settings, settings(t.searchPort), 0o644); err != nil {
		return err
	}
	if err := writeModel(t.model); err != nil {
		return err
	}
	t.say("writing a card with assent flash")
	if err := t.flash(ctx, t.card); err != nil {
		return err
	}
	if err := t.exchange(t.card); err != nil {
		return err
	}
	var err error
	t.layer, err = layer.Make(ctx, t.cache, t.dir, []layer.Program{
		{Name: "agent", Package: "./image/boot/agent"},
		{Name: "probe", Package: "./image/boot/probe"},
	}, t.say)
	return err
}

// flash makes a card as people do, with the command that writes cards, with settings and a model.
func (t *test) flash(ctx context.Context, disk string) error {
	if err := emptyFile(disk, cardSize); err != nil {
		return err
	}
	return t.assent(ctx, nil, "flash", filepath.Join(t.image, imageFile), disk, "--file", "--yes", filepath.Base(disk), "--config", t.settings, "--model", t.model)
}

// exchange puts the test variant's kernel file in the place of the one that is shipped.
func (t *test) exchange(disk string) error {
	variant, err := os.ReadFile(filepath.Join(t.image, testUKI))
	if err != nil {
		return fmt.Errorf("%w: %v; run make image", emulator.ErrUntried, err)
	}
	return fat.Replace(disk, card.Boot, uki, variant)
}

// onlyTheKernel demands that the tested card differs from the image in that one file, the settings, and what makes room for a card.
func (t *test) onlyTheKernel() error {
	shipped, err := fat.Digests(filepath.Join(t.image, imageFile), card.Boot)
	if err != nil {
		return err
	}
	tested, err := fat.Digests(t.card, card.Boot)
	if err != nil {
		return err
	}
	var differ []string
	for name, sum := range tested {
		if shipped[name] != sum {
			differ = append(differ, name)
		}
	}
	for name := range shipped {
		if _, there := tested[name]; !there {
			differ = append(differ, name)
		}
	}
	if len(differ) != 2 || !strings.EqualFold(strings.Join(slices.Sorted(slices.Values(differ)), " "), uki+" assent.toml") {
		return fmt.Errorf("the tested boot partition differs from the image's in %q", differ)
	}
	for _, label := range []string{card.RootA, card.VerityA, card.Audit} {
		same, err := fat.SamePartition(filepath.Join(t.image, imageFile), t.card, label)
		if err != nil {
			return err
		}
		if !same {
			return fmt.Errorf("the tested card's partition %s is not the image's", label)
		}
	}
	t.say("the tested card differs from the image in its kernel file and the owner's settings alone")
	return nil
}

// assent runs the person's tool, and shows what it says if it fails.
func (t *test) assent(ctx context.Context, out *bytes.Buffer, args ...string) error {
	cmd := exec.CommandContext(ctx, t.tool, args...)
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+filepath.Join(t.dir, "phone"))
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	if out != nil {
		cmd.Stdout = out
	} else {
		cmd.Stdout = &complaints
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("assent %s: %w: %.2000s", args[0], err, bytes.TrimSpace(complaints.Bytes()))
	}
	return nil
}

func writeModel(file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(scripted.Write(f, script()), f.Close())
}

func emptyFile(file string, size int64) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}
