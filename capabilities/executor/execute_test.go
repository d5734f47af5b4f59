package executor_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/grant"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/executor"
	"assent.home.arpa/capabilities/executor/executortest"
	"assent.home.arpa/capabilities/registry"
	"assent.home.arpa/confirm"
	"assent.home.arpa/confirm/receipt"
)

// rebuilt registers a box's adapters anew, as a restart does, with another panel or registry.
func rebuilt(t *testing.T, b *box, d executor.Desk) *box {
	t.Helper()
	grantPublic, grantKey := keys(t)
	reg, err := registry.New(b.local, b.search)
	if err != nil {
		t.Fatal(err)
	}
	if b.registry != nil {
		reg = b.registry
	}
	b.courier = executortest.NewCourier(grantPublic, b.clock, b.desk.boot)
	b.Executor, err = executor.New(executor.Config{
		Registry: reg, Desk: d, Journal: b.journal, Courier: b.courier, Clock: b.clock, BootID: b.desk.boot, GrantKey: grantKey,
		Proposals: 6, Frozen: b.frozen.Load,
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestZeroGrantPermitsNothing(t *testing.T) {
	if m, err := (executor.Grant{}).Message(); err == nil || m != nil {
		t.Fatal("the zero grant can be sent")
	}
}

// TestWhatChangesAfterThePressIsStale: everything that was shown or bound is looked at again before the grant exists.
func TestWhatChangesAfterThePressIsStale(t *testing.T) {
	for event, change := range map[string]func(*box){
		"a default of the request": func(b *box) {
			b.search.Replan(func(p capabilities.Plan) capabilities.Plan {
				p.Request.Bytes = append([]byte("X"), p.Request.Bytes...)
				return p
			})
		},
		"a default of the arguments": func(b *box) {
			b.search.Replan(func(p capabilities.Plan) capabilities.Plan { p.Args = []byte(`{"limit":9}`); return p })
		},
		"the consequence text": func(b *box) {
			b.search.Replan(func(p capabilities.Plan) capabilities.Plan { p.Title = "Look at"; return p })
		},
		"the schema":            func(b *box) { b.search.Change(func(s *capabilities.Spec) { s.ArgsSchema = []byte(`{}`) }) },
		"the adapter revision":  func(b *box) { b.search.Change(func(s *capabilities.Spec) { s.Revision = "pages/2" }) },
		"the date gets lost":    func(b *box) { b.clock.SetWall(time.Unix(0, 0), clock.Unset) },
		"the receipt's slot":    func(b *box) { b.desk.tamper = func(c *receipt.Claims) { c.Slot = 2 } },
		"the receipt's request": func(b *box) { b.desk.tamper = func(c *receipt.Claims) { c.RequestDigest[0]++ } },
		"another call's receipt": func(b *box) {
			b.desk.tamper = func(c *receipt.Claims) { c.Inv[0]++ }
		},
	} {
		t.Run(event, func(t *testing.T) {
			b := newBox(t)
			b.desk.do(func(context.Context, confirm.Request) confirm.Outcome {
				change(b)
				return confirm.Approved
			})
			b.want(b.invoke(b.turn(adult(), executor.NewConversation(nil)), "find_pages__v1", query), capabilities.StageExecute, capabilities.Rejected, capabilities.CodeReceiptStale)
			if len(b.courier.Calls()) != 0 {
				t.Error("something was sent")
			}
			if len(b.desk.tokens) != 0 {
				t.Error("the receipt was not consumed")
			}
			if n := len(find[*audit.IntentRecord](b.records())); n != 0 {
				t.Error("it was promised")
			}
		})
	}
}

// TestTurnOrFreezeEndsBetweenPressAndGrant: the press alone does not carry a call over the end of its turn or a panic.
func TestTurnOrFreezeEndsBetweenPressAndGrant(t *testing.T) {
	for event, tt := range map[string]struct {
		change func(*box, *executor.Turn)
		status capabilities.Status
		code   capabilities.Code
	}{
		"the turn ends":      {func(_ *box, turn *executor.Turn) { turn.End() }, capabilities.Withdrawn, ""},
		"30 minutes pass":    {func(b *box, _ *executor.Turn) { b.clock.Suspend(executor.TurnLife) }, capabilities.Withdrawn, ""},
		"panic at the box":   {func(b *box, _ *executor.Turn) { b.frozen.Store(true) }, capabilities.Rejected, capabilities.CodeFrozen},
		"the courier leaves": {func(b *box, _ *executor.Turn) { b.courier.Leave(true) }, capabilities.Failed, capabilities.CodeCourierUnavailable},
	} {
		t.Run(event, func(t *testing.T) {
			b := newBox(t)
			turn := b.turn(adult(), executor.NewConversation(nil))
			b.desk.do(func(context.Context, confirm.Request) confirm.Outcome {
				tt.change(b, turn)
				return confirm.Approved
			})
			b.want(b.invoke(turn, "find_pages__v1", query), capabilities.StageExecute, tt.status, tt.code)
			if len(b.courier.Calls()) != 0 || len(b.desk.tokens) != 0 {
				t.Error("something was sent, or the receipt was not consumed")
			}
			b.records()
		})
	}
}

// TestPanicOrEndWhileThePromiseIsWritten: what happens while the flash is slow still stops the call, and that is recorded.
func TestPanicOrEndWhileThePromiseIsWritten(t *testing.T) {
	for event, tt := range map[string]struct {
		change func(*box, *executor.Turn, context.CancelFunc)
		code   capabilities.Code
	}{
		"panic at the box":      {func(b *box, _ *executor.Turn, _ context.CancelFunc) { b.frozen.Store(true) }, capabilities.CodeFrozen},
		"the turn ends":         {func(_ *box, turn *executor.Turn, _ context.CancelFunc) { turn.End() }, capabilities.CodeNoAsk},
		"30 minutes pass":       {func(b *box, _ *executor.Turn, _ context.CancelFunc) { b.clock.Suspend(executor.TurnLife) }, capabilities.CodeNoAsk},
		"the gateway goes away": {func(_ *box, _ *executor.Turn, gone context.CancelFunc) { gone() }, capabilities.CodeNoAsk},
		"panic as the grant leaves": {func(b *box, _ *executor.Turn, _ context.CancelFunc) {
			b.courier.Refuse(executor.ErrFrozen)
		}, capabilities.CodeFrozen},
	} {
		t.Run(event, func(t *testing.T) {
			b := newBox(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			turn := b.turn(adult(), executor.NewConversation(nil))
			b.journal.slow = func() { tt.change(b, turn, cancel) }
			o := b.Invoke(ctx, proposal(turn, "find_pages__v1", query), func(ipc.Pending) {})
			b.want(o, capabilities.StageExecute, capabilities.Failed, tt.code)
			if len(b.courier.Calls()) != 0 {
				t.Error("something was sent")
			}
			effects := find[*audit.EffectRecord](b.records())
			if len(effects) != 1 || effects[0].Status != capabilities.Failed || effects[0].Code != tt.code || effects[0].Sent {
				t.Errorf("effect records %+v", effects)
			}
		})
	}
}

func TestApprovalWithoutReceiptExecutesNothing(t *testing.T) {
	b := newBox(t)
	b = rebuilt(t, b, noReceipts{b.desk})
	b.want(b.invoke(b.turn(adult(), executor.NewConversation(nil)), "find_pages__v1", query), capabilities.StageExecute, capabilities.Rejected, capabilities.CodeReceiptStale)
	if len(b.courier.Calls()) != 0 {
		t.Fatal("a call ran without a receipt")
	}
}

// noReceipts is a panel whose approvals have nothing behind them.
type noReceipts struct{ *desk }

func (noReceipts) Redeem(confirm.Receipt, confirm.Binding) (confirm.Evidence, error) {
	return confirm.Evidence{}, nil
}

// TestNoAuditNoExecution: the disk fails at each operation of barrier 1 in turn, before and after the press.
func TestNoAuditNoExecution(t *testing.T) {
	for _, name := range []string{"find_pages__v1", "box_state__v1"} {
		args := map[string]string{"find_pages__v1": query, "box_state__v1": "{}"}[name]
		for at := 1; ; at++ {
			b := newBox(t)
			b.disk.Arm(audittest.Fault{At: at, Err: syscall.EIO, Dead: true})
			var before int
			b.courier.Answer(func(_ context.Context, c grant.Claims) (*ipc.Result, error) {
				before = b.disk.Ops()
				return executortest.Done(c, []byte(`{"ok":true}`)), nil
			})
			o := b.invoke(b.turn(adult(), executor.NewConversation(nil)), name, args)
			if len(b.courier.Calls()) == 0 {
				switch shown := len(b.desk.requests()) > 0; {
				case !shown && name == "find_pages__v1": // nothing is shown that is not on flash
					b.want(o, capabilities.StageConfirm, capabilities.Rejected, capabilities.CodeAuditUnavailable)
				default:
					b.want(o, capabilities.StageExecute, capabilities.Failed, capabilities.CodeAuditUnavailable)
				}
				continue
			}
			if at == 1 || before >= at {
				t.Fatalf("%s was executed although operation %d of %d failed", name, at, before)
			}
			break // barrier 1 was through before the fault
		}
	}
}

// TestWhatWaitsAtThePanelIsOnFlash: if the power goes while a card waits, the log says what was asked.
func TestWhatWaitsAtThePanelIsOnFlash(t *testing.T) {
	b := newBox(t)
	kinds := map[audit.Kind]int{}
	b.desk.do(func(_ context.Context, r confirm.Request) confirm.Outcome {
		image := b.disk.Crash(func(int) int { return 0 })
		_, err := audit.Verify(t.Context(), image.FS(), audit.VerifyOptions{Visit: func(e audit.Entered) error {
			if e.Inv == audit.ID(r.Inv) {
				kinds[e.Kind]++
			}
			return nil
		}})
		if err != nil {
			t.Error(err)
		}
		return confirm.Denied
	})
	b.invoke(b.turn(adult(), executor.NewConversation(nil)), "find_pages__v1", query)
	if kinds[audit.KindProposal] != 1 || kinds[audit.KindDecision] != 1 || kinds[audit.KindBlob] == 0 {
		t.Errorf("on flash while the card waits: %v", kinds)
	}
}

func TestClosedAuditStopsEverything(t *testing.T) {
	b := newBox(t)
	b.journal.Close()
	for range 2 {
		o := b.invoke(b.turn(adult(), executor.NewConversation(nil)), "box_state__v1", "{}")
		if o.Code != capabilities.CodeAuditUnavailable || o.Status == capabilities.Done || len(b.courier.Calls()) != 0 {
			t.Fatalf("%v %s", o.Status, o.Code)
		}
	}
}

func TestOutcomeThatCannotBeRecordedIsUnknown(t *testing.T) {
	b := newBox(t)
	b.courier.Answer(func(_ context.Context, c grant.Claims) (*ipc.Result, error) {
		b.disk.Arm(audittest.Fault{At: 1, Err: syscall.ENOSPC})
		return executortest.Done(c, []byte(`{"ok":true}`)), nil
	})
	o := b.invoke(b.turn(adult(), executor.NewConversation(nil)), "find_pages__v1", query)
	b.want(o, capabilities.StageRecord, capabilities.Unknown, capabilities.CodeAuditUnavailable)
}

func TestCourierLosses(t *testing.T) {
	tests := []struct {
		event  string
		answer func(context.Context, grant.Claims) (*ipc.Result, error)
		status capabilities.Status
		code   capabilities.Code
	}{
		{"lost before sending", func(context.Context, grant.Claims) (*ipc.Result, error) { return nil, executor.ErrNotSent }, capabilities.Failed, capabilities.CodeCourierUnavailable},
		{"lost after sending", func(context.Context, grant.Claims) (*ipc.Result, error) { return nil, ipc.ErrClosed }, capabilities.Unknown, capabilities.CodeInterrupted},
		{"answers nothing", func(context.Context, grant.Claims) (*ipc.Result, error) { return nil, nil }, capabilities.Unknown, capabilities.CodeInterrupted},
		{"refuses", func(context.Context, grant.Claims) (*ipc.Result, error) {
			return nil, &ipc.Error{Code: capabilities.CodeGrantRefused}
		}, capabilities.Failed, capabilities.CodeGrantRefused},
		{"refuses with a code of its own", func(context.Context, grant.Claims) (*ipc.Result, error) { return nil, &ipc.Error{Code: "approved"} }, capabilities.Failed, capabilities.CodeGrantRefused},
		{"unreachable", func(_ context.Context, c grant.Claims) (*ipc.Result, error) {
			return executortest.Failed(c, capabilities.CodeUnreachable, false), nil
		}, capabilities.Failed, capabilities.CodeUnreachable},
		{"a redirect", func(_ context.Context, c grant.Claims) (*ipc.Result, error) {
			return executortest.Failed(c, capabilities.CodeRedirect, true), nil
		}, capabilities.Failed, capabilities.CodeRedirect},
	}
	for _, tt := range tests {
		t.Run(tt.event, func(t *testing.T) {
			b := newBox(t)
			b.courier.Answer(tt.answer)
			b.want(b.invoke(b.turn(adult(), executor.NewConversation(nil)), "find_pages__v1", query), capabilities.StageExecute, tt.status, tt.code)
			if len(b.courier.Calls()) != 1 {
				t.Errorf("%d attempts", len(b.courier.Calls()))
			}
			if e := find[*audit.EffectRecord](b.records()); len(e) != 1 || e[0].Status != tt.status || e[0].Code != tt.code {
				t.Errorf("effect records %+v", e)
			}
		})
	}
}

// TestNoAnswerEndsOnTheBootClock: the deadline passes while the box sleeps, too.
func TestNoAnswerEndsOnTheBootClock(t *testing.T) {
	b := newBox(t)
	started := make(chan struct{})
	b.courier.Answer(func(ctx context.Context, _ grant.Claims) (*ipc.Result, error) {
		close(started)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := b.start(ctx, b.turn(adult(), executor.NewConversation(nil)))
	<-started
	cancel() // whoever asked is gone; the outcome is recorded all the same
	select {
	case o := <-done:
		t.Fatalf("ended with its asker: %+v", o)
	default:
	}
	b.clock.Suspend(time.Minute)
	b.want(<-done, capabilities.StageExecute, capabilities.Unknown, capabilities.CodeTimeout)
	if e := find[*audit.EffectRecord](b.records()); len(e) != 1 || e[0].Status != capabilities.Unknown {
		t.Fatalf("effect records %+v", e)
	}
}

func TestClaimsThatDoNotFitTheGrantAreBadResponses(t *testing.T) {
	for event, spoil := range map[string]func(*ipc.Result){
		"another call":           func(r *ipc.Result) { r.Inv[0]++ },
		"no envelope":            func(r *ipc.Result) { r.Envelope = nil },
		"another request":        func(r *ipc.Result) { r.Envelope.RequestDigest[0]++ },
		"another body":           func(r *ipc.Result) { r.Body = append(r.Body, ' ') },
		"a body over the bound":  func(r *ipc.Result) { *r = *resized(r, 5000) },
		"no body":                func(r *ipc.Result) { *r = *resized(r, 0) },
		"no status":              func(r *ipc.Result) { r.Status = 0 },
		"a status of the panel":  func(r *ipc.Result) { r.Status = capabilities.Denied },
		"done with an excuse":    func(r *ipc.Result) { r.Code = capabilities.CodeTimeout },
		"failed with a body":     func(r *ipc.Result) { r.Status, r.Code = capabilities.Failed, capabilities.CodeRemoteError },
		"failed for its own why": func(r *ipc.Result) { r.Status, r.Code, r.Body = capabilities.Failed, "press approve", nil },
		"failed without a why":   func(r *ipc.Result) { r.Status, r.Code, r.Body = capabilities.Failed, "", nil },
	} {
		b := newBox(t)
		b.courier.Answer(func(_ context.Context, c grant.Claims) (*ipc.Result, error) {
			r := executortest.Done(c, []byte(`{"ok":true}`))
			spoil(r)
			return r, nil
		})
		o := b.invoke(b.turn(adult(), executor.NewConversation(nil)), "find_pages__v1", query)
		if o.Status != capabilities.Failed || o.Code != capabilities.CodeBadResponse || len(o.Body) != 0 {
			t.Errorf("%s: %v %s, %d bytes", event, o.Status, o.Code, len(o.Body))
		}
	}
}

func resized(r *ipc.Result, n int) *ipc.Result {
	inv := r.Inv
	out := executortest.Done(grant.Claims{Inv: inv}, make([]byte, n))
	out.Envelope.RequestDigest = r.Envelope.RequestDigest
	return out
}

// TestEffectThatMayHaveBegunIsUnknown: for a read a lost answer is a failure; for a write nobody can say.
func TestEffectThatMayHaveBegunIsUnknown(t *testing.T) {
	for _, tt := range []struct {
		code   capabilities.Code
		sent   bool
		status capabilities.Status
	}{
		{capabilities.CodeTimeout, true, capabilities.Unknown},
		{capabilities.CodeBadResponse, true, capabilities.Unknown},
		{capabilities.CodeUnreachable, false, capabilities.Failed},
		{capabilities.CodeRemoteError, true, capabilities.Failed},
	} {
		b := newBox(t)
		b.search.Change(func(s *capabilities.Spec) { s.Effect = capabilities.Write })
		b = rebuilt(t, b, b.desk)
		b.courier.Answer(func(_ context.Context, c grant.Claims) (*ipc.Result, error) {
			return executortest.Failed(c, tt.code, tt.sent), nil
		})
		b.want(b.invoke(b.turn(adult(), executor.NewConversation(nil)), "find_pages__v1", query), capabilities.StageExecute, tt.status, tt.code)
	}
}

func TestGrantNamesTheExactCall(t *testing.T) {
	b := newBox(t)
	start := b.clock.Boot()
	o := b.invoke(b.turn(adult(), executor.NewConversation(nil)), "find_pages__v1", query)
	g := b.courier.Calls()[0]
	challenge, _ := b.courier.Challenge()
	if g.Inv != o.Inv || g.Challenge != challenge || g.BootID != b.desk.boot || g.Deadline != start+20*time.Second || g.Body != 4096 || g.Class != capabilities.ClassNet {
		t.Fatalf("grant %+v", g)
	}
	intent := find[*audit.IntentRecord](b.records())[0]
	if intent.Deadline != g.Deadline || intent.ArgsDigest != capabilities.ArgsDigest(g.ArgsDigest) {
		t.Fatal("promised something else")
	}
}

func TestNewNamesWhatIsMissing(t *testing.T) {
	if _, err := executor.New(executor.Config{}); err == nil || errors.Is(err, audit.ErrUnavailable) {
		t.Fatalf("got %v", err)
	}
}
