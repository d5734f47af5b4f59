package audit

import (
	"errors"
	"time"

	"assent.home.arpa/capabilities"
	"assent.home.arpa/device"
)

// The records about the box and its people rather than about one call.

// Actor says who did something. The zero value is nobody in particular.
type Actor uint8

// The actors. Do not renumber.
const (
	ByBox     Actor = 1 // somebody at the box, with the buttons
	ByPhone   Actor = 2
	ByGuard   Actor = 3
	ByGateway Actor = 4
	ByCourier Actor = 5
	ByWorker  Actor = 6
	ByTimer   Actor = 7
	ByConsole Actor = 8 // somebody with a shell on the box
)

func (a Actor) String() string {
	return name(uint8(a), "nobody", "box", "phone", "guard", "gateway", "courier", "worker", "timer", "console")
}

func (a Actor) check() error {
	if a == 0 {
		return errors.New("nobody did it")
	}
	return nil
}

// AdminAction says what was administered. The zero value is invalid.
type AdminAction uint8

// The actions. Do not renumber.
const (
	AdminPair     AdminAction = 1
	AdminUnpair   AdminAction = 2
	AdminRole     AdminAction = 3
	AdminPolicy   AdminAction = 4
	AdminConfig   AdminAction = 5
	AdminFeed     AdminAction = 6
	AdminTool     AdminAction = 7
	AdminUpdate   AdminAction = 8
	AdminExport   AdminAction = 9
	AdminPrune    AdminAction = 10
	AdminRedact   AdminAction = 11
	AdminReset    AdminAction = 12
	AdminUnfreeze AdminAction = 13
	AdminRevoke   AdminAction = 14 // an unspent grant, by a hold that went on
	AdminPairing  AdminAction = 15 // pairing mode opened or closed
	AdminModel    AdminAction = 16
	AdminQuiet    AdminAction = 17 // quiet hours or the external switch
)

func (a AdminAction) String() string {
	return name(uint8(a), "invalid", "pair", "unpair", "role", "policy", "config", "feed", "tool", "update", "export", "prune",
		"redact", "reset", "unfreeze", "revoke", "pairing mode", "model", "quiet")
}

// Admin is one act of administration, confirmed at the box or refused there.
type Admin struct {
	Action       AdminAction     `cbor:"1,keyasint"`
	Outcome      ApprovalOutcome `cbor:"2,keyasint"`
	By           Actor           `cbor:"3,keyasint,omitzero"`
	Slot         uint32          `cbor:"4,keyasint,omitzero"`
	Person       string          `cbor:"5,keyasint,omitzero"` // an opaque id, never a name
	Role         uint8           `cbor:"6,keyasint,omitzero"`
	Before       Digest          `cbor:"7,keyasint,omitzero"` // of what was there
	After        Digest          `cbor:"8,keyasint,omitzero"` // of what is there now: a key, a policy, a mapping
	Subject      string          `cbor:"9,keyasint,omitzero"` // capability, feed or tool
	Text         Digest          `cbor:"10,keyasint,omitzero"`
	ScreenDigest Digest          `cbor:"11,keyasint,omitzero"`
	Pages        []Digest        `cbor:"12,keyasint,omitempty"`
	Shown        time.Duration   `cbor:"13,keyasint,omitzero"`
	Pressed      time.Duration   `cbor:"14,keyasint,omitzero"`
	Completed    time.Duration   `cbor:"15,keyasint,omitzero"`
	Presses      []device.Event  `cbor:"16,keyasint,omitempty"`
	Code         string          `cbor:"17,keyasint,omitzero"`
	Revision     string          `cbor:"18,keyasint,omitzero"`
	Ref          Seq             `cbor:"19,keyasint,omitzero"`  // the record that it is about
	On           Tristate        `cbor:"20,keyasint,omitzero"`  // for what can be switched
	Steps        []PanelStep     `cbor:"21,keyasint,omitempty"` // what happened at the panel, in order, at most MaxSteps
	LeftOut      uint16          `cbor:"22,keyasint,omitzero"`  // steps that are missing after the first StepsFirst, as far as it counts
}

