// Package config is the box's one configuration file: TOML, one struct, defaults in one function, unknown keys refused.
//
// It holds no secrets (those are systemd credentials) and no way to weaken the press: what needs one, how long the
// windows are at most, and what counts as read are the product's, not the file's. Its digest is in every boot record.
package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// MaxBytes bounds the file.
const MaxBytes = 64 << 10

// Config is the whole configuration.
type Config struct {
	Box     Box     `toml:"box"`
	Gateway Gateway `toml:"gateway"`
	Model   Model   `toml:"model"`
	Turn    Turn    `toml:"turn"`
	Panel   Panel   `toml:"panel"`
	Search  Search  `toml:"search"`
	Audit   Audit   `toml:"audit"`
	Paths   Paths   `toml:"paths"`
}

// Box says what the box is called.
type Box struct {
	Name string `toml:"name" is:"what the box is called" from:"1" to:"32" unit:"bytes"`
	// NetworkTime lets the box ask the server that DHCP names for the time. Without it the box has the time that the machine
	// kept, if any, and everything that needs no date works.
	NetworkTime bool `toml:"network_time" is:"ask the server that the router names for the time"`
}

// Gateway says where phones connect.
type Gateway struct {
	// Listen is the address of the phone page. Off loopback it is served over https with a certificate made at start.
	Listen string `toml:"listen" is:"where the phone page is served" rule:"address:port, with a port of 1 to 65535"`
	// Hosts are the names, besides the listening address itself, that a browser may use in Host and Origin.
	Hosts []string `toml:"hosts" is:"names of the box that a browser may use" from:"0" to:"16" unit:"names"`
}

// Model says which model answers and how.
type Model struct {
	Name        string  `toml:"name" is:"what phones call the model; empty: what the model calls itself"`
	File        string  `toml:"file" is:"which of the models on the box; empty: the newest" rule:"the name of a .gguf file, without a folder, of at most 128 bytes"`
	Dialect     string  `toml:"dialect" is:"how the model was taught to write calls"`
	Temperature float64 `toml:"temperature" is:"how freely it picks words" from:"0" to:"2"`
	Context     int     `toml:"context" is:"how much of a conversation it sees" from:"512" to:"131072" unit:"tokens"`
	StepTokens  int     `toml:"max_tokens" is:"how much it writes at once" rule:"at least 16 and less than model.context" unit:"tokens"`
	Grammar     bool    `toml:"grammar" is:"keep the form of its calls right"`
}

// Turn bounds one turn.
type Turn struct {
	Proposals int           `toml:"proposals" is:"calls that it may propose for one question" from:"1" to:"32"`
	Steps     int           `toml:"steps" is:"times that it may write for one question" from:"1" to:"64"`
	Timeout   time.Duration `toml:"timeout" is:"how long one question may take" from:"1m" to:"30m"`
}

// Panel describes the display and how people hold buttons.
type Panel struct {
	Display  string `toml:"display" is:"the display's controller" oneof:"ssd1306 sh1106"`
	Bus      string `toml:"bus" is:"platform path of the display's I2C bus, or of its SPI bus if there is a data line"`
	Data     string `toml:"data" is:"line of an SPI display's data/command select; empty for a display on I2C"`
	Reset    string `toml:"reset" is:"line of an SPI display's reset; empty if it resets itself"`
	Approve  string `toml:"approve" is:"line of the approve button"`
	Deny     string `toml:"deny" is:"line of the deny button; empty for one-button kits"`
	Lamp     string `toml:"lamp" is:"line of a lamp; empty for kits without"`
	Buzzer   string `toml:"buzzer" is:"line of a buzzer; empty for kits without"`
	Rotate   bool   `toml:"rotate" is:"the display is mounted upside down"`
	Contrast int    `toml:"contrast" is:"the display's brightness, the highest for people who do not see well" from:"1" to:"255"`
	Large    bool   `toml:"large" is:"requests in letters twice as large"`
	Dwell    bool   `toml:"dwell" is:"tap, countdown, tap instead of a hold"`
	Slow     bool   `toml:"slow" is:"more time to read and to press"`
}

// Search says where web.search goes.
type Search struct {
	Kind  string `toml:"kind" is:"what answers searches" oneof:"mediawiki searxng"`
	URL   string `toml:"url" is:"its address" rule:"a plain http or https address without user, query or fragment"`
	Label string `toml:"label" is:"what the panel calls it" from:"1" to:"24" unit:"bytes"`
}

