package view_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/story"
	"assent.home.arpa/appliance/audit/view"
)

// The page in a real browser, opened from a file. ASSENT_BROWSER names the browser, and makes its absence a failure;
// ASSENT_SHOTS names a directory for pictures of every state.

// launch starts one browser, which has no way out of this machine, for all tests of the page.
func launch(t *testing.T) context.Context {
	t.Helper()
	path := os.Getenv("ASSENT_BROWSER")
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); path == "" && err == nil {
			path = found
		}
	}
	if path == "" {
		t.Skip("no chromium here: install Debian's chromium, or set ASSENT_BROWSER to a browser's path")
	}
	opts := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("hide-scrollbars", true), chromedp.Flag("lang", "en-GB"),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND"),
	)
	alloc, cancelAlloc := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(func() { cancel(); cancelAlloc() })
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("the browser does not start: %v", err)
	}
	return ctx
}

// tab is one open page, with a record of everything that it asked for and complained of.
type tab struct {
	t   *testing.T
	ctx context.Context
	dir string

	mu       sync.Mutex
	requests []string
	faults   []string
}

func openTab(t *testing.T, browser context.Context, dir string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	ctx, stop := context.WithTimeout(ctx, 60*time.Second)
	t.Cleanup(func() { stop(); cancel() })
	p := &tab{t: t, ctx: ctx, dir: dir}
	err := chromedp.Listen(ctx, func(ev any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch ev := ev.(type) {
		case *network.EventRequestWillBeSent:
			p.requests = append(p.requests, ev.Request.URL)
		case *runtime.EventExceptionThrown:
			p.faults = append(p.faults, ev.ExceptionDetails.Text+" "+ev.ExceptionDetails.URL)
		case *runtime.EventConsoleAPICalled:
			p.faults = append(p.faults, "console: "+string(ev.Type))
		case *log.EventEntryAdded:
			p.faults = append(p.faults, string(ev.Entry.Level)+": "+ev.Entry.Text)
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
	if _, err := chromedp.Call(ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Europe/London"}); err != nil {
		t.Fatal(err)
	}
	p.phone()
	p.run(chromedp.Navigate("file://" + dir + "/index.html"))
	t.Cleanup(p.check)
	return p
}

// check demands that the page asked for nothing but its own files, and that nothing failed.
func (p *tab) check() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.requests {
		if !strings.HasPrefix(r, "file://"+p.dir+"/") && !strings.HasPrefix(r, "data:") { // the browser's own icon in a date field
			p.t.Errorf("the page asked for %s", r)
		}
	}
	if len(p.requests) < 10 {
		p.t.Errorf("only %d requests were seen", len(p.requests))
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

// eval evaluates an expression.
func eval[T any](p *tab, js string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](js))
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

// says waits until an element that can be seen holds some words.
func (p *tab) says(selector, words string) {
	p.t.Helper()
	p.wait(`[...document.querySelectorAll(` + quote(selector) + `)].some((n) => n.checkVisibility() && n.innerText.includes(` + quote(words) + `))`)
}

func (p *tab) count(selector string) int {
	p.t.Helper()
	return eval[int](p, `document.querySelectorAll(`+quote(selector)+`).length`)
}

func (p *tab) click(selector string) {
	p.t.Helper()
	p.run(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// choose sets a field as a person does.
func (p *tab) choose(id, value string) {
	p.t.Helper()
	eval[bool](p, `(() => { const n = document.getElementById(`+quote(id)+`); n.value = `+quote(value)+`; n.dispatchEvent(new Event('input', {bubbles: true})); return n.value === `+quote(value)+`; })()`)
}

// open opens the event whose headline holds some words.
func (p *tab) open(words string) {
	p.t.Helper()
	if !eval[bool](p, `(() => { const n = [...document.querySelectorAll('.event')].find((n) => n.innerText.includes(`+quote(words)+`)); n?.click(); return Boolean(n); })()`) {
		p.fail(fmt.Errorf("no event says %q", words))
	}
	p.says("#story-title", words)
}

func (p *tab) phone() {
	p.t.Helper()
	p.run(chromedp.EmulateViewport(390, 844, chromedp.EmulateScale(2)))
}
func (p *tab) laptop() { p.t.Helper(); p.run(chromedp.EmulateViewport(1280, 800)) }

func (p *tab) media(name, value string) {
	p.t.Helper()
	set := emulation.SetEmulatedMediaParams{}
	if name == "" {
		set.Media = value
	} else {
		set.Features = []*emulation.MediaFeature{{Name: name, Value: value}}
	}
	if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, set); err != nil {
		p.fail(err)
	}
}

// shot keeps pictures on a phone and on a laptop, where somebody wants to look. It also demands what can be measured:
// nothing reaches beyond the edge, and everything that can be tapped is large enough for a finger.
func (p *tab) shot(name string) {
	p.t.Helper()
	for size, set := range map[string]func(){"laptop": p.laptop, "phone": p.phone} {
		set()
		wrong := eval[[]string](p, `(() => {
			const out = [];
			const page = document.documentElement;
			if (page.scrollWidth > page.clientWidth) out.push('wider than the screen: ' + page.scrollWidth);
			for (const n of document.querySelectorAll('button, a, input, select, summary')) {
				const r = n.getBoundingClientRect();
				if (r.width && (r.height < 40 || r.width < 40)) out.push('too small to tap: ' + n.textContent + ' ' + r.width + 'x' + r.height);
			}
			return out;
		})()`)
		for _, w := range wrong {
			p.t.Errorf("%s on a %s: %s", name, size, w)
		}
		dir := os.Getenv("ASSENT_SHOTS")
		if dir == "" {
			continue
		}
		png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			p.fail(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+"-"+size+".png"), png, 0o644); err != nil {
			p.t.Error(err)
		}
	}
}

func quote(s string) string {
	return "`" + strings.NewReplacer("\\", "\\\\", "`", "\\`", "$", "\\$").Replace(s) + "`"
}

func TestInBrowser(t *testing.T) {
	browser := launch(t)
	h := record(t)
	log := h.disk.FS()
	for name, test := range map[string]func(*testing.T, context.Context, fs.FS){
		"the list":                   browseList,
		"filters":                    browseFilters,
		"a pressed call":             browsePressed,
		"texts that are not there":   browseMissing,
		"hostile text":               browseHostile,
		"keyboard":                   browseKeyboard,
		"unknown outcome":            browseUnknown,
		"altered":                    browseAltered,
		"torn":                       browseTorn,
		"nothing recorded":           browseEmpty,
		"checked by this computer":   browseHere,
		"contradicted":               browseContradicted,
		"an address of nothing":      browseNowhere,
		"data missing":               browseIncompletePage,
		"a year":                     browseYear,
		"printed":                    browsePrint,
		"only data of its own loads": browseTrusted,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, browser, log)
		})
	}
}

