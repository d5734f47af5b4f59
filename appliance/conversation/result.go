package conversation

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/inference"
	"assent.home.arpa/inference/proposal"
)

// outcome turns the guard's word into the object that model and phone share. The error says that the result's body broke
// its promise; then the outcome says so too and has no data.
func (r *run) outcome(name string, o *ipc.Outcome) (wire.Outcome, error) {
	out := wire.Outcome{
		Capability: o.Name, Version: o.Version, Status: o.Status.String(), Code: o.Code, Message: o.Message, RetryIn: o.RetryIn,
	}
	if o.Inv != (capabilities.InvocationID{}) {
		out.Invocation = o.Inv.String()
	}
	if o.Stage != 0 {
		out.Stage = o.Stage.String()
	}
	if o.Retrieved != 0 {
		out.RetrievedAt = time.UnixMilli(o.Retrieved).UTC().Format(time.RFC3339)
	}
	if o.Status != capabilities.Done {
		return out, nil
	}
	out.Data = o.Body
	if err := r.check(name, o.Body, out); err != nil {
		out.Data, out.Status, out.Code = nil, capabilities.Failed.String(), capabilities.CodeBadResponse
		out.Message = "the result was not of the promised form and was thrown away"
		return out, err
	}
	return out, nil
}

// check holds a body against what the catalog says of it, before anybody sees it. It trusts neither worker nor guard.
func (r *run) check(name string, body []byte, whole wire.Outcome) error {
	want, ok := r.catalog.Results[name]
	if !ok {
		return errors.New("the catalog has no shape for this result")
	}
	if len(body) > want.Bytes {
		return fmt.Errorf("%d bytes are over the bound of %d", len(body), want.Bytes)
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return errors.New("it is not JSON")
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(want.Shape, &schema); err != nil {
		return fmt.Errorf("shape: %w", err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return fmt.Errorf("shape: %w", err)
	}
	if err := resolved.Validate(v); err != nil {
		return err
	}
	// JSON with two readings (a key twice, invalid UTF-8) passes a schema. The dialect, which is strict, would refuse the
	// conversation for ever because of it.
	_, err = r.dialect.Render(inference.Request{History: []inference.Message{{Kind: inference.Outcome, Text: data(whole)}}})
	return err
}

// The outcomes of what did not get as far as an answer of the guard.

const (
	turnSpent = "this turn's budget of calls is spent; answer with what you have"
	toolSpent = "this tool's budget for the turn is spent; answer with what you have"
)

func unparsed(f proposal.Failure) wire.Outcome {
	return wire.Outcome{Status: capabilities.Rejected.String(), Stage: capabilities.StageParse.String(), Code: f.Code, Message: f.Detail}
}

func overBudget(message string) wire.Outcome {
	return wire.Outcome{Status: capabilities.Rejected.String(), Stage: capabilities.StageBudget.String(), Code: capabilities.CodeBudget, Message: message}
}

func overMany(n int) wire.Outcome {
	return overBudget(fmt.Sprintf("%d more calls of this step were not looked at; %s", n, turnSpent))
}

// tooLate is for a call that was returned and not yet submitted when its turn was stopped.
func tooLate() wire.Outcome {
	return wire.Outcome{
		Status: capabilities.Withdrawn.String(), Stage: capabilities.StageBudget.String(), Code: capabilities.CodeInterrupted,
		Message: "the turn was stopped before this call was made",
	}
}

// gone is for a capability that this person no longer has.
func gone() wire.Outcome {
	return wire.Outcome{
		Status: capabilities.Rejected.String(), Stage: capabilities.StageResolve.String(), Code: capabilities.CodeUnknownCapability,
		Message: "this tool is no longer available; do not call it",
	}
}

func turnedAway(code capabilities.Code, message string) wire.Outcome {
	return wire.Outcome{Status: capabilities.Rejected.String(), Code: code, Message: message}
}

// lostTrack is the outcome of a proposal that the guard took with it: it may have been executed, and only the audit knows.
func lostTrack() wire.Outcome {
	return wire.Outcome{
		Status: capabilities.Unknown.String(), Code: capabilities.CodeInterrupted,
		Message: "the box lost track of this call, which may have been made; it is not tried again. Look at the box's display",
	}
}