// Freeze is the panic at the box, or its end.
type Freeze struct {
	On      bool   `cbor:"1,keyasint"`
	By      Actor  `cbor:"2,keyasint"`
	Reason  string `cbor:"3,keyasint,omitzero"`
	Dropped uint32 `cbor:"4,keyasint,omitzero"` // pending decisions
	Killed  uint32 `cbor:"5,keyasint,omitzero"` // workers
}

// Feed is one fetch of a feed, without a press because an owner fixed it at the panel.
type Feed struct {
	ID            string              `cbor:"1,keyasint"`
	Digest        Digest              `cbor:"2,keyasint,omitzero"` // of the snapshot
	Status        capabilities.Status `cbor:"3,keyasint"`
	Code          capabilities.Code   `cbor:"4,keyasint,omitzero"`
	RequestDigest Digest              `cbor:"5,keyasint,omitzero"`
	GrantDigest   Digest              `cbor:"6,keyasint,omitzero"`
	Bytes         uint64              `cbor:"7,keyasint,omitzero"`
	Duration      time.Duration       `cbor:"8,keyasint,omitzero"`
	HTTPStatus    uint16              `cbor:"9,keyasint,omitzero"`
	Admin         Seq                 `cbor:"10,keyasint,omitzero"` // of the admin record that set it up
}

// ToolState says where a foreign tool stands. The zero value is invalid.
type ToolState uint8

// The states. Do not renumber.
const (
	ToolQuarantined ToolState = 1 // seen, never reviewed
	ToolActive      ToolState = 2
	ToolDrifted     ToolState = 3 // no longer what was reviewed: disabled
	ToolRefused     ToolState = 4
	ToolRemoved     ToolState = 5
)

func (s ToolState) String() string {
	return name(uint8(s), "invalid", "quarantined", "active", "drifted", "refused", "removed")
}

// Tool is a change in what is known of a foreign tool.
type Tool struct {
	ID          Digest    `cbor:"1,keyasint"` // over connection, server, schema, mapping and version
	State       ToolState `cbor:"2,keyasint"`
	Connection  string    `cbor:"3,keyasint,omitzero"` // our name for it
	Server      Digest    `cbor:"4,keyasint,omitzero"`
	Schema      Digest    `cbor:"5,keyasint,omitzero"`
	Description Digest    `cbor:"6,keyasint,omitzero"`
	Mapping     Digest    `cbor:"7,keyasint,omitzero"`
	Version     Bytes     `cbor:"8,keyasint,omitempty"`  // as the server says
	Publisher   Bytes     `cbor:"9,keyasint,omitempty"`  // as the server says
	Name        Bytes     `cbor:"10,keyasint,omitempty"` // as the server says
	Capability  string    `cbor:"11,keyasint,omitzero"`  // ours, that it backs
	Raw         Digest    `cbor:"12,keyasint,omitzero"`  // blob BlobTool
	Before      Digest    `cbor:"13,keyasint,omitzero"`  // ID that it had
	By          Actor     `cbor:"14,keyasint,omitzero"`
	Admin       Seq       `cbor:"15,keyasint,omitzero"`
	Fixtures    Tristate  `cbor:"16,keyasint,omitzero"` // whether the review fixtures passed
}

func (a Admin) check() error {
	switch {
	case a.Action == 0, a.Outcome == 0:
		return errors.New("no action or no outcome")
	case a.Role > maxRole:
		return errors.New("no such role")
	case len(a.Presses) > MaxPresses, len(a.Pages) > MaxPageBlobs:
		return errors.New("too many presses or pages")
	}
	return errors.Join(checkPresses(a.Presses), checkSteps(a.Steps))
}

func (f Freeze) check() error { return f.By.check() }

func (f Feed) check() error {
	if f.ID == "" || f.Status == 0 || f.Status > capabilities.Rejected {
		return errors.New("a feed has an id, and is done, failed, unknown or rejected")
	}
	return nil
}

func (t Tool) check() error {
	if t.State == 0 || len(t.Name) > MaxName {
		return errors.New("no state, or the name is too long")
	}
	return nil
}
