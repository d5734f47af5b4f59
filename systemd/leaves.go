// Package systemd holds what the box's first process needs to know: units, users, meeting places, the packet filter and the
// kernel's settings, as files that mirror the root of the image (README.md says what each is), and the table of what leaves
// the box without a press.
//
// There is no program here. The table is Go so that a test of the whole box can hold a capture against it, and the tests of
// this package ask systemd, nftables and the kernel whether the files say what they are meant to say.
package systemd

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/BurntSushi/toml"
)

//go:embed leaves.toml
var leaves []byte

// Where a frame may go, besides to an address that a Leaf names.
const (
	Broadcast = "broadcast" // ff:ff:ff:ff:ff:ff, or 255.255.255.255
	Asker     = "asker"     // a machine from which a frame with addresses and ports swapped came before
	Server    = "server"    // the machine that DHCP named for the purpose
)

// When a frame may leave.
const (
	Always = "always"
	Chosen = "chosen" // the owner set box.network_time
)

// Leaf is one row of the table: frames that match it may leave without a press. Conditions must all hold, and of a list one
// member must; an empty list is no condition.
type Leaf struct {
	Name   string `toml:"name"`
	Sender string `toml:"sender"` // unit, or kernel
	What   string `toml:"what"`
	Why    string `toml:"why"`
	Only   string `toml:"only"` // Always or Chosen

	Ether           []string `toml:"ether"`    // arp, ipv4, ipv6
	Protocol        []string `toml:"protocol"` // udp, tcp, igmp, icmpv6
	SourcePort      []uint16 `toml:"source_port"`
	DestinationPort []uint16 `toml:"destination_port"`
	ICMPType        []uint8  `toml:"icmp_type"`
	To              []string `toml:"to"`      // Broadcast, Asker, Server or an address
	Without         []string `toml:"without"` // text that must not be in the frame, whatever its case
}

// Leaves returns the table.
func Leaves() ([]Leaf, error) {
	var table struct {
		Leaf []Leaf `toml:"leaf"`
	}
	meta, err := toml.NewDecoder(bytes.NewReader(leaves)).Decode(&table)
	if err != nil {
		return nil, fmt.Errorf("leaves.toml: %w", err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return nil, fmt.Errorf("leaves.toml: unknown key %s", unknown[0])
	}
	seen := map[string]bool{}
	for _, l := range table.Leaf {
		if err := l.check(); err != nil {
			return nil, fmt.Errorf("leaves.toml: %q: %w", l.Name, err)
		}
		if seen[l.Name] {
			return nil, fmt.Errorf("leaves.toml: two rows are named %q", l.Name)
		}
		seen[l.Name] = true
	}
	return table.Leaf, nil
}

// check refuses a row that would match nothing, or more than whoever wrote it can have meant.
func (l Leaf) check() error {
	switch {
	case l.Name == "" || l.Sender == "" || l.What == "" || l.Why == "":
		return errors.New("name, sender, what and why must be said")
	case l.Only != Always && l.Only != Chosen:
		return fmt.Errorf("only is %q, not always or chosen", l.Only)
	case len(l.Ether) == 0:
		return errors.New("ether must be said")
	case !slices.Equal(l.Ether, []string{"arp"}) && len(l.Protocol) == 0:
		return errors.New("a row of IP must name its protocols")
	case slices.Contains(l.Protocol, "udp") || slices.Contains(l.Protocol, "tcp"):
		if len(l.SourcePort) == 0 && len(l.DestinationPort) == 0 || len(l.To) == 0 {
			return errors.New("a row of udp or tcp must name a port and where to")
		}
	}
	for _, e := range l.Ether {
		if !slices.Contains([]string{"arp", "ipv4", "ipv6"}, e) {
			return fmt.Errorf("unknown ether %q", e)
		}
	}
	for _, p := range l.Protocol {
		if !slices.Contains([]string{"udp", "tcp", "igmp", "icmpv6"}, p) {
			return fmt.Errorf("unknown protocol %q", p)
		}
	}
	for _, to := range l.To {
		if _, err := netip.ParseAddr(to); err != nil && !slices.Contains([]string{Broadcast, Asker, Server}, to) {
			return fmt.Errorf("unknown destination %q", to)
		}
	}
	return nil
}
