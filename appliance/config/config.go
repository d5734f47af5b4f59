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
	Name string `toml:"name"`
	// NetworkTime lets the box ask the server that DHCP names for the time. Without it the box has the time that the machine
	// kept, if any, and everything that needs no date works.
	NetworkTime bool `toml:"network_time"`
}

// Gateway says where phones connect.
type Gateway struct {
	// Listen is the address of the phone page. Off loopback it is served over https with a certificate made at start.
	Listen string `toml:"listen"`
	// Hosts are the names, besides the listening address itself, that a browser may use in Host and Origin.
	Hosts []string `toml:"hosts"`
}

// Model says which model answers and how.
type Model struct {
	Name        string  `toml:"name"` // as shown on the phone
	File        string  `toml:"file"` // of those in the box's folder of models; empty: the newest
	Dialect     string  `toml:"dialect"`
	Temperature float64 `toml:"temperature"`
	Context     int     `toml:"context"`    // tokens
	StepTokens  int     `toml:"max_tokens"` // bound of one model step
	Grammar     bool    `toml:"grammar"`    // fix the envelope's syntax
}

// Turn bounds one turn.
type Turn struct {
	Proposals int           `toml:"proposals"`
	Steps     int           `toml:"steps"`
	Timeout   time.Duration `toml:"timeout"`
}

// Panel describes the display and how people hold buttons.
type Panel struct {
	Display  string `toml:"display"`  // ssd1306 or sh1106
	Bus      string `toml:"bus"`      // platform path of the I2C bus, or of the SPI bus if there is a data line
	Data     string `toml:"data"`     // line name of an SPI display's data/command select, empty for displays on I2C
	Reset    string `toml:"reset"`    // line name of an SPI display's reset, empty if it resets itself
	Approve  string `toml:"approve"`  // line name of the approve button
	Deny     string `toml:"deny"`     // line name of the deny button, empty for one-button kits
	Lamp     string `toml:"lamp"`     // line name of a lamp, empty for kits without
	Buzzer   string `toml:"buzzer"`   // line name of a buzzer, empty for kits without
	Rotate   bool   `toml:"rotate"`   // upside down
	Contrast int    `toml:"contrast"` // 1 to 255, the highest for people who do not see well
	Large    bool   `toml:"large"`    // requests in letters twice as large
	Dwell    bool   `toml:"dwell"`    // tap, countdown, tap instead of a hold
	Slow     bool   `toml:"slow"`     // longer windows
}

// Search says where web.search goes.
type Search struct {
	Kind  string `toml:"kind"`  // mediawiki or searxng
	URL   string `toml:"url"`   // endpoint
	Label string `toml:"label"` // what the panel calls it: "Wikipedia"
}

// Audit bounds the log.
type Audit struct {
	QuotaMB int `toml:"quota_mb"`
	// LiteralDays is after how many days literal payloads (arguments, requests, what the panel showed) are removed from the
	// log, which stays verifiable without them. 0 keeps them as long as the log: they are what proves that what was sent was
	// what was shown, removing them cannot be undone, and the quota ends them anyway. It is done after the box has run for a
	// day in which its clock was set and moved by no more than an hour, so that one wrong answer of a time server does not
	// make everything old; a box that runs for less than a day at a time keeps them.
	LiteralDays int `toml:"literal_days"`
}

// Paths says where things live. Each role may only reach its own.
type Paths struct {
	State   string `toml:"state"`   // audit, keys, pairings, conversations
	Runtime string `toml:"runtime"` // sockets
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
		return Config{}, err
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return Config{}, fmt.Errorf("unknown key %s; run assentd check-config to see the keys", unknown[0])
	}
	if err := c.Validate(); err != nil {
		return Config{}, err
	}
	return c, nil
}

// Validate says what is wrong with c, and how it should be.
func (c Config) Validate() error {
	var errs []error
	require := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	require(c.Box.Name != "" && len(c.Box.Name) <= 32, "box.name must be 1 to 32 bytes")
	_, _, err := net.SplitHostPort(c.Gateway.Listen)
	require(err == nil, "gateway.listen must be address:port, not %q", c.Gateway.Listen)
	require(len(c.Gateway.Hosts) <= 16, "gateway.hosts may name at most 16 hosts")
	require(c.Model.File == "" || plainName(c.Model.File) && strings.HasSuffix(c.Model.File, ".gguf") && len(c.Model.File) <= 128,
		"model.file must be the name of a .gguf file, without a folder, of at most 128 bytes")
	require(c.Model.Temperature >= 0 && c.Model.Temperature <= 2, "model.temperature must be 0 to 2")
	require(c.Model.Context >= 512 && c.Model.Context <= 131072, "model.context must be 512 to 131072 tokens")
	require(c.Model.StepTokens >= 16 && c.Model.StepTokens < c.Model.Context, "model.max_tokens must be at least 16 and less than model.context")
	require(c.Turn.Proposals >= 1 && c.Turn.Proposals <= 32, "turn.proposals must be 1 to 32")
	require(c.Turn.Steps >= 1 && c.Turn.Steps <= 64, "turn.steps must be 1 to 64")
	require(c.Turn.Timeout >= time.Minute && c.Turn.Timeout <= 30*time.Minute, "turn.timeout must be 1m to 30m")
	require(c.Panel.Display == "ssd1306" || c.Panel.Display == "sh1106", "panel.display must be ssd1306 or sh1106")
	require(c.Panel.Contrast >= 1 && c.Panel.Contrast <= 255, "panel.contrast must be 1 to 255")
	errs = append(errs, c.Panel.wiring()...)
	require(c.Search.Kind == "mediawiki" || c.Search.Kind == "searxng", "search.kind must be mediawiki or searxng")
	u, err := url.Parse(c.Search.URL)
	require(err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" && u.User == nil && u.RawQuery == "" && u.Fragment == "" && !strings.Contains(c.Search.URL, `\`),
		"search.url must be a plain http or https address without user, query or fragment")
	require(c.Search.Label != "" && len(c.Search.Label) <= 24, "search.label must be 1 to 24 bytes")
	require(c.Audit.QuotaMB >= 8 && c.Audit.QuotaMB <= 65536, "audit.quota_mb must be 8 to 65536")
	require(c.Audit.LiteralDays >= 0 && c.Audit.LiteralDays <= 3650, "audit.literal_days must be 0 (as long as the log) to 3650")
	require(c.Paths.State != "" && c.Paths.Runtime != "", "paths.state and paths.runtime must be set")
	return errors.Join(errs...)
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
