package kernel

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// moduleThatNeeds is an ELF file with nothing but a section .modinfo: header, names of sections, contents, three section
// headers (ELF-64 object file format 1.5).
func moduleThatNeeds(depends string) []byte {
	le := binary.LittleEndian
	const names = "\x00.modinfo\x00.shstrtab\x00"
	info := "license=GPL\x00" + depends + "name=x\x00"
	var b bytes.Buffer
	header := make([]byte, 64)
	copy(header, "\x7fELF\x02\x01\x01")
	le.PutUint16(header[16:], 1)   // relocatable
	le.PutUint16(header[18:], 183) // AArch64
	le.PutUint32(header[20:], 1)
	le.PutUint64(header[40:], uint64(64+len(names)+len(info))) // section headers
	le.PutUint16(header[52:], 64)
	le.PutUint16(header[58:], 64)
	le.PutUint16(header[60:], 3)
	le.PutUint16(header[62:], 2)
	b.Write(header)
	b.WriteString(names + info)
	section := func(name, kind, offset, size int) {
		s := make([]byte, 64)
		le.PutUint32(s[0:], uint32(name))
		le.PutUint32(s[4:], uint32(kind))
		le.PutUint64(s[24:], uint64(offset))
		le.PutUint64(s[32:], uint64(size))
		b.Write(s)
	}
	section(0, 0, 0, 0)
	section(1, 1, 64+len(names), len(info))
	section(10, 3, 64, len(names))
	return b.Bytes()
}

func TestModulesComeAfterWhatTheyNeed(t *testing.T) {
	packed := map[string][]byte{
		"tiny_usb": moduleThatNeeds("depends=usbcore\x00"),
		"vhci":     moduleThatNeeds("depends=usbip-core,usbcore,usb-common\x00"),
		"usbcore":  moduleThatNeeds("depends=usb-common\x00"),
		// usbip_core and usb_common are built in.
		"plain": moduleThatNeeds("depends=\x00"),
		"older": moduleThatNeeds(""),
	}
	order, err := closure([]string{"tiny-usb", "plain", "vhci", "older"}, func(name string) ([]byte, error) { return packed[name], nil })
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range order {
		names = append(names, m.name)
		if !bytes.Equal(m.data, packed[m.name]) {
			t.Errorf("module %s is another", m.name)
		}
	}
	if diff := cmp.Diff([]string{"usbcore", "tiny_usb", "plain", "vhci", "older"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestModulesThatCannotBeHad(t *testing.T) {
	load := func(name string) ([]byte, error) {
		return map[string][]byte{
			"text": []byte("no module"),
			"loop": moduleThatNeeds("depends=loop\x00"),
			"bare": moduleThatNeeds("")[:64],
		}[name], nil
	}
	for _, name := range []string{"absent", "text", "bare"} {
		if order, err := closure([]string{name}, load); err == nil {
			t.Errorf("%s: %d modules", name, len(order))
		}
	}
	if order, err := closure([]string{"loop"}, load); err != nil || len(order) != 1 {
		t.Errorf("a module that needs itself: %d modules, %v", len(order), err)
	}
}

func TestURIs(t *testing.T) {
	const archive = "http://mirror.home.arpa/debian/"
	sums := []string{strings.Repeat("ab", 32), strings.Repeat("cd", 32)}
	out := fmt.Sprintf("'%spool/main/l/a%%2b1.deb' a+1.deb 12 SHA256:%s\n'%spool/main/l/b.deb' b.deb 34 SHA256:%s\n", archive, sums[0], archive, sums[1])
	l, err := parseURIs(out, archive)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("pool/main/l/a%%2b1.deb 12 %s\npool/main/l/b.deb 34 %s\n", sums[0], sums[1])
	if diff := cmp.Diff(want, l.String()); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"", strings.ReplaceAll(out, "SHA256", "MD5Sum"), strings.Replace(out, archive, "http://other.home.arpa/debian/", 1)} {
		if l, err := parseURIs(bad, archive); err == nil {
			t.Errorf("%q made %v", bad, l)
		}
	}
}

// TestGetUsesWhatIsThere gives a kernel that was taken out before without asking anybody, and takes no file for a package
// that is not the one of the lock.
func TestGetUsesWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	data := []byte("package")
	l := Lock{{Path: "pool/a.deb", Size: int64(len(data)), Sum: sha256.Sum256(data)}}
	home := filepath.Join(dir, "kernel-"+key(l, []string{"m"}))
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, orderFile), []byte("b.ko\na.ko\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	k, err := Get(context.Background(), dir, l, []string{"m"}, func(line string) { t.Errorf("says %q", line) })
	if err != nil {
		t.Fatal(err)
	}
	if k.Image != filepath.Join(home, imageFile) || !slices.Equal(k.Modules, []string{filepath.Join(home, "b.ko"), filepath.Join(home, "a.ko")}) {
		t.Errorf("the kernel is %+v", k)
	}
	if key(l, []string{"m"}) == key(l, []string{"n"}) {
		t.Error("another list of modules has the same name")
	}

	file := filepath.Join(dir, "a.deb")
	for _, wrong := range []string{"", "packagE", "package and more"} {
		if err := os.WriteFile(file, []byte(wrong), 0o644); err != nil {
			t.Fatal(err)
		}
		if check(file, l[0]) == nil {
			t.Errorf("%q passes for the package", wrong)
		}
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := check(file, l[0]); err != nil {
		t.Error(err)
	}
}
