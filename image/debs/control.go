package debs

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// Control is what a package says of itself.
type Control struct {
	Name         string
	Version      string
	Architecture string
	Source       string // name of the source package, without version
	Homepage     string
	Maintainer   string
}

// ReadControl reads what a package says of itself.
func ReadControl(ctx context.Context, deb string) (Control, error) {
	cmd := exec.CommandContext(ctx, "dpkg-deb", "--field", deb)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.Output()
	if err != nil {
		return Control{}, fmt.Errorf("debs: dpkg-deb: %w", err)
	}
	return parseControl(string(out))
}

// parseControl reads one stanza (deb-control(5)); lines that begin with a space continue the field before.
func parseControl(text string) (Control, error) {
	fields := map[string]string{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if key, value, found := strings.Cut(lines.Text(), ":"); found && !strings.HasPrefix(key, " ") {
			fields[key] = strings.TrimSpace(value)
		}
	}
	source, _, _ := strings.Cut(fields["Source"], " ")
	c := Control{
		Name: fields["Package"], Version: fields["Version"], Architecture: fields["Architecture"], Source: source,
		Homepage: fields["Homepage"], Maintainer: fields["Maintainer"],
	}
	if c.Source == "" {
		c.Source = c.Name
	}
	if c.Name == "" || c.Version == "" || c.Architecture == "" {
		return Control{}, fmt.Errorf("debs: %.40q does not name a package", text)
	}
	return c, nil
}
