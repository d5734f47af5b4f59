package main

import (
	"context"

	"assent.home.arpa/appliance/box"
	"assent.home.arpa/appliance/lan"
)

// addressRole notes the box's address for the guard, which has no network in which it could look.
func addressRole(ctx context.Context, e env) error {
	if len(e.args) != 0 {
		return usageError("address takes nothing but -config")
	}
	l, err := life()
	if err != nil {
		return err
	}
	return lan.Follow(ctx, box.At(e.config.Paths.Runtime).Address, e.log, l.Ready)
}