func browseList(t *testing.T, browser context.Context, log fs.FS) {
	dir, report := write(t, log, view.Options{Name: "Kitchen box", Made: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)})
	p := openTab(t, browser, dir)
	p.says("#verdict h2", "Nothing in this record was changed")
	p.says("#verdict", "This is the box’s own statement on 30 Nov 2026, 12:00:00, and this page is not evidence")
	p.says("h1", "What Kitchen box recorded")
	p.says("#days h3", "30 November 2026")
	p.says("#days h3", "29 November 2026")
	p.says(".event", "Search Wikipedia for “tide times at Bristol”")
	p.shot("list")
	p.click("#verdict summary")
	p.says("#verdict .head-code", report.Head.Code())
	p.says("#verdict", fmt.Sprintf("%d entries under %d signatures", report.Records, report.Seals))
	if got := strings.ReplaceAll(eval[string](p, `document.querySelectorAll('#verdict dd .code')[1].textContent`), " ", ""); got != report.Root.String() {
		t.Errorf("the key is shown as %s", got)
	}
	p.shot("list-compare")
	p.click("#verdict summary")
	p.media("prefers-color-scheme", "dark")
	p.shot("list-dark")
	p.laptop()
	if width := eval[int](p, `document.getElementById('events').clientWidth`); width > 860 {
		t.Errorf("on a laptop the list is %d wide, which nobody can read", width)
	}
	p.phone()
	times := eval[[]string](p, `[...document.querySelectorAll('.event')].map((n) => n.dataset.first)`)
	if !slices.IsSortedFunc(times, func(a, b string) int { return cmpNumbers(b, a) }) || len(times) < 15 {
		t.Errorf("not the newest first: %v", times)
	}
}

