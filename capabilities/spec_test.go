package capabilities_test

import (
	"testing"

	"assent.home.arpa/capabilities"
)

func TestWireNameIsReversibleAndNeverFuzzy(t *testing.T) {
	for _, n := range []capabilities.Name{"web.search", "system.health", "a.b.c.d", "x1"} {
		got, v, ok := capabilities.ParseWireName(capabilities.WireName(n, 3))
		if !ok || got != n || v != 3 {
			t.Errorf("%s: got %q %d %v", n, got, v, ok)
		}
	}
	for _, s := range []string{"", "web.search", "web_search", "web_search__v0", "web_search__v01", "web_search__v+1", "web_search__v65536", "Web_search__v1", "web__search__v1", "__v1", "web_search__v1 ", "web_serch__v1x", "_web__v1", "web-search__v1"} {
		if n, v, ok := capabilities.ParseWireName(s); ok {
			t.Errorf("%q was read as %q v%d", s, n, v)
		}
	}
}
