package audit_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/device"
)

func open(t *testing.T, clk *clocktest.Clock, disk *audittest.Disk) *audit.Log {
	t.Helper()
	l, err := audit.Open(t.Context(), audittest.Options(clk, disk))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func verify(t *testing.T, disk *audittest.Disk, o audit.VerifyOptions) audit.Report {
	t.Helper()
	r, err := audit.Verify(t.Context(), disk.FS(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func intact(t *testing.T, disk *audittest.Disk) audit.Report {
	t.Helper()
	r := verify(t, disk, audit.VerifyOptions{AllSeals: true})
	if r.Status != audit.Intact {
		t.Fatalf("the log is %s: %s", r.Status, r.Problem)
	}
	return r
}

func records(t *testing.T, disk *audittest.Disk) []audit.Entered {
	t.Helper()
	var all []audit.Entered
	verify(t, disk, audit.VerifyOptions{Visit: func(e audit.Entered) error { all = append(all, e); return nil }})
	return all
}

func intend(t *testing.T, l *audit.Log, c audittest.Call) audit.Intent {
	t.Helper()
	i, err := l.Intend(t.Context(), c.Entries(), c.Intent, c.Inv)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestACallIsPromisedBeforeAndSettledAfter(t *testing.T) {
	clk := clocktest.New()
	clk.SetWall(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), clock.Synced)
	disk := audittest.NewDisk()
	l := open(t, clk, disk)
	call := audittest.Required(clk, 1)
	i := intend(t, l, call)
	if !i.Valid() || i.Inv() != call.Inv {
		t.Errorf("intent %v is not of this call", i)
	}
	promised := intact(t, disk)
	if d := cmp.Diff([]audit.OpenIntent{{Intent: i.Seq(), Inv: call.Inv}}, promised.Open); d != "" {
		t.Error("the promise is not on flash before the effect: ", d)
	}
	clk.Advance(time.Second)
	want := audit.EffectRecord{Status: capabilities.Done, Duration: time.Second, ResultDigest: audit.Digest{1}, GrantDigest: audit.Digest{2}, Attempts: 1, Sent: true}
	seq, err := l.Effect(t.Context(), i, want)
	if err != nil {
		t.Fatal(err)
	}
	settled := intact(t, disk)
	if len(settled.Open) != 0 || settled.Kinds[audit.KindEffect] != 1 {
		t.Errorf("after the effect: %d open, %d effects", len(settled.Open), settled.Kinds[audit.KindEffect])
	}
	for _, e := range records(t, disk) {
		if e.Seq == seq {
			want.Intent = i.Seq()
			if d := cmp.Diff(&want, e.Payload); d != "" {
				t.Error(d)
			}
			if e.Clock != clock.Synced || e.Wall == 0 {
				t.Errorf("clock %v, wall %d", e.Clock, e.Wall)
			}
		}
		if p, ok := e.Payload.(*audit.IntentRecord); ok && (p.Proposal == 0 || p.Decision != p.Proposal+1 || p.Approval != p.Decision+1 || p.ReceiptDigest == audit.Digest{}) {
			t.Errorf("the intent does not refer to its records: %+v", p)
		}
	}
	if _, err := l.Effect(t.Context(), i, want); !errors.Is(err, audit.ErrSettled) {
		t.Errorf("settled twice: %v", err)
	}
}

func TestTheZeroIntentSettlesNothing(t *testing.T) {
	l := open(t, clocktest.New(), audittest.NewDisk())
	if (audit.Intent{}).Valid() {
		t.Error("the zero intent is valid")
	}
	if _, err := l.Effect(t.Context(), audit.Intent{}, audit.EffectRecord{Status: capabilities.Done}); !errors.Is(err, audit.ErrSettled) {
		t.Errorf("got %v", err)
	}
	other := open(t, clocktest.New(), audittest.NewDisk())
	i := intend(t, other, audittest.Automatic(1))
	if _, err := l.Effect(t.Context(), i, audit.EffectRecord{Status: capabilities.Done}); !errors.Is(err, audit.ErrSettled) {
		t.Errorf("another log's intent: %v", err)
	}
}

// What no sound box could write, the log refuses to write, and goes on as if it had not been asked.
func TestAnUnsoundCallIsNotPromised(t *testing.T) {
	press := func(change func(*audittest.Call)) func(*clocktest.Clock) audittest.Call {
		return func(clk *clocktest.Clock) audittest.Call {
			c := audittest.Required(clk, 1)
			change(&c)
			return c
		}
	}
	resign := func(change func(*audittest.Call)) func(*clocktest.Clock) audittest.Call {
		return press(func(c *audittest.Call) {
			change(c)
			c.Approval.Receipt = audittest.Sign(audittest.ReceiptKey(), c.Claims)
		})
	}
	for name, make := range map[string]func(*clocktest.Clock) audittest.Call{
		"no proposal": press(func(c *audittest.Call) { c.Proposal.Capability = "" }),
		"policy refused": press(func(c *audittest.Call) {
			c.Decision = audit.Decision{Stage: capabilities.StagePolicy, Verdict: audit.Refuse, Status: capabilities.Rejected, Code: capabilities.CodeFrozen}
		}),
		"only validate passed": press(func(c *audittest.Call) {
			c.Decision.Stage, c.Decision.Verdict = capabilities.StageValidate, audit.Allow
		}),
		"only validate passed, and no press": press(func(c *audittest.Call) {
			c.Decision.Stage, c.Decision.Verdict, c.Approval = capabilities.StageValidate, audit.Allow, audit.Approval{}
		}),
		"approval names another request":       press(func(c *audittest.Call) { c.Approval.RequestDigest[0]++ }),
		"approval names another screen":        press(func(c *audittest.Call) { c.Approval.ScreenDigest[0]++ }),
		"approval names other arguments":       press(func(c *audittest.Call) { c.Approval.ArgsDigest[0]++ }),
		"no press":                             press(func(c *audittest.Call) { c.Approval = audit.Approval{} }),
		"denied":                               press(func(c *audittest.Call) { c.Approval = audit.Approval{Outcome: audit.Denied} }),
		"approved without a receipt":           press(func(c *audittest.Call) { c.Approval.Receipt = nil }),
		"approved by the gateway":              press(func(c *audittest.Call) { c.Approval.By = audit.ByGateway }),
		"approved by nobody":                   press(func(c *audittest.Call) { c.Approval.By = 0 }),
		"receipt signed by another key":        press(func(c *audittest.Call) { c.Approval.Receipt = audittest.Sign(audittest.GrantKey(), c.Claims) }),
		"receipt with a flipped bit":           press(func(c *audittest.Call) { c.Approval.Receipt[len(c.Approval.Receipt)-1] ^= 1 }),
		"a press that policy did not ask for":  press(func(c *audittest.Call) { c.Decision.Verdict = audit.Allow }),
		"intent for other arguments":           press(func(c *audittest.Call) { c.Intent.ArgsDigest[0]++ }),
		"intent for another request":           press(func(c *audittest.Call) { c.Intent.RequestDigest[0]++ }),
		"receipt for another invocation":       resign(func(c *audittest.Call) { c.Claims.Inv[3]++ }),
		"receipt for other arguments":          resign(func(c *audittest.Call) { c.Claims.ArgsDigest[0]++ }),
		"receipt for another screen":           resign(func(c *audittest.Call) { c.Claims.ScreenDigest[0]++ }),
		"receipt for another request":          resign(func(c *audittest.Call) { c.Claims.RequestDigest[0]++ }),
		"receipt for another capability":       resign(func(c *audittest.Call) { c.Claims.Capability = "web.fetch" }),
		"receipt for another version":          resign(func(c *audittest.Call) { c.Claims.Version++ }),
		"receipt for another adapter revision": resign(func(c *audittest.Call) { c.Claims.Revision = "mediawiki/2" }),
		"receipt for another schema":           resign(func(c *audittest.Call) { c.Claims.SchemaDigest[0]++ }),
		"receipt for another phone":            resign(func(c *audittest.Call) { c.Claims.Slot++ }),
		"receipt of another boot":              resign(func(c *audittest.Call) { c.Claims.BootID[0]++ }),
		"receipt with other times":             resign(func(c *audittest.Call) { c.Claims.Shown-- }),
		"pressed after the deadline": resign(func(c *audittest.Call) {
			c.Claims.Expires = c.Claims.Completed - 1
			c.Approval.Expires = c.Claims.Expires
		}),
	} {
		t.Run(name, func(t *testing.T) {
			clk, disk := clocktest.New(), audittest.NewDisk()
			l := open(t, clk, disk)
			before := l.Head()
			c := make(clk)
			i, err := l.Intend(t.Context(), c.Entries(), c.Intent, c.Inv)
			if !errors.Is(err, audit.ErrMalformed) || i.Valid() {
				t.Fatalf("got %v, intent valid %v", err, i.Valid())
			}
			if d := cmp.Diff(before, l.Head()); d != "" {
				t.Error("something was written: ", d)
			}
			// The same invocation is still free, since nothing was written of it.
			intend(t, l, audittest.Required(clk, 1))
			intact(t, disk)
		})
	}
}

func TestAnInvocationIsUsedOnce(t *testing.T) {
	clk, disk := clocktest.New(), audittest.NewDisk()
	l := open(t, clk, disk)
	c := audittest.Required(clk, 1)
	i := intend(t, l, c)
	if _, err := l.Intend(t.Context(), c.Entries(), c.Intent, c.Inv); !errors.Is(err, audit.ErrMalformed) {
		t.Errorf("while under way: %v", err)
	}
	if _, err := l.Intend(t.Context(), nil, c.Intent, c.Inv); !errors.Is(err, audit.ErrMalformed) {
		t.Errorf("a second intent on one press: %v", err)
	}
	if _, err := l.Effect(t.Context(), i, audit.EffectRecord{Status: capabilities.Failed}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Intend(t.Context(), c.Entries(), c.Intent, c.Inv); !errors.Is(err, audit.ErrMalformed) {
		t.Errorf("after its end: %v", err)
	}
}

// A36: every way in which a proposal can end is in the one log, and reads back as it was written.
func TestEveryOutcomeIsInTheOneLog(t *testing.T) {
	clk, disk := clocktest.New(), audittest.NewDisk()
	l := open(t, clk, disk)
	refusal := func(n byte, stage capabilities.Stage, status capabilities.Status, code capabilities.Code) []audit.Entry {
		c := audittest.Required(clk, n)
		es := []audit.Entry{{Inv: c.Inv, Payload: c.Proposal}}
		if stage > capabilities.StagePolicy {
			es = append(es, audit.Entry{Inv: c.Inv, Payload: c.Decision})
		}
		if stage == capabilities.StageConfirm {
			es = append(es, audit.Entry{Inv: c.Inv, Payload: audit.Approval{Outcome: audit.ApprovalOutcome(status - 3)}})
		}
		return append(es, audit.Entry{Inv: c.Inv, Payload: audit.Decision{Stage: stage, Verdict: audit.Refuse, Status: status, Code: code}})
	}
	ends := []struct {
		stage  capabilities.Stage
		status capabilities.Status
		code   capabilities.Code
	}{
		{capabilities.StageResolve, capabilities.Rejected, capabilities.CodeUnknownCapability},
		{capabilities.StageValidate, capabilities.Rejected, capabilities.CodeUnknownArgument},
		{capabilities.StagePolicy, capabilities.Rejected, capabilities.CodeNotAllowed},
		{capabilities.StageConfirm, capabilities.Denied, ""},
		{capabilities.StageConfirm, capabilities.Expired, ""},
		{capabilities.StageConfirm, capabilities.ExpiredUnseen, ""},
		{capabilities.StageConfirm, capabilities.Withdrawn, ""},
		{capabilities.StageExecute, capabilities.Rejected, capabilities.CodeReceiptStale},
	}
	for n, e := range ends {
		if err := l.Append(t.Context(), refusal(byte(n), e.stage, e.status, e.code)...); err != nil {
			t.Fatalf("%s %s: %v", e.stage, e.status, err)
		}
	}
	for _, c := range []audit.Claim{
		{From: audit.ByGateway, Class: audit.ClaimParseFailure, Code: capabilities.CodeMalformed, Text: []byte("\x1b[31mno brace"), RawDigest: audit.Digest{1}},
		{From: audit.ByGateway, Class: audit.ClaimBudget, Code: capabilities.CodeBudget},
	} {
		if err := l.Append(t.Context(), audit.Entry{Payload: c}); err != nil {
			t.Fatal(err)
		}
	}
	for n, s := range []capabilities.Status{capabilities.Done, capabilities.Failed, capabilities.Unknown} {
		if _, err := l.Effect(t.Context(), intend(t, l, audittest.Automatic(byte(100+n))), audit.EffectRecord{Status: s}); err != nil {
			t.Fatal(err)
		}
	}
	intact(t, disk)
	var got []string
	for _, e := range records(t, disk) {
		switch p := e.Payload.(type) {
		case *audit.Decision:
			if p.Verdict == audit.Refuse {
				got = append(got, p.Stage.String()+" "+p.Status.String()+" "+string(p.Code))
			}
		case *audit.Claim:
			got = append(got, p.Class.String()+" "+string(p.Code))
		case *audit.EffectRecord:
			got = append(got, p.Status.String())
		}
	}
	want := []string{
		"resolve rejected unknown_capability", "validate rejected unknown_argument", "policy rejected not_allowed", "confirm denied ",
		"confirm expired ", "confirm expired_unseen ", "confirm withdrawn ", "execute rejected receipt_stale",
		"parse failure malformed_call", "budget budget_exhausted", "done", "failed", "unknown",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestAppendedRecordsAreSealedWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk, disk := clocktest.New(), audittest.NewDisk()
		l := open(t, clk, disk)
		before := intact(t, disk).Records
		if err := l.Append(t.Context(), audit.Entry{Payload: audit.Freeze{On: true, By: audit.ByBox}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if r := intact(t, disk); r.Records != before || l.Head().Sealed {
			t.Errorf("%d records after %d, sealed %v: nothing waits for an appended record", r.Records, before, l.Head().Sealed)
		}
		clk.Advance(time.Second)
		synctest.Wait()
		if r := intact(t, disk); r.Records != before+2 || !l.Head().Sealed {
			t.Errorf("a second later: %d records after %d, sealed %v", r.Records, before, l.Head().Sealed)
		}
		if err := l.Append(t.Context(), audit.Entry{Payload: audit.Freeze{By: audit.ByBox}}); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if r := intact(t, disk); r.Records != before+4 {
			t.Errorf("closing lost what was appended: %d records after %d", r.Records, before)
		}
	})
}

func TestTheLogGoesOnInTheNextSegment(t *testing.T) {
	clk, disk := clocktest.New(), audittest.NewDisk()
	l := open(t, clk, disk)
	open1 := intend(t, l, audittest.Automatic(1))
	blob := make([]byte, audit.MaxBlob)
	for i := range 40 {
		blob[0] = byte(i)
		e, _ := audit.BlobOf(audit.BlobRaw, [16]byte{}, blob)
		if _, err := l.Barrier(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		if err := l.Append(t.Context(), audit.Entry{Payload: audit.Suppressed{Of: audit.KindClaim, Count: uint64(i) + 1}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Effect(t.Context(), open1, audit.EffectRecord{Status: capabilities.Done}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r := intact(t, disk)
	if r.Segments < 3 || r.Kinds[audit.KindBlob] != 41 || r.Kinds[audit.KindSegment] != uint64(r.Segments-1) {
		t.Errorf("%d segments, %d blobs, %d segment records", r.Segments, r.Kinds[audit.KindBlob], r.Kinds[audit.KindSegment])
	}
	open(t, clk, disk)
	if r := intact(t, disk); r.Boots != 2 {
		t.Errorf("%d boots", r.Boots)
	}
}

func TestMoreThanASegmentHoldsIsRefused(t *testing.T) {
	disk := audittest.NewDisk()
	l := open(t, clocktest.New(), disk)
	var es []audit.Entry
	for i := range 17 {
		e, _ := audit.BlobOf(audit.BlobRaw, [16]byte{}, append(make([]byte, audit.MaxBlob-1), byte(i)))
		es = append(es, e)
	}
	if _, err := l.Barrier(t.Context(), es...); !errors.Is(err, audit.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	if _, err := l.Barrier(t.Context(), es[:8]...); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	intact(t, disk)
}

func TestTheClockStepIsNoted(t *testing.T) {
	clk, disk := clocktest.New(), audittest.NewDisk()
	l := open(t, clk, disk)
	freeze := func() {
		t.Helper()
		if _, err := l.Barrier(t.Context(), audit.Entry{Payload: audit.Freeze{On: true, By: audit.ByBox}}); err != nil {
			t.Fatal(err)
		}
	}
	freeze()
	day := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	clk.SetWall(day, clock.Synced)
	freeze()
	clk.Advance(time.Hour)
	freeze()
	clk.SetWall(day.Add(-24*time.Hour), clock.Synced)
	freeze()
	intact(t, disk)
	var got []audit.ClockStep
	for _, e := range records(t, disk) {
		if p, ok := e.Payload.(*audit.ClockStep); ok {
			got = append(got, *p)
		}
	}
	want := []audit.ClockStep{
		{From: 3600_000, To: day.UnixMilli(), ToState: clock.Synced, Source: "system clock"},
		{From: day.Add(time.Hour).UnixMilli(), To: day.Add(-24 * time.Hour).UnixMilli(), FromState: clock.Synced, ToState: clock.Synced, Source: "system clock"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestASecondOpenerIsToldSo(t *testing.T) {
	_, dir := audittest.New(t, clocktest.New())
	o := audittest.Options(clocktest.New(), nil)
	o.Dir = dir
	if _, err := audit.Open(t.Context(), o); !errors.Is(err, audit.ErrLocked) {
		t.Errorf("got %v", err)
	}
}

func TestNobodyElseCanReadTheLogsFiles(t *testing.T) {
	l, dir := audittest.New(t, clocktest.New())
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) < 4 {
		t.Fatalf("files %v, %v", files, err)
	}
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", filepath.Base(f), info.Mode())
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "root.pub"))
	if err != nil || string(b) != l.Root().String()+"\n" {
		t.Errorf("root.pub is %q, %v", b, err)
	}
}

func TestACallThatGaveUpBeforehandWritesNothing(t *testing.T) {
	disk := audittest.NewDisk()
	l := open(t, clocktest.New(), disk)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	before := l.Head()
	c := audittest.Automatic(1)
	if _, err := l.Intend(ctx, c.Entries(), c.Intent, c.Inv); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if d := cmp.Diff(before, l.Head()); d != "" {
		t.Error(d)
	}
}

func TestAnOutcomeIsRecordedThoughNobodyWaits(t *testing.T) {
	disk := audittest.NewDisk()
	l := open(t, clocktest.New(), disk)
	i := intend(t, l, audittest.Automatic(1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Effect(ctx, i, audit.EffectRecord{Status: capabilities.Done}); err != nil {
		t.Error(err)
	}
	if r := intact(t, disk); len(r.Open) != 0 {
		t.Errorf("the outcome was lost: %v", r.Open)
	}
}

func TestNothingIsWrittenAfterClose(t *testing.T) {
	l := open(t, clocktest.New(), audittest.NewDisk())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(t.Context(), audit.Entry{Payload: audit.Freeze{On: true, By: audit.ByBox}}); !errors.Is(err, audit.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
}

func TestWhatOnlyTheLogWritesIsRefused(t *testing.T) {
	l := open(t, clocktest.New(), audittest.NewDisk())
	for _, p := range []audit.Payload{
		audit.Genesis{Version: 1},
		audit.Segment{},
		audit.Boot{},
		audit.Seal{},
		audit.Epoch{N: 9, Reason: audit.EpochDay},
		audit.IntentRecord{},
		audit.EffectRecord{Status: capabilities.Done},
		nil,
	} {
		if _, err := l.Barrier(t.Context(), audit.Entry{Payload: p}); !errors.Is(err, audit.ErrMalformed) {
			t.Errorf("%T: %v", p, err)
		}
	}
}

func TestWhatAScreenMightActOnIsRefused(t *testing.T) {
	l := open(t, clocktest.New(), audittest.NewDisk())
	for name, p := range map[string]audit.Payload{
		"escape":             audit.Fault{Class: audit.FaultCorrupt, Where: "\x1b[2J"},
		"newline":            audit.Fault{Class: audit.FaultCorrupt, Where: "a\nb"},
		"bidi override":      audit.Freeze{By: audit.ByBox, Reason: "a\u202eb"},
		"zero width":         audit.Freeze{By: audit.ByBox, Reason: "a\u200bb"},
		"invalid utf-8":      audit.Freeze{By: audit.ByBox, Reason: "a\xff"},
		"too long":           audit.Freeze{By: audit.ByBox, Reason: string(make([]byte, audit.MaxText+1))},
		"too much of a name": audit.Claim{From: audit.ByGateway, Class: audit.ClaimBudget, Name: make([]byte, audit.MaxName+1)},
		"too many presses":   audit.Admin{Action: audit.AdminPair, Outcome: audit.Approved, Presses: make([]device.Event, audit.MaxPresses+1)},
		"a time before time": audit.Feed{ID: "pihole", Status: capabilities.Done, Duration: -1},
		"blob with another digest": audit.Blob{
			Purpose: audit.BlobRaw, Digest: audit.Digest{1}, Bytes: []byte("x"),
		},
	} {
		if _, err := l.Barrier(t.Context(), audit.Entry{Payload: p}); !errors.Is(err, audit.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
