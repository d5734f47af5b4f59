package executor

import (
	"context"
	"errors"

	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/registry"
)

// resolve finds the capability by the exact bytes that the model wrote. A name that is nearly right is wrong.
func (e *Executor) resolve(_ context.Context, c *call) *ending {
	found, err := e.cfg.Registry.Lookup(string(c.Name))
	switch {
	case errors.Is(err, registry.ErrDrift):
		return rejected(capabilities.StageResolve, capabilities.CodeNotConfigured)
	case err != nil:
		return rejected(capabilities.StageResolve, capabilities.CodeUnknownCapability)
	}
	c.capability, c.spec = found, found.Pinned
	return nil
}
