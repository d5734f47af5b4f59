package main

import (
	"context"
	"encoding/hex"
	"os"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/image/boot/control"
)

// recordDir is where the box keeps its record.
const recordDir = "/var/lib/assent/guard/audit"

// verify judges the box's record where it is, by what a phone knows of it.
func verify(known control.Record) (*control.Verdict, error) {
	done := map[string]bool{}
	intents := map[audit.Seq]string{}
	o := audit.VerifyOptions{AllSeals: true, Anchors: known.Seals, Visit: func(e audit.Entered) error {
		switch p := e.Payload.(type) {
		case *audit.IntentRecord:
			intents[e.Seq] = hex.EncodeToString(e.Inv[:])
		case *audit.EffectRecord:
			done[intents[p.Intent]] = p.Status == capabilities.Done
		}
		return nil
	}}
	r, err := audit.Verify(context.Background(), os.DirFS(recordDir), o)
	if err != nil {
		return nil, err
	}
	v := &control.Verdict{Status: r.Status.String(), Good: r.Status.ExitCode() == 0, Records: r.Records}
	if r.Problem != nil {
		v.Problem = r.Problem.String()
	}
	for _, a := range r.Anchors {
		if a.State != audit.AnchorHeld {
			v.Lost = append(v.Lost, "seal "+a.State.String())
		}
	}
	for _, inv := range known.Done {
		if !done[inv] {
			v.Lost = append(v.Lost, "call "+inv)
		}
	}
	return v, nil
}
