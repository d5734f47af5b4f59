package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/capabilities"
)

func TestAuditScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/audit",
		UpdateScripts: *update,
		Cmds:          map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		Setup:         recordDay,
	})
}

// recordDay leaves a log in whole, and damaged copies of it in altered and torn.
func recordDay(env *testscript.Env) error {
	clk := clocktest.New()
	o := audittest.Options(clk, nil)
	o.Dir = filepath.Join(env.WorkDir, "whole")
	l, err := audit.Open(context.Background(), o)
	if err != nil {
		return err
	}
	clk.SetWall(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), clock.Synced)
	hostile := audittest.Automatic(1)
	hostile.Proposal.Name = []byte("a\x1b]52;c;aGk=\x07\u202eb")
	refused := []audit.Entry{
		{Inv: hostile.Inv, Payload: hostile.Proposal},
		{Inv: hostile.Inv, Payload: audit.Decision{
			Stage: capabilities.StageResolve, Verdict: audit.Refuse, Status: capabilities.Rejected, Code: capabilities.CodeUnknownCapability,
		}},
		{Payload: audit.Claim{From: audit.ByGateway, Class: audit.ClaimParseFailure, Code: capabilities.CodeMalformed, Text: []byte("\x1b[2J")}},
	}
	if _, err := l.Barrier(context.Background(), refused...); err != nil {
		return err
	}
	call := audittest.Required(clk, 2)
	i, err := l.Intend(context.Background(), call.Entries(), call.Intent, call.Inv)
	if err != nil {
		return err
	}
	if _, err := l.Effect(context.Background(), i, audit.EffectRecord{Status: capabilities.Done, HTTPStatus: 200}); err != nil {
		return err
	}
	env.Setenv("HEAD", l.Head().Code())
	env.Setenv("ROOT", l.Root().String())
	if err := l.Close(); err != nil {
		return err
	}
	name := "seg-00000000.cborseq"
	whole, err := os.ReadFile(filepath.Join(o.Dir, name))
	if err != nil {
		return err
	}
	for dir, at := range map[string]int{"altered": 8300, "torn": audit.SegmentSize - 9} {
		if err := os.Mkdir(filepath.Join(env.WorkDir, dir), 0o755); err != nil {
			return err
		}
		damaged := append([]byte{}, whole...)
		damaged[at] ^= 1
		if err := os.WriteFile(filepath.Join(env.WorkDir, dir, name), damaged, 0o644); err != nil {
			return err
		}
	}
	return os.Mkdir(filepath.Join(env.WorkDir, "empty"), 0o755)
}
