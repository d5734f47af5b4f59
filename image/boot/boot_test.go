package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assent.home.arpa/appliance/config"
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/image/boot/control"
	"assent.home.arpa/inference/scripted"
)

func TestTheSettingsAreSound(t *testing.T) {
	c, err := config.Parse(settings(8080))
	if err != nil {
		t.Fatal(err)
	}
	if c.Search.URL != "http://10.0.2.2:8080/search" {
		t.Errorf("searches go to %s", c.Search.URL)
	}
	if _, err := config.Parse([]byte(brokenWords)); err == nil {
		t.Error("the broken settings can be read")
	}
}

func TestTheScriptCanBeRecited(t *testing.T) {
	if err := scripted.Write(&bytes.Buffer{}, script()); err != nil {
		t.Error(err)
	}
}

func TestSockets(t *testing.T) {
	for line, want := range map[string]string{
		"0: 00000000:01BB 00000000:0000 0A 00000000:00000000":                                                 "tcp 443",
		"1: 0100007F:01BB 00000000:0000 0A 00000000:00000000":                                                 "",
		"2: 0F02000A:01BB 0202000A:9C40 01 00000000:00000000":                                                 "",
		"3: 00000000000000000000000000000000:0050 00000000000000000000000000000000:0000 0A 00000000:00000000": "tcp 80",
		"4: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 00000000:00000000": "",
		"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when":                                  "",
		"": "",
	} {
		got := ""
		if l, ok := parseSocket("tcp", line); ok {
			got = l.protocol + " " + map[uint16]string{443: "443", 80: "80"}[l.port]
		}
		if got != want {
			t.Errorf("%q: %q", line, got)
		}
	}
	if l, ok := parseSocket("udp", "0: 00000000:14E9 00000000:0000 07 00000000:00000000"); !ok || mayHear()[l] != "mDNS" {
		t.Errorf("udp: %+v, %v", l, ok)
	}
}

func TestACopyOfADiskKeepsItsHoles(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	f, err := os.Create(from)
	if err != nil {
		t.Fatal(err)
	}
	const size = 64 << 20
	_, err = f.WriteAt([]byte("in the middle"), 30<<20)
	_, err2 := f.WriteAt([]byte("at the end"), size-10)
	if err := errors.Join(err, err2, f.Close(), copySparse(from, to)); err != nil {
		t.Fatal(err)
	}
	a, err := os.ReadFile(from)
	b, err2 := os.ReadFile(to)
	if err := errors.Join(err, err2); err != nil || !bytes.Equal(a, b) {
		t.Errorf("the copy is another: %v", err)
	}
}

// TestFiguresHaveLimits holds both ways in which one can be wrong.
func TestFiguresHaveLimits(t *testing.T) {
	var out, log bytes.Buffer
	r := &test{out: &out, log: &log}
	r.figure("small", 5, "MB", 6, false)
	r.figure("many", 7, "cuts", 6, true)
	if len(r.wrong) != 0 {
		t.Errorf("wrong: %q", r.wrong)
	}
	r.figure("large", 7, "MB", 6, false)
	r.figure("few", 5, "cuts", 6, true)
	if len(r.wrong) != 2 {
		t.Errorf("wrong: %q", r.wrong)
	}
	if want := "small 5 MB 6\nmany 7 cuts 6\nlarge 7 MB 6\nfew 5 cuts 6\n"; out.String() != want {
		t.Errorf("printed %q", &out)
	}
}

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{{"-only", "nothing"}, {"more"}, {"-unknown"}} {
		var out bytes.Buffer
		if code := run(args, &out, &out); code != 3 {
			t.Errorf("%q: %d", args, code)
		}
	}
	var out bytes.Buffer
	t.Chdir(t.TempDir())
	if code := run([]string{"-image", "nowhere"}, &out, &out); code != 2 {
		t.Errorf("outside the project's folder: %d, %s", code, &out)
	}
}

func TestWhatTheGlassSays(t *testing.T) {
	pages, err := screen.Pages(screen.Card{Title: "Search", Text: "assent.toml: line 3"})
	if err != nil {
		t.Fatal(err)
	}
	if !reads(pages[1].Frame, "ASSENT.toml") || reads(pages[1].Frame, "line 4") {
		t.Error("a text on the glass is not read")
	}
	if reads(screen.DrawNext(), "assent") {
		t.Error("a picture without text is read")
	}
}

func TestWhatAPhoneHears(t *testing.T) {
	h := heard{seal: "AQID", done: "ca"}
	k := control.Record{}
	for range 100 {
		h.add(&k)
	}
	if len(k.Seals) != 64 || len(k.Done) != 100 || !strings.HasPrefix(string(k.Seals[0]), "\x01\x02") {
		t.Errorf("%d seals, %d calls", len(k.Seals), len(k.Done))
	}
}

func TestAWayOutIsSeen(t *testing.T) {
	const all = "guard\trefused\tstart a shell\tno such file\ngateway\topen\tconnect\t<nil>\nworker-net\tneeded\tuse its connection\t\nmodel\tmissing\tread its model\tEACCES\n"
	if got := suspect(false, all); len(got) != 2 || !strings.HasPrefix(got[0], "gateway open") || !strings.HasPrefix(got[1], "model missing") {
		t.Errorf("got %q", got)
	}
	const free = "free\trefused\tstart a shell\tno such file\nfree\topen\tswap\t<nil>\nfree\trefused\tmount\tEPERM\n"
	if got := suspect(true, free); len(got) != 1 || !strings.Contains(got[0], "mount") {
		t.Errorf("free: %q", got)
	}
	if got := suspect(false, "something went wrong\n"); len(got) != 1 {
		t.Errorf("a line that is none: %q", got)
	}
}
