package kernel_test

import (
	"strings"
	"testing"

	"assent.home.arpa/image/hil/kernel"
)

func TestTheLockIsSound(t *testing.T) {
	l, err := kernel.Locked()
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"/linux-binary-", "/linux-modules-"} {
		if !strings.Contains(l.String(), part) {
			t.Errorf("no package %s", part)
		}
	}
}
