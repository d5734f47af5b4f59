package guard

import (
	"context"
	"crypto/sha256"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/confirm"
)

// Codes of pairings that came to nothing.
const (
	codePairingClosed  capabilities.Code = "pairing_refused"
	codePairingName    capabilities.Code = "bad_name"
	codePairingBusy    capabilities.Code = "pairing_busy"
	codePairingDenied  capabilities.Code = "pairing_denied"
	codePairingExpired capabilities.Code = "pairing_expired"
)

func notPaired(code capabilities.Code, message string) *ipc.PairReply {
	return &ipc.PairReply{Code: code, Message: message}
}

// pair pairs a phone that knows the code on the panel, once somebody at the box has accepted its name.
func (g *guard) pair(ctx context.Context, m *ipc.Pair) *ipc.PairReply {
	if !g.pairing.TryLock() {
		return notPaired(codePairingBusy, "another phone is being paired; wait until the box is done")
	}
	defer g.pairing.Unlock()
	if g.journal.Err() != nil {
		return notPaired(capabilities.CodeAuditUnavailable, "the box cannot write its audit, so it pairs no phone")
	}
	if !g.desk.CheckPairingCode(m.Code) {
		g.noteFrom(ctx, source{}, audit.KindClaim, uint8(audit.ClaimProtocol), audit.Claim{From: audit.ByGateway, Class: audit.ClaimProtocol, Code: codePairingClosed})
		return notPaired(codePairingClosed, "this is not the code on the box's display; read it again; if it is gone, hold both buttons there for three seconds")
	}
	if err := g.phones.check(m.Name, m.Key); err != nil {
		return notPaired(codePairingName, err.Error())
	}
	slot, role := g.phones.upcoming() // only a pairing changes them
	title, text := pairPrompt(wire.KeyCode(m.Code, m.Key), ipc.Role(role))
	d, err := g.desk.AskAdmin(ctx, confirm.AdminRequest{Kind: confirm.AdminPair, Title: title, Text: text, Name: m.Name})
	if err != nil {
		g.log.Error("pairing prompt", "err", err)
		return notPaired(capabilities.CodeDisplayUnavailable, "the box's display does not answer; nothing can be paired")
	}
	record := audit.Admin{
		Action: audit.AdminPair, By: audit.ByBox,
		After: sha256.Sum256(m.Key), Text: sha256.Sum256([]byte(m.Name)),
	}
	entries := asked(&record, d)
	if d.Outcome != confirm.AdminConfirmed {
		record.Pages = nil // the phone's name is nobody's business if it was not accepted
		switch d.Outcome {
		case confirm.AdminDenied, confirm.AdminExpired, confirm.AdminPanicked: // decided at the box, so always recorded
			g.record(ctx, record)
		default:
			g.note(ctx, audit.KindAdmin, uint8(audit.AdminPair), record)
		}
		return refusedPairing(d.Outcome)
	}
	// The press counts from here on, whether the gateway is still there or not.
	ctx = context.WithoutCancel(ctx)
	record.Slot, record.Role = slot, role
	name, _ := audit.BlobOf(audit.BlobAdmin, [16]byte{}, []byte(m.Name))
	if err := g.journal.Barrier(ctx, append(entries, name, audit.Entry{Payload: record})...); err != nil {
		return notPaired(capabilities.CodeAuditUnavailable, "the box cannot write its audit, so it pairs no phone")
	}
	ph, err := g.phones.add(m.Name, m.Key)
	if err != nil {
		g.log.Error("pairing not stored", "err", err)
		g.append(ctx, audit.Entry{Payload: audit.Fault{Class: audit.FaultStorage, Where: "pairings"}})
		return notPaired(capabilities.CodeInternal, "the box cannot write to its disk, so it pairs no phone")
	}
	g.log.Info("phone paired", "slot", ph.Slot, "role", ph.Role.String())
	g.showIdle()
	return &ipc.PairReply{OK: true, Slot: ph.Slot, Name: ph.Name, Role: ph.Role}
}

// pairPrompt is what somebody at the box accepts: the key, as the digits that the phone shows too, what the phone becomes,
// above its name. The gateway could send another key under the same name, so the digits come first: no name can pretend to be them.
func pairPrompt(keyCode string, role ipc.Role) (title, text string) {
	return "Pair this phone", keyCode + "\nbecomes " + role.String()
}

func refusedPairing(o confirm.AdminOutcome) *ipc.PairReply {
	switch o {
	case confirm.AdminBusy:
		return notPaired(codePairingBusy, "the box shows something else; try again when it is done")
	case confirm.AdminExpired:
		return notPaired(codePairingExpired, "nobody at the box accepted this phone in time; try again")
	case confirm.AdminNoGesture:
		return notPaired(codePairingClosed, "pairing is closed; hold both buttons at the box for three seconds")
	case confirm.AdminDisplayLost:
		return notPaired(capabilities.CodeDisplayUnavailable, "the box's display does not answer; nothing can be paired")
	case confirm.AdminPanicked:
		return notPaired(capabilities.CodeFrozen, "the box is frozen; it can only be released with its buttons")
	}
	return notPaired(codePairingDenied, "this phone was not accepted at the box")
}
