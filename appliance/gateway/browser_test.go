package gateway_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// The page in a real browser. ASSENT_BROWSER names the browser, and makes its absence a failure; ASSENT_SHOTS names a
// directory for pictures of every state.

func browserPath(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("ASSENT_BROWSER"); path != "" {
		return path
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no chromium here: install Debian's chromium, or set ASSENT_BROWSER to a browser's path")
	return ""
}

// launch starts one browser, which has no way out of this machine, for all tests of the page.
func launch(t *testing.T) context.Context {
	t.Helper()
	path := browserPath(t)
	opts := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("hide-scrollbars", true), chromedp.Flag("lang", "en-GB"),
		chromedp.Flag("host-resolver-rules", "MAP box.lan 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
	)
	alloc, cancelAlloc := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(func() { cancel(); cancelAlloc() })
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("the browser does not start: %v", err)
	}
	return ctx
}

// tab is a phone's browser: its own storage, and a record of everything that it asked the network for.
type tab struct {
	t     *testing.T
	ctx   context.Context
	url   string
	night bool // it is dark

	mu       sync.Mutex
	requests []string
	faults   []string
}

func openTab(t *testing.T, browser context.Context, pageURL string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	ctx, stop := context.WithTimeout(ctx, 2*time.Minute) // pictures of every size take their time
	t.Cleanup(func() { stop(); cancel() })
	p := &tab{t: t, ctx: ctx, url: pageURL}
	err := chromedp.Listen(ctx, func(ev any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch ev := ev.(type) {
		case *network.EventRequestWillBeSent:
			p.requests = append(p.requests, ev.Request.URL)
		case *network.EventWebSocketCreated:
			p.requests = append(p.requests, ev.URL)
		case *runtime.EventExceptionThrown:
			p.faults = append(p.faults, ev.ExceptionDetails.Text+" "+ev.ExceptionDetails.URL)
		case *log.EventEntryAdded:
			if strings.Contains(ev.Entry.Text, "Content Security Policy") {
				p.faults = append(p.faults, ev.Entry.Text)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	p.size(sizes[0])
	p.run(chromedp.Navigate(pageURL))
	t.Cleanup(p.check)
	return p
}

// check demands that the page asked nobody but the box for anything, and that no script failed.
func (p *tab) check() {
	p.mu.Lock()
	defer p.mu.Unlock()
	home, err := url.Parse(p.url)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, r := range p.requests {
		u, err := url.Parse(r)
		if err != nil || u.Host != home.Host {
			p.t.Errorf("the page asked for %s", r)
		}
	}
	for _, f := range p.faults {
		p.t.Errorf("the page failed: %s", f)
	}
}

func (p *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.fail(err)
	}
}

func (p *tab) fail(err error) {
	p.t.Helper()
	text, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string](`document.body.innerText`))
	p.t.Fatalf("%v\nthe page says:\n%s", err, text)
}

// read evaluates an expression.
func read[T any](p *tab, js string, opts ...chromedp.EvaluateOption) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](js, opts...))
	if err != nil {
		p.fail(err)
	}
	return v
}

// wait waits until an expression holds.
func (p *tab) wait(js string) {
	p.t.Helper()
	_, err := chromedp.Run(p.ctx, chromedp.Poll[bool](js, chromedp.WithPollingInterval(20*time.Millisecond), chromedp.WithPollingTimeout(10*time.Second)))
	if err != nil {
		p.fail(fmt.Errorf("%s: %w", js, err))
	}
}

func (p *tab) see(selector string) {
	p.t.Helper()
	p.run(chromedp.WaitVisible(chromedp.CSS(selector)))
}

// says waits until an element's text holds some words.
func (p *tab) says(selector, words string) {
	p.t.Helper()
	p.wait(`[...document.querySelectorAll(` + quote(selector) + `)].some((n) => n.innerText.includes(` + quote(words) + `))`)
}

func (p *tab) gone(selector string) {
	p.t.Helper()
	p.wait(`document.querySelector(` + quote(selector) + `) === null`)
}

func (p *tab) count(selector string) int {
	p.t.Helper()
	return read[int](p, `document.querySelectorAll(`+quote(selector)+`).length`)
}

func (p *tab) text(selector string) string {
	p.t.Helper()
	return read[string](p, `document.querySelector(`+quote(selector)+`).textContent`)
}