func cmpNumbers(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

func browseFilters(t *testing.T, browser context.Context, log fs.FS) {
	dir, _ := write(t, log, view.Options{})
	p := openTab(t, browser, dir)
	all := eval[int](p, `assent.all.length`)
	p.says("#count", fmt.Sprintf("%d events", all))
	p.click("#more-filters")
	p.shot("filters")
	for _, c := range []struct{ id, value, says string }{
		{"outcome", "denied", "1 of"},
		{"outcome", "unknown", "1 of"},
		{"outcome", "expired_unseen", "1 of"},
		{"what", "freeze", "2 of"},
		{"what", "administration", "1 of"},
		{"capability", "=system.health", "3 of"},
		{"phone", "4", "1 of"},
		{"text", "BRISTOL tide", "1 of"},
		{"text", "nothing says this", "0 of"},
		{"to", "2026-11-29", ""},
	} {
		p.choose(c.id, c.value)
		p.says("#count", c.says)
		if n := p.count(".event"); n == all || (c.says != "" && n != int(c.says[0]-'0')) {
			t.Errorf("%s %s: %d events are shown", c.id, c.value, n)
		}
		if c.value == "nothing says this" {
			p.says("#nothing", "No event fits")
		}
		p.click("#clear")
		p.says("#count", fmt.Sprintf("%d events", all))
	}
	p.choose("from", "2026-11-30")
	p.says("#count", "of")
	if days := eval[[]string](p, `[...document.querySelectorAll('#days h3')].map((n) => n.textContent)`); len(days) != 1 || !strings.Contains(days[0], "30 November 2026") {
		t.Errorf("since Monday there are %q", days)
	}
}

// The canvas has the pixels that were drawn on the panel: no more, no fewer, none moved.
func browsePressed(t *testing.T, browser context.Context, log fs.FS) {
	dir, _ := write(t, log, view.Options{})
	p := openTab(t, browser, dir)
	p.open("tide times at Bristol")
	p.says(".ending", "Done")
	p.says(".step.shown h3", "What the box’s screen showed")
	p.shot("story")
	p.wait(`[...document.querySelectorAll('.quoted')].every((n) => !n.textContent.includes('d284') || !n.checkVisibility())`)
	p.click(".step.asked .literal summary")
	p.says(".step.asked .literal summary", "138 bytes that are no text")
	p.says(".step.asked .quoted", "d284")
	p.says(".quoted", "GET /w/api.php?action=query&list=search&format=json&srsearch=tide times at Bristol HTTP/1.1")
	p.says(".quoted", "Host: en.wikipedia.org")
	p.says(".story .small", "asked by phone 2")
	want := pages(t, "tide times at Bristol")
	if n := p.count("canvas"); n != len(want) || n < 2 {
		t.Fatalf("%d pictures, want %d", n, len(want))
	}
	for i, page := range want {
		encoded := eval[string](p, fmt.Sprintf(`(() => {
			const canvas = document.querySelectorAll('canvas')[%d];
			const d = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
			let out = canvas.width + 'x' + canvas.height + ':';
			for (let i = 0; i < d.length; i += 4) out += d[i] > 128 ? '#' : d[i + 3] === 255 ? '.' : '?';
			return out;
		})()`, i))
		var drawn strings.Builder
		drawn.WriteString("128x64:")
		for y := range 64 {
			for x := range 128 {
				if page.Frame.At(x, y) {
					drawn.WriteByte('#')
				} else {
					drawn.WriteByte('.')
				}
			}
		}
		if encoded != drawn.String() {
			t.Errorf("page %d is not what was on the glass", i+1)
		}
	}
	eval[bool](p, `document.querySelector('.step.decided').scrollIntoView() === undefined`)
	p.click(".step.decided summary")
	p.says(".step.decided .edges", "Approve down, 2.0 s after the last page was drawn")
	p.says(".step.decided .moves", "page 1 came on the glass, 0.0 s after the last page was drawn")
	p.says(".step.decided .proof", "Entries")
	p.shot("story-pressed")
	eval[bool](p, `document.querySelector('.step.sent').scrollIntoView() === undefined`)
	p.shot("story-sent")
	p.media("prefers-color-scheme", "dark")
	p.shot("story-dark")
}

func browseMissing(t *testing.T, browser context.Context, log fs.FS) {
	dir, _ := write(t, log, view.Options{})
	p := openTab(t, browser, dir)
	p.choose("phone", "4")
	p.open("web.search")
	p.says(".step.shown .gone", "by the rule for this ability only their digests are kept")
	p.says(".literal .gone", "The box keeps only the digest")
	if n := p.count("canvas"); n != 0 {
		t.Errorf("%d pictures of what was withheld", n)
	}
	p.shot("withheld")
}

// What a model wrote is text, whatever it says.
func browseHostile(t *testing.T, browser context.Context, log fs.FS) {
	dir, _ := write(t, log, view.Options{Name: evil})
	p := openTab(t, browser, dir)
	p.says("h1", "<img src=https://evil.example/x onerror=alert(1)>")
	p.open("</script><img src=https://evil.example/x onerror=alert(1)>")
	p.says(".quoted", "=cmd|' /C calc'!A0</script><img")
	p.says(".quoted .boxed", "U+202E")
	p.says(".quoted .boxed", "U+001B")
	p.says(".quoted .boxed", "U+2028")
	for _, selector := range []string{"img", "iframe", "script:not([src])", "[onerror]", "#story a:not(.button)"} {
		if n := p.count(selector); n != 0 {
			t.Errorf("%d of %s came from the log", n, selector)
		}
	}
	if text := eval[string](p, `document.body.textContent`); strings.ContainsAny(text, "\u202e\u2028\x1b") {
		t.Error("a character that reorders or hides is on the page")
	}
	p.shot("hostile")
}

func browseKeyboard(t *testing.T, browser context.Context, log fs.FS) {
	dir, _ := write(t, log, view.Options{})
	p := openTab(t, browser, dir)
	p.says("#days", "Bristol")
	eval[bool](p, `[...document.querySelectorAll('.event')].find((n) => n.innerText.includes('Bristol')).focus() === undefined`)
	p.run(chromedp.KeyEvent("\r"))
	p.says("#story-title", "Bristol")
	p.wait(`document.activeElement.id === 'story-title'`)
	p.run(chromedp.NavigateBack())
	p.wait(`document.getElementById('story').hidden && document.activeElement.innerText.includes('Bristol')`)
	levels := eval[[]string](p, `[...document.querySelectorAll('h1, h2, h3')].map((n) => n.tagName)`)
	if levels[0] != "H1" || slices.Contains(levels[1:], "H1") {
		t.Errorf("headings: %v", levels)
	}
	unnamed := eval[int](p, `[...document.querySelectorAll('input, select')].filter((n) => !n.labels.length).length + [...document.querySelectorAll('canvas')].filter((n) => !n.getAttribute('aria-label')).length`)
	if unnamed != 0 || p.count("main") != 1 {
		t.Errorf("%d fields or pictures have no name; %d main parts", unnamed, p.count("main"))
	}
}

func browseUnknown(t *testing.T, browser context.Context, log fs.FS) {
	dir, _ := write(t, log, view.Options{})
	p := openTab(t, browser, dir)
	p.says(".alarm-line", "The outcome of one request is not known")
	p.click(".alarm-line button")
	p.says("#count", "1 of")
	p.says(".event.alarm .badge", "Outcome unknown")
	p.shot("unknown-list")
	p.open("tallest building in Wales")
	p.says(".ending.alarm", "It may or may not have happened")
	p.shot("unknown-story")
}

// copyOf is a log that can be damaged.
func copyOf(t *testing.T, log fs.FS) fstest.MapFS {
	t.Helper()
	names, err := fs.Glob(log, "*.cborseq")
	if err != nil {
		t.Fatal(err)
	}
	m := fstest.MapFS{}
	for _, name := range names {
		b, err := fs.ReadFile(log, name)
		if err != nil {
			t.Fatal(err)
		}
		m[name] = &fstest.MapFile{Data: b}
	}
	return m
}

func browseAltered(t *testing.T, browser context.Context, log fs.FS) {
	altered := copyOf(t, log)
	altered["seg-00000000.cborseq"].Data[40000] ^= 1
	dir, report := write(t, altered, view.Options{})
	if report.Status != audit.Altered {
		t.Fatalf("the log is %s", report.Status)
	}
	p := openTab(t, browser, dir)
	p.says("#verdict[data-tone=alarm] h2", "This record was changed after it was written")
	p.says("#verdict", "A power cut does not do this")
	p.says("#verdict", "First thing that is wrong: file 0, byte")
	p.says("#verdict", fmt.Sprintf("Read up to what is wrong: %d entries under %d signatures", report.Records, report.Seals))
	p.says(".event", "Bristol")
	if n := eval[int](p, `assent.all.filter((r) => r.headline.includes('Köln')).length`); n != 0 {
		t.Error("what comes after the change is listed")
	}
	p.shot("altered")
	p.media("prefers-color-scheme", "dark")
	p.shot("altered-dark")
}

func browseTorn(t *testing.T, browser context.Context, log fs.FS) {
	torn := copyOf(t, log)
	torn["seg-00000000.cborseq"].Data[audit.SegmentSize-9] ^= 1
	dir, report := write(t, torn, view.Options{})
	if report.Status != audit.Incomplete {
		t.Fatalf("the log is %s", report.Status)
	}
	p := openTab(t, browser, dir)
	p.says("#verdict[data-tone=warn] h2", "The end of this record is torn")
	p.says("#verdict", "as happens when the power fails")
	p.says(".event", "Köln")
	p.shot("torn")
}

func browseEmpty(t *testing.T, browser context.Context, _ fs.FS) {
	dir, report := write(t, fstest.MapFS{"seg-00000000.cborseq": {Data: make([]byte, audit.SegmentSize)}}, view.Options{})
	if report.Status != audit.Incomplete {
		t.Fatalf("the log is %s", report.Status)
	}
	p := openTab(t, browser, dir)
	p.says("#verdict h2", "Nothing here was ever signed")
	p.says("#nothing", "Nothing is recorded here yet")
	if p.count("#verdict .facts") != 0 {
		t.Error("a code or a key is shown that nobody knows")
	}
	p.shot("empty")
}

func browseHere(t *testing.T, browser context.Context, log fs.FS) {
	dir, _ := write(t, log, view.Options{Statement: view.ByThisComputer, Made: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)})
	p := openTab(t, browser, dir)
	p.says("#verdict", "Checked by this computer on 30 Nov 2026, 12:00:00")
	if strings.Contains(eval[string](p, `document.getElementById('verdict').innerText`), "own statement") {
		t.Error("what this computer found is called the box's statement")
	}
}

