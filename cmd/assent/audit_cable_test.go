package main

import (
	"strings"
	"testing"

	"assent.home.arpa/appliance/wire"
)

func TestCableSaysWhatToDoAtTheBox(t *testing.T) {
	for _, tc := range []struct {
		name      string
		reply     wire.Downstream
		status    int
		out, errs string
	}{
		{"offered", wire.Downstream{Type: wire.TypeCable, Data: wire.CableOffer{Seconds: 300}}, 0, "for 5 minutes: hold both of its buttons", ""},
		{
			"refused",
			wire.Downstream{Type: wire.TypeError, Data: wire.Error{Code: "not_allowed", Message: "only the owner may\x1b[31m"}},
			exitBad, "", `only the owner may\x1b[31m`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			hostileTo(t, wire.TypeCable, tc.reply)
			status, out, errs := assent(t, "audit", "cable")
			if status != tc.status || !strings.Contains(out, tc.out) || !strings.Contains(errs, tc.errs) || strings.Contains(errs, "\x1b") {
				t.Errorf("exit %d, want %d\nout  %q\nerrs %q", status, tc.status, out, errs)
			}
		})
	}
}
