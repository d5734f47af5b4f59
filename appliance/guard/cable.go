package guard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/export"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/confirm"
)

const (
	cableOffered = 5 * time.Minute  // for which an owner's request is offered at the box: until then its gesture opens nothing else
	cableOpen    = 10 * time.Minute // for which the record can be read at most
	cableLook    = time.Second      // between two looks whether it was ejected
	// An offer that came to nothing is not made again for cablePause, and twice as long after each further one, cableDoublings times
	// at most: until then a gesture at the box is for whatever else somebody there may want.
	cablePause     = 10 * time.Minute
	cableDoublings = 4
)

// cablePhase is how far it is with the cable.
type cablePhase uint8

const (
	cableIdle cablePhase = iota
	cableWaiting
	cableCopying
	cableShown
)

// cablePrompt is where the panel says that the record goes.
const cablePrompt = "over the USB cable, read-only"

// Codes of requests for the cable that come to nothing.
const (
	codeNoCable      capabilities.Code = "no_cable"
	codeCableBusy    capabilities.Code = "cable_busy"
	codeCableRefused capabilities.Code = "cable_refused"
)

// cable has the record offered at the box, for the owner and nobody else. Without a press there nothing is on the cable.
func (g *guard) cable(ctx context.Context, m *ipc.Cable) ipc.Message {
	refuse := func(code capabilities.Code, message string) ipc.Message {
		g.log.Warn("the cable was not offered", "code", code, "slot", m.Slot)
		return &ipc.Error{Code: code, Message: message}
	}
	ph, ok := g.phones.find(m.Slot)
	if !ok || !ph.verify(wire.CableBytes(m.Slot, m.Counter), m.Sig) {
		g.noteClaim(ctx, codeBadSignature, m.Slot)
		return refuse(codeBadSignature, "this phone's signature does not fit; pair it again at the box")
	}
	switch err := g.phones.advance(m.Slot, m.Counter); {
	case errors.Is(err, errReplayed):
		g.noteClaim(ctx, codeReplayed, m.Slot)
		return refuse(codeReplayed, "this was asked for before; ask for it anew")
	case err != nil:
		g.log.Error("counter not durable", "err", err)
		return refuse(capabilities.CodeAuditUnavailable, "the box cannot write to its disk; copy the record onto a stick at the box")
	case ph.Role != ipc.RoleOwner:
		return refuse(capabilities.CodeNotAllowed, "only the owner may have the record read over the cable")
	case g.freezer.frozen():
		return refuse(capabilities.CodeFrozen, "the box is frozen: hold both of its buttons for 3 seconds and release it there first")
	}
	if code, message := g.sticks.askPort(m.Slot); code != "" {
		return refuse(code, message)
	}
	g.showIdle()
	return &ipc.CableReply{Seconds: uint32(cableOffered / time.Second)}
}

// noteClaim records an attempt to speak for somebody.
func (g *guard) noteClaim(ctx context.Context, code capabilities.Code, slot uint32) {
	g.note(ctx, audit.KindClaim, uint8(audit.ClaimProtocol), audit.Claim{From: audit.ByGateway, Class: audit.ClaimProtocol, Code: code, Slot: slot})
}

// askPort hands a request to the port, or says why not.
func (s *sticks) askPort(slot uint32) (code capabilities.Code, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	switch {
	case s.port == nil:
		return codeNoCable, "this box cannot be read over a cable; put a stick into it instead"
	case len(s.in) > 0:
		return codeCableBusy, "a stick is in the box: copy the record onto that, or take it out and ask again"
	case s.phase != cableIdle:
		return codeCableBusy, "it was asked for already: look at the box"
	case now < s.pause:
		minutes := int((s.pause - now + time.Minute - 1) / time.Minute)
		return codeCableRefused, fmt.Sprintf("nobody at the box said yes; it is offered again in %d minutes at the earliest, and a stick at any time", minutes)
	}
	s.phase = cableWaiting
	s.port.asked <- slot // an idle port has room
	return "", ""
}

// portIn deals with the port by which the box can pose as a stick, until its exporter goes. Whatever that had on the cable it then
// takes off by itself.
func (g *guard) portIn(ctx context.Context, k *stick) {
	s := g.sticks
	s.mu.Lock()
	second := s.port != nil
	if !second {
		s.port, s.phase = k, cableIdle
	}
	s.mu.Unlock()
	if second {
		g.log.Warn("a second exporter for the cable is hung up on")
		return
	}
	defer func() {
		s.mu.Lock()
		s.port, s.phase = nil, cableIdle
		s.mu.Unlock()
		g.showIdle()
	}()
	g.log.Info("the record can be read over a cable")
	for {
		select {
		case slot := <-k.asked:
			g.offerCable(ctx, k, slot)
		case <-k.client.Done():
			return
		}
	}
}

// offerCable has the panel ask whoever makes the gesture there, and shows the record to a PC after a yes.
func (g *guard) offerCable(ctx context.Context, k *stick, slot uint32) {
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	late, stop := g.opts.Clock.Until(g.opts.Clock.Boot() + cableOffered)
	go func() {
		defer stop()
		select {
		case <-k.client.Done():
			cancel()
		case <-late:
			cancel()
		case <-asking.Done():
		}
	}()
	approved, outcome := g.askCopy(ctx, asking, cablePrompt, slot)
	if outcome == confirm.AdminConfirmed {
		g.showOverCable(ctx, k, approved)
	}
	g.sticks.offerEnds(outcome == confirm.AdminConfirmed)
	g.showIdle()
}