// What was held against the log and does not agree is not called a change of the log.
func browseContradicted(t *testing.T, browser context.Context, log fs.FS) {
	dir, report := write(t, log, view.Options{Statement: view.ByCopier, Verify: audit.VerifyOptions{Root: audit.Digest{1}}})
	if report.Status != audit.Altered {
		t.Fatalf("the log is %s", report.Status)
	}
	p := openTab(t, browser, dir)
	p.says("#verdict[data-tone=alarm] h2", "This record contradicts what was kept elsewhere")
	p.says("#verdict", "First thing that is wrong: the log was begun by another root key")
	p.says("#verdict", "found by the computer that made this copy, and this page is not evidence")
	p.says(".event", "Köln")
}

// An address that names no event says so, rather than showing the list.
func browseNowhere(t *testing.T, browser context.Context, log fs.FS) {
	dir, _ := write(t, log, view.Options{})
	p := openTab(t, browser, dir)
	p.says("#days", "Bristol")
	p.run(chromedp.Navigate("file://" + dir + "/index.html#event-99999"))
	p.says("#story-title", "This event cannot be shown")
	p.says("#story", "No event of this record begins with entry 99999")
	p.click(".back a")
	p.says(".event", "Bristol")
}

// A copy that lost files says so, rather than showing less.
func browseIncompletePage(t *testing.T, browser context.Context, log fs.FS) {
	dir, _ := write(t, log, view.Options{})
	if err := os.Remove(filepath.Join(dir, "data/stories-0000.js")); err != nil {
		t.Fatal(err)
	}
	p := openTab(t, browser, dir)
	p.says("#days", "Bristol")
	eval[bool](p, `[...document.querySelectorAll('.event')].find((n) => n.innerText.includes('Bristol')).click() === undefined`)
	p.says("#story", "This event cannot be shown")
	p.says("#story", "the copy is damaged")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = slices.DeleteFunc(p.faults, func(f string) bool { return strings.Contains(f, "ERR_FILE_NOT_FOUND") })
}

