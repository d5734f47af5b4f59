package main

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// The help of everything that does something has an example of it.
func TestEveryCommandHasAnExample(t *testing.T) {
	root := (&app{out: io.Discard, err: io.Discard}).newRootCmd()
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		for _, child := range c.Commands() {
			visit(child)
		}
		if !c.HasSubCommands() && !strings.HasPrefix(strings.TrimSpace(c.Example), c.CommandPath()) {
			t.Errorf("%s: the example is %q", c.CommandPath(), c.Example)
		}
	}
	visit(root)
}
