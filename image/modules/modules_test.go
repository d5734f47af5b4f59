package modules_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/image/modules"
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
	order, err := modules.Closure([]string{"tiny-usb", "plain", "vhci", "older"}, func(name string) ([]byte, error) { return packed[name], nil })
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range order {
		names = append(names, m.Name)
		if !bytes.Equal(m.Data, packed[m.Name]) {
			t.Errorf("module %s is another", m.Name)
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
		if order, err := modules.Closure([]string{name}, load); err == nil {
			t.Errorf("%s: %d modules", name, len(order))
		}
	}
	if order, err := modules.Closure([]string{"loop"}, load); err != nil || len(order) != 1 {
		t.Errorf("a module that needs itself: %d modules, %v", len(order), err)
	}
}
