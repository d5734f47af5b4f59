package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/config"
	"assent.home.arpa/image/card"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "assent.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDefaultsAreValidAndSurviveTheirOwnFile(t *testing.T) {
	want := config.Default()
	if err := want.Validate(); err != nil {
		t.Fatal(err)
	}
	got, err := config.Load(write(t, string(want.Encode())))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	if want.Digest() != got.Digest() {
		t.Fatal("equal configurations have different digests")
	}
}

func TestDefaultsGolden(t *testing.T) {
	path := filepath.Join("..", "..", "testdata", "contracts", "config.golden.toml")
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(config.Default().Encode())); diff != "" {
		t.Fatalf("the contract changed (-golden +now):\n%s", diff)
	}
}

func TestBadFilesAreRefusedWithWhatToDo(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"unknown key", "[panel]\nauto_approve = true\n", "unknown key panel.auto_approve; run assentd check-config"},
		{"unknown table", "[remote]\nx = 1\n", "unknown key remote"},
		{"not toml", "[panel\n", "line 2"},
		{"wrong type", "[turn]\nproposals = \"six\"\n", "turn.proposals"},
		{"a word for yes", "[panel]\nslow = \"yes\"\n", "panel.slow must be true or false (line 2)"},
		{"a number in quotation marks", "[turn]\nproposals = \"six\"\n", "turn.proposals must be a number without quotation marks: 1 to 32 (line 2)"},
		{"text without quotation marks", "[box]\nname = 5\n", "box.name must be text in quotation marks: 1 to 32 bytes (line 2)"},
		{"two mistakes", "[panel]\nauto_approve = true\n[turn]\nproposals = 0\n", "keys\nturn.proposals must be 1 to 32"},
		{"out of range", "[turn]\nproposals = 0\n", "turn.proposals must be 1 to 32"},
		{"a negative time", "[audit]\nliteral_days = -1\n", "audit.literal_days must be 0"},
		{"a model's path", "[model]\nfile = \"../guard/phones.gguf\"\n", "model.file must be the name of a .gguf file"},
		{"a hidden model", "[model]\nfile = \".new.gguf\"\n", "model.file must be the name of a .gguf file"},
		{"a model that is none", "[model]\nfile = \"tls.pem\"\n", "model.file must be the name of a .gguf file"},
		{"no port", "[gateway]\nlisten = \"0.0.0.0\"\n", "gateway.listen must be address:port"},
		{"port 0", "[gateway]\nlisten = \"0.0.0.0:0\"\n", "gateway.listen must be address:port, with a port of 1 to 65535"},
		{"a port that there is not", "[gateway]\nlisten = \"0.0.0.0:65536\"\n", "gateway.listen must be address:port"},
		{"a port by name", "[gateway]\nlisten = \"0.0.0.0:https\"\n", "gateway.listen must be address:port"},
		{"too many names", "[gateway]\nhosts = [" + strings.Repeat("\"a\",", 17) + "]\n", "gateway.hosts must be 0 to 16 names"},
		{"no name", "[box]\nname = \"\"\n", "box.name must be 1 to 32 bytes"},
		{"too hot", "[model]\ntemperature = 2.1\n", "model.temperature must be 0 to 2"},
		{"no number", "[model]\ntemperature = nan\n", "model.temperature must be 0 to 2"},
		{"too short", "[turn]\ntimeout = \"59s\"\n", "turn.timeout must be 1m to 30m"},
		{"more than it sees", "[model]\nmax_tokens = 4096\n", "model.max_tokens must be at least 16 and less than model.context"},
		{"another search", "[search]\nkind = \"google\"\n", "search.kind must be mediawiki or searxng"},
		{"two displays", "[panel]\ndisplay = \"ssd1306 sh1106\"\n", "panel.display must be ssd1306 or sh1106"},
		{"user in url", "[search]\nurl = \"https://wikipedia.org@evil.example/\"\n", "search.url must be"},
		{"backslash in url", "[search]\nurl = 'https://wikipedia.org\\.evil.example/'\n", "search.url must be"},
		{"file url", "[search]\nurl = \"file:///etc/passwd\"\n", "search.url must be"},
		{"one line for two buttons", "[panel]\napprove = \"GPIO17\"\ndeny = \"GPIO17\"\n", "panel.approve and panel.deny name one and the same line"},
		{"one line, once with its place", "[panel]\napprove = \"GPIO17@fe200000.gpio\"\ndeny = \"GPIO17\"\n", "panel.approve and panel.deny name one and the same line"},
		{"a lamp on a button", "[panel]\nlamp = \"assent-approve\"\n", "panel.approve and panel.lamp name one and the same line"},
		{"a lamp on the display", "[panel]\nbus = \"spi0.0\"\ndata = \"GPIO24\"\nlamp = \"GPIO24\"\n", "panel.lamp and panel.data name one and the same line"},
		{"SPI without its data line", "[panel]\nbus = \"fe204000.spi/spi_master/spi0/spi0.0\"\n", "needs panel.data"},
		{"reset without data", "[panel]\nreset = \"GPIO25\"\n", "panel.reset is for a display on SPI"},
		{"SPI's data line on I2C", "[panel]\nbus = \"fe804000.i2c\"\ndata = \"GPIO24\"\n", "panel.data is for a display on SPI"},
		{"no approve button", "[panel]\napprove = \"\"\n", "panel.approve must name"},
		{"huge", "# " + strings.Repeat("x", config.MaxBytes), "over the bound"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := config.Load(write(t, tc.text))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// Somebody explains the settings on a PC, saves that, and puts it onto the card of a box.
func TestExplainedSettingsLeaveABoxItsLines(t *testing.T) {
	box := config.On("raspberrypi,4-model-b")
	got, err := box.With(config.Default().Explain(config.Default()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(box, got); diff != "" {
		t.Error(diff)
	}
}

// What is explained is a file of settings itself, and explains each of them.
func TestEachSettingIsExplained(t *testing.T) {
	want := config.Default()
	want.Box.Name, want.Audit.QuotaMB, want.Turn.Timeout = "Küche \"1\"", 300, 90*time.Second
	text := string(want.Explain(config.Default()))
	got, err := config.Parse([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	comment := ""
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "# "):
			comment = line
		case strings.Contains(line, " = "):
			if is, _, _ := strings.Cut(strings.TrimPrefix(comment, "# "), ";"); len(is) < 8 || !strings.Contains(comment, "; default ") {
				t.Errorf("%q is explained as %q", line, comment)
			}
			comment = ""
		}
	}
	for _, part := range []string{
		"# what the record may take; at most 448 on a box; 8 to 65536 MiB; default 256\nquota_mb = 300\n",
		"# how long one question may take; 1m to 30m; default \"15m0s\"\ntimeout = \"1m30s\"\n",
		"# what answers searches; mediawiki or searxng; default \"mediawiki\"\n",
		"# requests in letters twice as large; true or false; default false\n",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing:\n%s", part, text)
		}
	}
}

// The record fits into its partition, with room for what is beside it.
func TestARecordLargerThanItsPartition(t *testing.T) {
	c := config.Default()
	if c.Audit.QuotaMB = config.MaxBoxQuotaMB; c.OnBox() != nil {
		t.Error(c.OnBox())
	}
	c.Audit.QuotaMB++
	if err := c.OnBox(); err == nil || !strings.Contains(err.Error(), "at most 448") || !strings.Contains(string(c.Explain(c)), "at most 448 on a box") {
		t.Errorf("%v", err)
	}
	if err := config.Check([]byte("[audit]\nquota_mb = 449\n")); err == nil {
		t.Error("a card would get it")
	}
	if card.AuditBytes-config.MaxBoxQuotaMB<<20 < 32<<20 {
		t.Error("the partition has no room for it")
	}
}

func TestWiringsThatWork(t *testing.T) {
	for _, tc := range []struct{ name, text string }{
		{"one button, no lamp", "deny = \"\""},
		{"one name on two chips", "approve = \"GPIO17@a.gpio\"\ndeny = \"GPIO17@b.gpio\""},
		{"SPI that resets itself", "bus = \"fe204000.spi/spi_master/spi0/spi0.0\"\ndata = \"GPIO24\""},
		{"the only SPI bus", "data = \"GPIO24\"\nreset = \"GPIO25\""},
		{"a bus on a USB plug", "bus = \"1-1:1.0\""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := config.Parse([]byte("[panel]\n" + tc.text + "\n")); err != nil {
				t.Error(err)
			}
		})
	}
}
