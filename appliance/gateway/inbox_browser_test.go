package gateway_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
)

// W14: what nobody can speak for is told in plain words, and leaves when the person says so.
func pageInbox(t *testing.T, browser context.Context) {
	b, _ := startPage(t)
	cut, late := unknown(), unknown()
	late.Inv, late.Slot, late.Phone, late.Cut = capabilities.InvocationID{1}, 9, "<b>Desk</b>", false
	late.Sent = true
	late.Text, late.Why = "weather\ntomorrow <img src=x onerror=alert(1)>", capabilities.CodeTimeout
	b.guard.inbox = []ipc.Unknown{cut, late}
	b.guard.seal, b.guard.head = audittest.KeptSeal(1203, 1), 1203
	p := openTab(t, browser, "http://"+b.addr+"/")
	p.pair(b)
	p.says("#lost", "what happened?")
	p.says("#lost .count", "2")
	p.shot("inbox-badge")
	p.click("#lost")
	p.says("#about .lost", "The power went, or the box was restarted, while it was searching Wikipedia for")
	p.says("#about .said", "tall towers")
	p.says("#about .lost", "It may or may not have been sent, and the box cannot find out. It was not sent again.")
	p.says("#about .lost", "No answer came in time")
	p.says("#about .lost", "It was sent. What became of it the box does not know")
	if n := p.count("#about b, #about img"); n != 0 {
		t.Errorf("%d elements came from a request", n)
	}
	p.shot("inbox")
	p.dark(true)
	p.shot("inbox-dark")
	p.dark(false)
	p.click("#about .lost button")
	p.gone(`[data-invocation="` + invocation + `"]`)
	p.says("#lost .count", "1")
	p.click("#about .lost button")
	p.gone("#about .lost")
	p.says("#about-title", "The box’s record")
	if s := await[*ipc.Seen](t, b.guard, 2); s[0].Inv != cut.Inv || s[1].Inv != late.Inv {
		t.Errorf("seen were %v and %v", s[0].Inv, s[1].Inv)
	}
	p.says("#about .head-code", "3F7QK2XZ")
	p.says("#about", "1,204 records")
	p.shot("record")
	p.click("#about-close")
	p.gone("#lost:not([hidden])")

	// Somebody else's phone sees that it is gone, and that another has come.
	b.guard.setInbox(late)
	b.guard.notice(t, ipc.Notice{Class: ipc.NoticeInbox})
	p.see("#lost")
	b.guard.setInbox()
	b.guard.notice(t, ipc.Notice{Class: ipc.NoticeInbox})
	p.gone("#lost:not([hidden])")
}

// The sheet follows what the box records, and shows the key that the record began with.
func pageRecord(t *testing.T, browser context.Context) {
	b, _ := startPage(t)
	set := func(head uint64, root byte) {
		b.guard.mu.Lock()
		defer b.guard.mu.Unlock()
		b.guard.head, b.guard.seal, b.guard.root = head, audittest.KeptSeal(audit.Seq(head), 1), bytes.Repeat([]byte{root}, 32)
	}
	set(812, 0xab)
	p := openTab(t, browser, "http://"+b.addr+"/")
	p.pair(b)
	p.click("#record")
	p.says("#about", "813 records")
	if got := p.text("#root"); got != "abab abab abab abab" {
		t.Errorf("the key is shown as %q", got)
	}
	p.click("#about .root summary")
	p.says("#root-whole", strings.Repeat("ab", 32))
	p.shot("record-key")
	p.click("#about-close")
	set(820, 0xab)
	p.click("#record")
	p.says("#about", "821 records")
	p.click("#about-close")

	// A turn is enough to find out; another key makes a longer record another one.
	set(900, 0xcd)
	p.ask("health")
	p.says("#banner-shorter", "it began with another key")
}

