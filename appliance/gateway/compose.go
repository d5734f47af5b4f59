package gateway

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"assent.home.arpa/appliance/conversation"
	"assent.home.arpa/inference/runs"
)

// conversations opens what is kept of conversations and of the model's runs, and returns the service and what closes it.
func (o Options) conversations(ctx context.Context, g *guard) (turns, func() error, error) {
	fail := func(err error) (turns, func() error, error) {
		return nil, nil, fmt.Errorf("gateway: conversations: %w", err)
	}
	store, err := conversation.OpenStore(ctx, filepath.Join(o.StateDir, "conversations.db"))
	if err != nil {
		return fail(err)
	}
	records, err := runs.Open(ctx, filepath.Join(o.StateDir, "runs.db"), runs.DefaultRetention())
	if err != nil {
		return fail(errors.Join(err, store.Close()))
	}
	closeAll := func() error { return errors.Join(records.Close(), store.Close()) }
	return conversation.New(conversation.Options{
		Provider: o.Provider, Guard: g, Runs: records, Store: store, Clock: o.Clock,
		Model: o.Config.Model, Turn: o.Config.Turn, System: conversation.Prompt, Log: o.Log,
	}), closeAll, nil
}
