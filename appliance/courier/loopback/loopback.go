// Package loopback lets a courier connect to the machine that it runs on.
//
// That is for the simulator and for tests, where the search engine is a program beside the box. The box's own service does
// not contain this package, and a test of its import list keeps it so.
package loopback

import (
	"fmt"
	"net/netip"

	"assent.home.arpa/appliance/courier"
	"assent.home.arpa/capabilities"
)

// Policy is the house's policy, and the class of loopback besides.
type Policy struct{ House *courier.HousePolicy }

var _ courier.AddressPolicy = Policy{}

// Check implements courier.AddressPolicy.
func (p Policy) Check(class capabilities.Address, addr netip.Addr) error {
	if class != capabilities.AddressLoopback {
		return p.House.Check(class, addr)
	}
	if !addr.IsLoopback() || addr.Is4In6() {
		return fmt.Errorf("%s is not on this machine", addr)
	}
	return nil
}
