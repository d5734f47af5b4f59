package courier

import (
	"fmt"
	"net/netip"

	"assent.home.arpa/capabilities"
)

// HousePolicy is the box's own AddressPolicy: public names lead to globally routable unicast addresses, and destinations in
// the house to private or link-local ones. There is no way to loopback in it.
type HousePolicy struct{ special []netip.Prefix }

var _ AddressPolicy = (*HousePolicy)(nil)

// NewHousePolicy returns the policy.
func NewHousePolicy() *HousePolicy {
	p := &HousePolicy{}
	// From the IANA special-purpose address registries (RFC 6890), what net/netip's own predicates do not cover, and all
	// ways to write an IPv4 address in IPv6: those would carry a private address past a check of the outer one.
	for _, s := range []string{
		"0.0.0.0/8",       // this network, RFC 791
		"100.64.0.0/10",   // carrier-grade NAT, RFC 6598
		"192.0.0.0/24",    // protocol assignments, RFC 6890
		"192.0.2.0/24",    // documentation, RFC 5737
		"192.88.99.0/24",  // 6to4 relays, RFC 7526
		"198.18.0.0/15",   // benchmarks, RFC 2544
		"198.51.100.0/24", // documentation, RFC 5737
		"203.0.113.0/24",  // documentation, RFC 5737
		"240.0.0.0/4",     // reserved, and limited broadcast, RFC 1112 and 919
		"2001::/23",       // protocol assignments with Teredo and ORCHID, RFC 2928
		"2001:db8::/32",   // documentation, RFC 3849
		"2002::/16",       // 6to4, RFC 3056
		"3fff::/20",       // documentation, RFC 9637
	} {
		p.special = append(p.special, netip.MustParsePrefix(s))
	}
	return p
}

// Check implements AddressPolicy.
func (p *HousePolicy) Check(class capabilities.Address, addr netip.Addr) error {
	ok := false
	if addr.Zone() == "" && !addr.Is4In6() {
		switch class {
		case capabilities.AddressPublic:
			ok = p.public(addr)
		case capabilities.AddressLAN:
			ok = addr.IsPrivate() || addr.IsLinkLocalUnicast()
		}
	}
	if !ok {
		return fmt.Errorf("%s is not %s", addr, describe(class))
	}
	return nil
}

// public reports whether addr is globally routable unicast. Of IPv6 that is within 2000::/3 (RFC 4291 section 2.4), which
// leaves out NAT64's 64:ff9b::/96 and the mapped forms.
func (p *HousePolicy) public(addr netip.Addr) bool {
	if !addr.IsGlobalUnicast() || addr.IsPrivate() || addr.Is6() && addr.As16()[0]>>5 != 1 {
		return false
	}
	for _, s := range p.special {
		if s.Contains(addr) {
			return false
		}
	}
	return true
}

func describe(class capabilities.Address) string {
	switch class {
	case capabilities.AddressPublic:
		return "a public address"
	case capabilities.AddressLAN:
		return "an address in the house"
	}
	return "an address that this courier connects to"
}
