package courier_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/courier"
	"assent.home.arpa/appliance/courier/loopback"
	"assent.home.arpa/appliance/grant"
	"assent.home.arpa/capabilities"
)

func TestHousePolicy(t *testing.T) {
	public := []string{"93.184.215.14", "8.8.8.8", "1.1.1.1", "172.32.0.1", "100.63.255.255", "100.128.0.1", "198.20.0.1", "223.255.255.254", "2606:4700::1111", "2a00:1450:4001::1", "2001:4860:4860::8888", "2400:cb00::1"}
	house := []string{"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.5", "169.254.7.7", "fd12:3456::1", "fc00::1", "fe80::1"}
	neither := []string{
		"127.0.0.1", "127.1.2.3", "::1", "0.0.0.0", "::", "0.1.2.3", "100.64.0.1", "100.127.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.19.255.255",
		"198.51.100.1", "203.0.113.1", "224.0.0.251", "239.255.255.250", "240.0.0.1", "255.255.255.255", "ff02::fb", "ff0e::1",
		"::ffff:10.0.0.1", "::ffff:8.8.8.8", "::ffff:127.0.0.1", "::7f00:1", "64:ff9b::a00:1", "64:ff9b::808:808", "64:ff9b:1::1", "100::1",
		"2001::1", "2001:0:a00:1::1", "2001:20::1", "2001:db8::1", "2002:a00:1::1", "2002:808:808::1", "3fff::1", "5f00::1", "4000::1", "fe80::1%eth0", "fec0::1",
	}
	p := courier.NewHousePolicy()
	check := func(list []string, wantPublic, wantHouse bool) {
		for _, s := range list {
			a := netip.MustParseAddr(s)
			if got := p.Check(capabilities.AddressPublic, a) == nil; got != wantPublic {
				t.Errorf("%s is public: %v", s, got)
			}
			if got := p.Check(capabilities.AddressLAN, a) == nil; got != wantHouse {
				t.Errorf("%s is in the house: %v", s, got)
			}
			for _, class := range []capabilities.Address{0, capabilities.AddressLoopback, 4, 255} {
				if p.Check(class, a) == nil {
					t.Errorf("%s was allowed for class %d", s, class)
				}
			}
		}
	}
	check(public, true, false)
	check(house, false, true)
	check(neither, false, false)
	if p.Check(capabilities.AddressPublic, netip.Addr{}) == nil {
		t.Error("no address at all was allowed")
	}
}

func TestSimulatorPolicyAddsLoopbackAlone(t *testing.T) {
	p := loopback.Policy{House: courier.NewHousePolicy()}
	for s, ok := range map[string]bool{"127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": false, "10.0.0.1": false, "8.8.8.8": false, "0.0.0.0": false} {
		if got := p.Check(capabilities.AddressLoopback, netip.MustParseAddr(s)) == nil; got != ok {
			t.Errorf("%s is loopback: %v", s, got)
		}
		if p.Check(capabilities.AddressPublic, netip.MustParseAddr("127.0.0.1")) == nil || p.Check(capabilities.AddressLAN, netip.MustParseAddr("127.0.0.1")) == nil {
			t.Error("the house's policy changed")
		}
	}
}

// policyFunc is an AddressPolicy.
type policyFunc func(capabilities.Address, netip.Addr) error

func (f policyFunc) Check(class capabilities.Address, a netip.Addr) error { return f(class, a) }

// Resolvers give IPv4 addresses in their mapped form, which is no trick of the name's; the policy sees the address itself.
func TestPolicySeesEveryResolvedAddressItself(t *testing.T) {
	var seen []string
	r := start(t, done, func(o *courier.Options) {
		o.Addresses = policyFunc(func(_ capabilities.Address, a netip.Addr) error {
			if seen = append(seen, a.String()); len(seen) == 3 {
				return errors.New("enough")
			}
			return nil
		})
	})
	r.resolver.addrs = []string{"::ffff:93.184.215.14", "93.184.215.15", "2606:4700::1111"}
	r.execute(r.sign(r.claims(func(c *grant.Claims) {
		c.Request.Host, c.Request.Address, c.Request.Scheme = "example.org", capabilities.AddressPublic, "https"
	})))
	if diff := cmp.Diff([]string{"93.184.215.14", "93.184.215.15", "2606:4700::1111"}, seen); diff != "" {
		t.Error(diff)
	}
}