// A year opens at once: the stories are loaded only as they are opened.
func browseYear(t *testing.T, browser context.Context, _ fs.FS) {
	const days, perDay = 365, 100
	dir := filepath.Join(t.TempDir(), "view")
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	year := func(yield func(story.Story) bool) {
		for i := range days * perDay {
			when := story.When{Unix: first.Add(time.Duration(i) * 24 * time.Hour / perDay).UnixMilli(), Clock: story.ClockSynced}
			seq := audit.Seq(8*i + 3)
			if !yield(story.Story{
				ID: fmt.Sprintf("%032x", i), Kind: story.KindCall, First: seq, Last: seq + 7, Seal: seq + 7, When: when, Outcome: story.Done,
				Headline: fmt.Sprintf("Search Wikipedia for “tide times %d-%d”", i/perDay, i%perDay), Said: "It was done.", Capability: "web.search", Phone: 2,
				Destination: "wikipedia.org", Steps: []story.Step{{Name: story.StepAnswered, Text: "It answered.", Records: []audit.Seq{seq}}},
			}) {
				return
			}
		}
	}
	create := func(name string) (io.WriteCloser, error) { return os.Create(filepath.Join(dir, name)) }
	if err := view.WriteStories(create, year, view.Options{Statement: view.ByBox}); err != nil {
		t.Fatal(err)
	}
	if files, err := filepath.Glob(filepath.Join(dir, "data/stories-*.js")); err != nil || len(files) != days*perDay/500 {
		t.Errorf("%d files of stories, %v", len(files), err)
	}
	began := time.Now()
	p := openTab(t, browser, dir)
	p.says("#count", "36,500 events")
	t.Logf("a year of %d events opens in %v", days*perDay, time.Since(began).Round(time.Millisecond))
	began = time.Now()
	p.choose("text", "tide times 364-99")
	p.says("#count", "1 of 36,500")
	t.Logf("and is searched in %v", time.Since(began).Round(time.Millisecond))
	p.open("tide times 364-99")
	p.says(".ending", "Done")
	if n := p.count("script[src^='data/stories']"); n != 1 {
		t.Errorf("%d files of stories were loaded for one story", n)
	}
	p.click(".back a")
	p.click("#clear")
	if n := p.count(".event"); n > 100 {
		t.Errorf("%d events are on the page at once", n)
	}
	p.click("#more")
	if n := p.count(".event"); n != 260 {
		t.Errorf("%d events after asking for more", n)
	}
}

