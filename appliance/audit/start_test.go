package audit_test

import (
	"crypto/ed25519"
	"testing"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/capabilities"
)

// Who has the seal key of the day cannot begin a run that never was, take over the receipts' key on the way, or have what
// ended begin again.
func TestARunBeginsOnceAndWithItsKeys(t *testing.T) {
	public := func(k ed25519.PrivateKey) audit.Digest { return audit.Digest(k.Public().(ed25519.PublicKey)) }
	epoch := func(f *forger, reason audit.EpochReason, receiptKey audit.Digest) {
		f.add([16]byte{}, audit.Epoch{
			N: f.epoch + 1, SealKey: public(f.key), ReceiptKey: receiptKey, GrantKey: public(audittest.GrantKey()), Reason: reason,
		})
		f.seal()
		f.epoch++
	}
	panel := public(audittest.ReceiptKey())
	thief := public(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	call := func(f *forger) {
		c := audittest.Automatic(1)
		at := f.next + audit.Seq(len(c.Blobs))
		for _, e := range c.Entries() {
			f.add(e.Inv, e.Payload)
		}
		i := c.Intent
		i.Proposal, i.Decision = at, at+1
		intent := f.next
		f.add(c.Inv, i)
		f.seal()
		f.add(c.Inv, audit.EffectRecord{Intent: intent, Status: capabilities.Done})
		f.seal()
	}
	for name, c := range map[string]struct {
		write func(*forger)
		want  audit.Status
	}{
		"daily key":                    {func(f *forger) { epoch(f, audit.EpochDay, panel) }, audit.Intact},
		"another start":                {func(f *forger) { f.add([16]byte{}, audit.Boot{}); epoch(f, audit.EpochStart, thief) }, audit.Intact},
		"start without a key":          {func(f *forger) { f.add([16]byte{}, audit.Boot{}); f.seal() }, audit.Altered},
		"key of a start without one":   {func(f *forger) { epoch(f, audit.EpochStart, panel) }, audit.Altered},
		"start that says day":          {func(f *forger) { f.add([16]byte{}, audit.Boot{}); epoch(f, audit.EpochDay, panel) }, audit.Altered},
		"another panel since midday":   {func(f *forger) { epoch(f, audit.EpochDay, thief) }, audit.Altered},
		"another panel in a segment":   {func(f *forger) { epoch(f, audit.EpochSegment, thief) }, audit.Altered},
		"a call":                       {call, audit.Intact},
		"the call again after a start": {func(f *forger) { call(f); f.add([16]byte{}, audit.Boot{}); epoch(f, audit.EpochStart, panel); call(f) }, audit.Altered},
		"pruning what is not there": {func(f *forger) {
			approved := f.next
			f.add([16]byte{}, audit.Admin{Action: audit.AdminPrune, Outcome: audit.Approved, By: audit.ByBox})
			f.add([16]byte{}, audit.Prune{LastSegment: 1000, Last: 1, Admin: approved, By: audit.ByBox})
			f.seal()
		}, audit.Altered},
	} {
		f := newForger(t)
		c.write(f)
		if r := judge(t, segmentFS(f.segment()), audit.VerifyOptions{AllSeals: true}); r.Status != c.want {
			t.Errorf("%s: %s, %v", name, r.Status, r.Problem)
		}
	}
}

// An invocation that ended stays ended when the guard starts anew in the same boot of the kernel: its receipt would still fit.
func TestAnEndedCallStaysEndedOverAStart(t *testing.T) {
	clk, disk := clocktest.New(), audittest.NewDisk()
	l := open(t, clk, disk)
	c := audittest.Required(clk, 1)
	if _, err := l.Effect(t.Context(), intend(t, l, c), audit.EffectRecord{Status: capabilities.Done}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = open(t, clk, disk)
	if _, err := l.Intend(t.Context(), c.Entries(), c.Intent, c.Inv); err == nil {
		t.Error("the same press allows the same call again")
	}
}
