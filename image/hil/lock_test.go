package main

import (
	"strings"
	"testing"

	"assent.home.arpa/image/debs"
)

func TestTheLockIsSound(t *testing.T) {
	l, err := debs.ParseLock(strings.NewReader(locked))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"/linux-binary-", "/linux-modules-"} {
		if !strings.Contains(l.String(), part) {
			t.Errorf("no package %s", part)
		}
	}
}