// A name with one bad address is refused as a whole: whoever answers for it could pick the order.
func TestNamesThatLeadElsewhereAreRefused(t *testing.T) {
	for event, c := range map[string]struct {
		addrs []string
		err   error
	}{
		"public and private":        {addrs: []string{"93.184.215.14", "10.0.0.1"}},
		"private and public":        {addrs: []string{"192.168.1.1", "93.184.215.14"}},
		"the box itself":            {addrs: []string{"127.0.0.1"}},
		"the box in IPv6":           {addrs: []string{"::1"}},
		"private in mapped form":    {addrs: []string{"::ffff:10.0.0.1"}},
		"private by NAT64":          {addrs: []string{"64:ff9b::a00:1"}},
		"the metadata address":      {addrs: []string{"169.254.169.254"}},
		"no address":                {},
		"more than anybody needs":   {addrs: strings.Split(strings.Repeat("93.184.215.14 ", 64)+"93.184.215.14", " ")},
		"a resolver that fails":     {err: errors.New("no route to 10.0.0.53 for example.org")},
		"a resolver that half does": {addrs: []string{"93.184.215.14"}, err: errors.New("truncated")},
	} {
		r := start(t, func(job) { t.Errorf("%s: a worker started", event) }, nil)
		r.resolver.addrs, r.resolver.err = c.addrs, c.err
		_, refused := r.execute(r.sign(r.claims(func(c *grant.Claims) {
			c.Request.Host, c.Request.Address, c.Request.Scheme, c.Request.Port = "example.org", capabilities.AddressPublic, "https", 443
		})))
		if refused == nil || refused.Code != capabilities.CodeUnreachable || !strings.Contains(refused.Message, "nothing was sent") || strings.Contains(refused.Message, "10.0.0.53") {
			t.Errorf("%s: %v", event, refused)
		}
		if n := r.resolver.asked.Load(); n != 1 {
			t.Errorf("%s: %d look-ups", event, n)
		}
	}
}

func TestLiteralsAndHouseNames(t *testing.T) {
	for event, change := range map[string]func(*capabilities.Request){
		"a private literal as public":   func(r *capabilities.Request) { r.Host, r.Address = "10.0.0.1", capabilities.AddressPublic },
		"loopback as public":            func(r *capabilities.Request) { r.Host, r.Address = "127.0.0.1", capabilities.AddressPublic },
		"a mapped literal":              func(r *capabilities.Request) { r.Host, r.Address = "::ffff:10.0.0.1", capabilities.AddressLAN },
		"loopback as in the house":      func(r *capabilities.Request) { r.Host, r.Address = "127.0.0.1", capabilities.AddressLAN },
		"public as in the house":        func(r *capabilities.Request) { r.Host, r.Address = "93.184.215.14", capabilities.AddressLAN },
		"a name in the house":           func(r *capabilities.Request) { r.Host, r.Address = "example.org", capabilities.AddressLAN },
		"a name for this machine":       func(r *capabilities.Request) { r.Host, r.Address = "example.org", capabilities.AddressLoopback },
		"no class":                      func(r *capabilities.Request) { r.Host, r.Address = "93.184.215.14", 0 },
		"loopback under no exception":   func(r *capabilities.Request) { r.Host, r.Address = "127.0.0.1", capabilities.AddressLoopback },
		"an interface in the literal":   func(r *capabilities.Request) { r.Host, r.Address = "fe80::1%lo", capabilities.AddressLAN },
		"the unspecified address":       func(r *capabilities.Request) { r.Host, r.Address = "0.0.0.0", capabilities.AddressPublic },
		"the unspecified address in v6": func(r *capabilities.Request) { r.Host, r.Address = "::", capabilities.AddressLAN },
	} {
		r := start(t, func(job) { t.Errorf("%s: a worker started", event) }, func(o *courier.Options) { o.Addresses = courier.NewHousePolicy() })
		r.resolver.addrs = []string{"10.0.0.1"}
		port, accepted := listen(t, false)
		_, refused := r.execute(r.sign(r.claims(func(c *grant.Claims) { c.Request.Port = port; change(c.Request) })))
		if refused == nil || refused.Code != capabilities.CodeUnreachable {
			t.Errorf("%s: %v", event, refused)
		}
		if n := r.resolver.asked.Load(); n != 0 {
			t.Errorf("%s: %d look-ups", event, n)
		}
		if len(accepted) != 0 {
			t.Errorf("%s: it connected", event)
		}
	}
}