// offerEnds makes place for another offer: after a yes at once, and else after a while.
func (s *sticks) offerEnds(yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase = cableIdle
	if yes {
		s.unwanted = 0
		return
	}
	s.pause = s.now() + cablePause<<min(s.unwanted, cableDoublings)
	s.unwanted++
}

// showOverCable makes a copy, lets a PC read it for a while, and records what came of it.
func (g *guard) showOverCable(ctx context.Context, k *stick, approved audit.Seq) {
	copying, cancel := context.WithCancel(ctx)
	defer cancel()
	s := g.sticks
	s.mu.Lock()
	k.share, k.cancel, s.phase = 0, cancel, cableCopying
	s.mu.Unlock()
	if g.freezer.frozen() { // by a panic that came before there was anything to break off
		cancel()
	}
	g.bulletins.ofStick("", true)
	g.showIdle()
	done := audit.Export{By: audit.ByBox, Admin: approved, Cable: true}
	report, err := g.copyForCable(copying, k)
	say := ""
	if err == nil {
		describe(&done, report)
		code := report.Log.Head.Code()
		s.mu.Lock()
		s.phase, k.say = cableShown, words{note: "on cable: " + code, hint: "eject it on the PC"}
		s.mu.Unlock()
		g.bulletins.ofStick("The record is on the USB cable, read-only, code "+code+". Eject it on the PC when done.", true)
		g.showIdle()
		g.log.Info("the record is on the cable", "head", report.Log.Head.Seq)
		done.Code, say = g.followCable(copying, k)
	} else {
		done.Code, say = cableFailure(err, copying)
		g.log.Warn("the record is not on the cable", "err", err)
	}
	// Whatever happened: off the cable. An exporter that cannot say so is hung up on, which has it do so, or its successor.
	if _, err := newStickVolume(context.WithoutCancel(ctx), k.call).do(&ipc.StickOp{Verb: ipc.StickHide}); err != nil {
		g.log.Warn("the exporter at the cable is hung up on", "err", err)
		k.client.Close()
	}
	s.mu.Lock()
	k.cancel = nil
	s.mu.Unlock()
	g.log.Info("the record is off the cable", "code", done.Code)
	if approved != 0 {
		g.record(ctx, done)
	}
	g.bulletins.ofStick(say, true)
}

// copyForCable makes the copy and has it shown.
func (g *guard) copyForCable(ctx context.Context, k *stick) (export.Report, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, copyLimit(g.auditDir()), errTooSlow)
	defer cancel()
	need, err := export.Need(os.DirFS(g.auditDir()))
	if err != nil {
		return export.Report{}, err
	}
	v := newStickVolume(ctx, k.call)
	if _, err := v.do(&ipc.StickOp{Verb: ipc.StickMake, Room: need}); err != nil {
		return export.Report{}, err
	}
	report, err := g.writeTo(ctx, k, v)
	if err == nil {
		_, err = v.do(&ipc.StickOp{Verb: ipc.StickShow})
	}
	return report, err
}

// followCable waits until the record is to be off the cable, and says why to the record and to people.
func (g *guard) followCable(ctx context.Context, k *stick) (code, say string) {
	v := newStickVolume(ctx, k.call)
	end, stopEnd := g.opts.Clock.Until(g.opts.Clock.Boot() + cableOpen)
	defer stopEnd()
	for {
		look, stop := g.opts.Clock.Until(g.opts.Clock.Boot() + cableLook)
		select {
		case <-look:
		case <-end:
			stop()
			return "time_over", "Time is over: the record is off the cable. If it was not enough, ask again."
		case <-ctx.Done():
			stop()
			return "stopped", "The record was taken off the cable."
		}
		r, err := v.do(&ipc.StickOp{Verb: ipc.StickShown})
		switch {
		case ctx.Err() != nil:
			return "stopped", "The record was taken off the cable."
		case err != nil:
			g.log.Warn("the exporter at the cable fails", "err", err)
			return "cable_failed", "The cable failed: the record is off it. Ask again, or use a stick. Nothing is lost."
		case !r.Yes:
			return "ejected", "Ejected on the PC: the record is off the cable."
		}
	}
}

// cableFailure says why nothing came onto the cable, to the record and to people.
func cableFailure(err error, copying context.Context) (code, say string) {
	var noRoom *export.NoRoomError
	switch {
	case errors.As(err, &noRoom), errors.Is(err, syscall.ENOSPC):
		return "no_room", "The box has no room to make the copy. Use a stick. Nothing is lost."
	case copying.Err() != nil:
		return "stopped", "Copying was stopped. Nothing is on the cable. Nothing is lost."
	}
	return "cable_failed", "The copy failed: ask again, or use a stick. Nothing is lost."
}

// cableNoteLocked is what the idle screen says of the cable; nothing where there is nothing to say.
func (s *sticks) cableNoteLocked() (note, hint string) {
	switch s.phase {
	case cableWaiting:
		return "record over cable:", "hold both buttons 3s"
	case cableCopying:
		return fmt.Sprintf("copying: %d of 100", s.port.share), "for the USB cable"
	case cableShown:
		return s.port.say.note, s.port.say.hint
	}
	return "", ""
}
