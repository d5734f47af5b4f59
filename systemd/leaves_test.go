package systemd_test

import (
	"slices"
	"testing"

	"assent.home.arpa/systemd"
)

// W16: the table can be read, says why of each row, and lets nothing go to the world.
func TestLeaves(t *testing.T) {
	all, err := systemd.Leaves()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, l := range all {
		names[l.Name] = true
		for _, port := range []uint16{53, 80, 443, 853} {
			if slices.Contains(l.DestinationPort, port) {
				t.Errorf("%s: port %d leaves without a press", l.Name, port)
			}
		}
		if slices.Contains(l.Protocol, "tcp") && !slices.Equal(l.To, []string{systemd.Asker}) {
			t.Errorf("%s: a tcp connection is opened without a press", l.Name)
		}
	}
	for _, want := range []string{"arp", "dhcp", "mdns", "answers", "time"} {
		if !names[want] {
			t.Errorf("nothing is said of %s", want)
		}
	}
}