func browsePrint(t *testing.T, browser context.Context, log fs.FS) {
	dir, _ := write(t, log, view.Options{})
	p := openTab(t, browser, dir)
	p.open("tide times at Bristol")
	p.media("", "print")
	p.says(".proof", "Entries")
	if eval[bool](p, `document.getElementById('filters').checkVisibility()`) {
		t.Error("controls are printed")
	}
	p.shot("print")
}

// Nothing but a file of stories becomes a script, even by a mistake of the page's own.
func browseTrusted(t *testing.T, browser context.Context, log fs.FS) {
	dir, _ := write(t, log, view.Options{})
	p := openTab(t, browser, dir)
	p.says("#days", "Bristol")
	for _, js := range []string{
		`document.body.innerHTML = '<b>x</b>'`,
		`document.createElement('script').src = 'https://evil.example/x.js'`,
		`trustedTypes.createPolicy('other', {})`,
	} {
		if !eval[bool](p, `(() => { try { `+js+`; return false; } catch { return true; } })()`) {
			t.Errorf("%s went through", js)
		}
	}
	eval[bool](p, `(assent.story({chunk: '/../../evil', place: 0}).then(() => { assent.tried = 'loaded'; }, (e) => { assent.tried = e.message; }), true)`)
	p.wait(`assent.tried === 'not a file of stories'`)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.faults) == 0 {
		t.Error("the policy complained of nothing")
	}
	p.faults = nil
}