func (p *tab) click(selector string) {
	p.t.Helper()
	p.run(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

func (p *tab) ask(text string) {
	p.t.Helper()
	p.run(chromedp.SetValue(chromedp.CSS("#question"), text))
	p.click("#send")
}

// sizes are the phones that every state of the page is looked at on. Text twice as large is what people set who cannot read
// it otherwise.
var sizes = [...]size{{"", 390, 844, "100%"}, {"-narrow", 320, 640, "100%"}, {"-large", 390, 844, "200%"}}

type size struct {
	suffix        string
	width, height int64
	text          string
}

func (p *tab) size(s size) {
	p.t.Helper()
	p.run(chromedp.EmulateViewport(s.width, s.height, chromedp.EmulateScale(2)),
		chromedp.Evaluate[chromedp.Void](`document.documentElement.style.fontSize = `+quote(s.text)))
}

// shot looks at the page on every size of phone, and keeps pictures where somebody wants to look. It demands what can be
// measured: nothing reaches beyond the edge or lies outside what holds it, everything that can be tapped is large enough for
// a finger, text stands out from what is under it (WCAG 2.2, 1.4.3), and nothing is said in the program's words.
func (p *tab) shot(name string) {
	p.t.Helper()
	p.picture(name)
	if p.night { // colours alone are different then
		return
	}
	for _, s := range sizes[1:] {
		p.size(s)
		p.picture(name + s.suffix)
	}
	p.size(sizes[0])
}

func (p *tab) picture(name string) {
	p.t.Helper()
	wrong := read[[]string](p, `(() => {
		const out = [];
		const page = document.documentElement;
		if (page.scrollWidth > page.clientWidth) out.push('wider than the screen: ' + page.scrollWidth);
		for (const n of document.querySelectorAll('button, a, input, textarea, summary')) {
			const r = n.getBoundingClientRect();
			if (r.width && (r.height < 40 || r.width < 40)) out.push('too small to tap: ' + n.textContent + ' ' + r.width + 'x' + r.height);
		}
		for (const n of document.querySelectorAll('body *')) {
			if (n.checkVisibility() && !n.closest('.hidden, textarea') && n.scrollWidth > n.clientWidth + 1 && n.clientWidth) out.push('cut: ' + n.tagName + '.' + n.className);
		}
		const channels = (text) => text.match(/[\d.]+/g).map(Number);
		const light = (c) => c.slice(0, 3).map((v) => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
		const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		for (let n; (n = walk.nextNode());) {
			const own = n.parentElement;
			if (!n.data.trim() || !own.checkVisibility({ opacityProperty: true }) || own.closest('.hidden, noscript, :disabled, .sending')) continue;
			let under = own;
			while (under && channels(getComputedStyle(under).backgroundColor)[3] === 0) under = under.parentElement;
			const [a, b] = [channels(getComputedStyle(own).color), channels(getComputedStyle(under ?? document.body).backgroundColor)].map(light).sort((x, y) => y - x);
			if ((a + .05) / (b + .05) < 4.5) out.push('too faint: ' + n.data + ' ' + ((a + .05) / (b + .05)).toFixed(1));
		}
		const raw = document.body.innerText.match(/\b(gateway|confirm|guard|ipc|conversation|inference|context|json): |\b[a-z]+_[a-z_]+\b|undefined|\[object/);
		if (raw && !document.querySelector('details[open]')) out.push('in the words of the program: ' + raw[0]);
		return out;
	})()`)
	for _, w := range wrong {
		p.t.Errorf("%s: %s", name, w)
	}
	dir := os.Getenv("ASSENT_SHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.fail(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		p.t.Error(err)
	}
}

func (p *tab) dark(on bool) {
	p.t.Helper()
	p.night = on
	scheme := "light"
	if on {
		scheme = "dark"
	}
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}
	if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}); err != nil {
		p.fail(err)
	}
}

// pair is what somebody with a new phone does, with somebody at the box.
func (p *tab) pair(b *box) {
	p.t.Helper()
	p.see("#code")
	p.run(chromedp.SendKeys(chromedp.CSS("#code"), "482 913"), chromedp.SendKeys(chromedp.CSS("#name"), "Anna"))
	p.click(".pair button")
	p.says(".pair-status", "hold both buttons")
	b.guard.accept <- true
	p.see("#composer")
}

func quote(s string) string {
	return "`" + strings.NewReplacer("\\", "\\\\", "`", "\\`", "$", "\\$").Replace(s) + "`"
}
