package box

import (
	"assent.home.arpa/appliance/lan"
	"assent.home.arpa/appliance/watchdog"
)

// Life is what a role tells whoever started it. The zero value is nobody.
type Life struct {
	Ready    func() // called once it serves
	Watchdog watchdog.Watchdog
}

// AddressFrom returns what says where phones reach this box, from the file in which package lan notes it: empty while there is
// no address.
func AddressFrom(s Sockets) func() string {
	return func() string {
		a, err := lan.Read(s.Address)
		if err != nil {
			return ""
		}
		if a.Is6() {
			return "https://[" + a.String() + "]"
		}
		return "https://" + a.String()
	}
}