// A record that became shorter, or another, is told plainly until the person has taken note; what the phone remembers of
// the old one is not lost.
func pageRollback(t *testing.T, browser context.Context) {
	b, _ := startPage(t)
	set := func(head uint64, seal byte) {
		b.guard.mu.Lock()
		defer b.guard.mu.Unlock()
		b.guard.head, b.guard.seal = head, audittest.KeptSeal(audit.Seq(head), seal)
	}
	line := func(head audit.Seq, seal byte) string {
		return base64.RawURLEncoding.EncodeToString(audittest.KeptSeal(head, seal)) + "\n"
	}
	// What would be saved as a file, and under which name.
	saved := func(p *tab) string {
		p.run(chromedp.Evaluate[chromedp.Void](`
			URL.createObjectURL = (blob) => { globalThis.saved = blob.text(); return 'blob:nothing'; };
			HTMLAnchorElement.prototype.click = function () { globalThis.savedAs = this.download; };`))
		p.click("#save-anchor")
		return read[string](p, `globalThis.saved`, chromedp.EvalAwaitPromise)
	}
	set(812, 1)
	p := openTab(t, browser, "http://"+b.addr+"/")
	p.pair(b)
	set(900, 2)
	p.run(chromedp.Reload())
	p.says("#state", "Connected")
	p.click("#record")
	p.says("#about", "901 records")
	if got := saved(p); got != line(900, 2)+line(812, 1) {
		t.Errorf("saved is %q", got)
	}
	if got := read[string](p, `globalThis.savedAs`); got != "assent-anchor-3F7QK2XZ.txt" {
		t.Errorf("saved as %q", got)
	}

	// A number beside a seal is the gateway's word. The seal's own is another, or it is none.
	for _, seal := range [][]byte{audittest.KeptSeal(901, 9), {0xd2, 1}} {
		b.guard.mu.Lock()
		b.guard.head, b.guard.seal = 5000, seal
		b.guard.mu.Unlock()
		p.run(chromedp.Reload())
		p.says("#state", "Connected")
		p.click("#record")
		p.says("#about", "not the seal of the record that it named")
		if got := saved(p); got != line(900, 2)+line(812, 1) {
			t.Errorf("saved is %q", got)
		}
	}

	set(500, 3)
	p.run(chromedp.Reload())
	p.says("#banner-shorter", "This box’s record is shorter than it was on")
	p.says("#banner-shorter", "901 records then, and 501 records now")
	p.shot("rollback")
	p.run(chromedp.Reload()) // to look away does not make it good
	p.says("#banner-shorter", "shorter")
	p.click("#record")
	p.says("#about .shorter", "Somebody may have taken out what it recorded")
	p.shot("rollback-sheet")
	if got := saved(p); got != line(900, 2)+line(500, 3)+line(812, 1) {
		t.Errorf("saved is %q", got)
	}
	p.click("#about .shorter button")
	p.gone("#banner-shorter")
	p.gone("#about .shorter")
	p.run(chromedp.Reload())
	p.says("#state", "Connected")
	p.click("#record")
	p.says("#about", "501 records")
	if p.count("#banner-shorter") != 0 {
		t.Error("what the person took note of is told again")
	}
	if got := saved(p); got != line(500, 3)+line(900, 2)+line(812, 1) {
		t.Errorf("saved is %q", got)
	}

	set(500, 4)
	p.run(chromedp.Reload())
	p.says("#banner-shorter", "not the one that it was on")
	set(501, 5) // to grow past it does not make it good either
	p.run(chromedp.Reload())
	p.says("#banner-shorter", "not the one that it was on")
	p.click("#record")
	p.click("#about .shorter button")
	p.gone("#banner-shorter")
}

func pageAuditTrouble(t *testing.T, browser context.Context) {
	b, _ := startPage(t)
	b.guard.trouble = ipc.AuditFull
	p := openTab(t, browser, "http://"+b.addr+"/")
	p.pair(b)
	p.says("#banner-audit", "record is full")
	p.shot("audit-full")
	b.guard.notice(t, ipc.Notice{Class: ipc.NoticeAuditDamaged})
	p.says("#banner-audit", "damaged")
	p.click("#record")
	p.says("#about", "The box shows no record at the moment")
	b.guard.notice(t, ipc.Notice{Class: ipc.NoticeAuditBack})
	p.gone("#banner-audit")
}
