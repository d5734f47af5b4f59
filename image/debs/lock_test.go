package debs_test

import (
	"errors"
	"strings"
	"testing"

	"assent.home.arpa/image/debs"
)

const sum = "369f200e9b641fac0a1c713d8685c2e0d1d730a1e9484782681b845349010983"

func TestLockComesBack(t *testing.T) {
	const text = "pool/main/l/linux/a%2bb.deb 12 " + sum + "\npool/main/l/linux/c.deb 345 " + sum + "\n"
	l, err := debs.ParseLock(strings.NewReader("# made by hand\n\n" + strings.Replace(text, "\n", " # the first\n", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if l.String() != text {
		t.Errorf("the lock is %q", l)
	}
}

func TestLockRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":             "# only words\n",
		"a missing field":     "pool/a.deb " + sum,
		"a field too many":    "pool/a.deb 1 " + sum + " x",
		"another place":       "dists/a.deb 1 " + sum,
		"a way out":           "pool/../../etc/a.deb 1 " + sum,
		"no package":          "pool/a.tar 1 " + sum,
		"no number":           "pool/a.deb x " + sum,
		"nothing in it":       "pool/a.deb 0 " + sum,
		"too large":           "pool/a.deb 99999999999 " + sum,
		"a short sum":         "pool/a.deb 1 " + sum[2:],
		"a sum that is none":  "pool/a.deb 1 " + strings.Replace(sum, "3", "g", 1),
		"too many":            strings.Repeat("pool/a.deb 1 "+sum+"\n", 513),
		"a line without end":  strings.Repeat("x", 1<<20),
		"a package after it":  "pool/a.deb 1 " + sum + "\nx",
		"a path without name": "pool/ 1 " + sum,
	} {
		if l, err := debs.ParseLock(strings.NewReader(text)); !errors.Is(err, debs.ErrLock) {
			t.Errorf("%s: %v, %v", name, l, err)
		}
	}
}