// Audit bounds the log.
type Audit struct {
	// QuotaMB is what the log may take. On a box that is less: see OnBox.
	QuotaMB int `toml:"quota_mb" is:"what the record may take; at most 448 on a box" from:"8" to:"65536" unit:"MiB"`
	// LiteralDays is after how many days literal payloads (arguments, requests, what the panel showed) are removed from the
	// log, which stays verifiable without them. 0 keeps them as long as the log: they are what proves that what was sent was
	// what was shown, removing them cannot be undone, and the quota ends them anyway. It is done after the box has run for a
	// day in which its clock was set and moved by no more than an hour, so that one wrong answer of a time server does not
	// make everything old; a box that runs for less than a day at a time keeps them.
	LiteralDays int `toml:"literal_days" is:"after how long the record's literal texts are removed for good; 0: as long as the record" from:"0" to:"3650" unit:"days"`
}

// Paths says where things live. Each role may only reach its own.
type Paths struct {
	State   string `toml:"state" is:"audit, keys, pairings, conversations; fixed on a box" rule:"set"`
	Runtime string `toml:"runtime" is:"where its sockets are; fixed on a box" rule:"set"`
}

// Default returns the configuration of a new box.
func Default() Config {
	return Config{
		Box:     Box{Name: "Assent"},
		Gateway: Gateway{Listen: "0.0.0.0:8443", Hosts: []string{"assent.local"}},
		Model:   Model{Dialect: "chatml-hermes", Context: 4096, StepTokens: 512, Grammar: true},
		Turn:    Turn{Proposals: 6, Steps: 8, Timeout: 15 * time.Minute},
		Panel:   Panel{Display: "ssd1306", Approve: "assent-approve", Deny: "assent-deny", Contrast: 127},
		Search:  Search{Kind: "mediawiki", URL: "https://en.wikipedia.org/w/api.php", Label: "Wikipedia"},
		Audit:   Audit{QuotaMB: 256},
		Paths:   Paths{State: "/var/lib/assent", Runtime: "/run/assent"},
	}
}

// Load reads a file over the defaults and validates the result.
func Load(path string) (Config, error) { return Default().WithFile(path) }

// Parse reads a file's content over the defaults and validates the result. The error does not name the file.
func Parse(b []byte) (Config, error) { return Default().With(b) }

// WithFile reads a file over c and validates the result.
func (c Config) WithFile(path string) (Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return Config{}, fmt.Errorf("config: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return Config{}, fmt.Errorf("config: %w", err)
	}
	if c, err = c.With(b); err != nil {
		return Config{}, fmt.Errorf("config: %s: %w", path, err)
	}
	return c, nil
}

// With reads a file's content over c and validates the result. The error does not name the file.
func (c Config) With(b []byte) (Config, error) {
	if len(b) > MaxBytes {
		return Config{}, fmt.Errorf("it is over the bound of %d bytes", MaxBytes)
	}
	meta, err := toml.Decode(string(b), &c)
	if err != nil {
		var parse toml.ParseError
		if errors.As(err, &parse) {
			return Config{}, fmt.Errorf("line %d: %s", parse.Position.Line, parse.Message)
		}
		return Config{}, c.mistyped(err)
	}
	var errs []error
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		errs = append(errs, fmt.Errorf("unknown key %s; run assentd check-config to see the keys", unknown[0]))
	}
	if err := errors.Join(append(errs, c.Validate())...); err != nil {
		return Config{}, err
	}
	return c, nil
}

// Validate says what is wrong with c, and how it should be.
func (c Config) Validate() error {
	var errs []error
	holds := map[string]bool{ // what no range says
		"gateway.listen":   listens(c.Gateway.Listen),
		"model.file":       c.Model.File == "" || plainName(c.Model.File) && strings.HasSuffix(c.Model.File, ".gguf") && len(c.Model.File) <= 128,
		"model.max_tokens": c.Model.StepTokens >= 16 && c.Model.StepTokens < c.Model.Context,
		"search.url":       plainURL(c.Search.URL),
		"paths.state":      c.Paths.State != "",
		"paths.runtime":    c.Paths.Runtime != "",
	}
	for _, k := range c.keys() {
		rule, special := holds[k.name]
		if !k.inRange() || special && !rule {
			errs = append(errs, fmt.Errorf("%s must be %s", k.name, k.must()))
		}
	}
	errs = append(errs, c.Panel.wiring()...)
	return errors.Join(errs...)
}

// listens reports whether s is an address with a port that there is.
func listens(s string) bool {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

func plainURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" && u.User == nil && u.RawQuery == "" && u.Fragment == "" && !strings.Contains(s, `\`)
}

// plainName reports whether s names a file of a folder and nothing else, hidden ones excepted.
func plainName(s string) bool { return filepath.Base(s) == s && !strings.HasPrefix(s, ".") }

// Encode returns the effective configuration as TOML.
func (c Config) Encode() []byte {
	b, err := toml.Marshal(c)
	if err != nil {
		panic("config: internal error: " + err.Error())
	}
	return b
}

// Digest is SHA-256 over the effective configuration.
func (c Config) Digest() [32]byte { return sha256.Sum256(c.Encode()) }
