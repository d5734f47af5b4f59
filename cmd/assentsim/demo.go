package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/finger"
	"assent.home.arpa/appliance/phone"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/device"
)

// question is one that the default model took to a search in 20 of 20 seeds at a temperature of 0.3.
const question = "Search the web: how tall is the Eiffel Tower?"

// promptGaze is how long an administrative prompt may take to appear.
const promptGaze = 3 * time.Second

// demoTimeout bounds the whole demonstration once the model is loaded; a small machine reads the first prompt slowly.
const demoTimeout = 6 * time.Minute

func runDemo(ctx context.Context, c console, args []string) error {
	f := newFlags("demo", c)
	p := plan{errLog: c.err, listen: "127.0.0.1:0", panel: "127.0.0.1:0"}
	f.StringVar(&p.state, "state", "", "`directory` to keep; default: a new one that is removed at the end")
	f.StringVar(&p.listen, "listen", p.listen, "loopback `address` of the phone page")
	f.StringVar(&p.model, "model", os.Getenv("MODEL"), "model id or `path` of a .gguf file (default: $MODEL, else the manifest's)")
	f.StringVar(&p.search, "search", "auto", "where searches go: auto, wikipedia, practice, or the `address` of a SearXNG")
	f.BoolVar(&p.recite, "scripted", false, "use the scripted test model")
	ask := f.String("question", question, "what the phone asks")
	if err := parse(f, args); err != nil {
		return err
	}
	if !isLoopback(p.listen) {
		return usageError(fmt.Sprintf("-listen %s: the demonstration is for this machine alone; use 127.0.0.1 or [::1]", p.listen))
	}
	if p.state == "" {
		dir, err := os.MkdirTemp("", "assentsim-demo-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		p.state = dir
	}
	s, err := start(ctx, c.out, p)
	if err != nil {
		return err
	}
	d := demo{sim: s, out: c.out, finger: finger.Finger{Panel: hands{s.glass}}}
	err = d.play(ctx, *ask)
	return errors.Join(err, s.stop(), verify(ctx, c.out, auditDir(s)))
}

// demo is the main job, played by a phone and a finger.
type demo struct {
	*sim
	out    io.Writer
	finger finger.Finger
}

// say prints one line, whoever wrote what is in it.
func (d *demo) say(who, format string, args ...any) {
	fmt.Fprintf(d.out, "%-7s| %s\n", who, phone.Printable(fmt.Sprintf(format, args...), false))
}

func (d *demo) play(ctx context.Context, ask string) error {
	ctx, cancel := context.WithTimeout(ctx, demoTimeout)
	defer cancel()
	fmt.Fprintln(d.out)
	d.say("model", "%s", d.model.name)
	if d.model.scripted {
		d.say("model", "NOT A LANGUAGE MODEL: it recites a script, through the real engine")
	}
	d.say("engine", "llama-server %s", d.model.engine.Version)
	if d.search.fixture != "" {
		d.say("search", "%s", d.search.fixture)
	}
	who, err := d.pair(ctx)
	if err != nil {
		return fmt.Errorf("pairing: %w", err)
	}
	client, err := phone.Dial(ctx, d.address, nil)
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := client.Hello(ctx, who, "", 0); err != nil {
		return err
	}
	d.say("phone", "%s", ask)
	if _, err := client.Ask(who, phone.NewConversation(), ask); err != nil {
		return err
	}
	return d.follow(ctx, client)
}

// pair holds both buttons, reads the code off the glass, types it on the phone and accepts at the panel.
func (d *demo) pair(ctx context.Context) (*phone.Identity, error) {
	code, err := d.finger.OpenPairing(ctx, d.address)
	if err != nil {
		return nil, err
	}
	d.say("panel", "pairing code %s (read from the pixels)", code)
	client, err := phone.Dial(ctx, d.address, nil)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	type paired struct {
		who *phone.Identity
		err error
	}
	done := make(chan paired, 1)
	go func() {
		who, err := client.Pair(ctx, code, "Kitchen", nil)
		done <- paired{who, err}
	}()
	if _, err := d.finger.See(ctx, promptGaze, "who wants to be paired", finger.Inverted); err != nil {
		select {
		case p := <-done:
			return nil, errors.Join(p.err, err)
		default:
			return nil, err
		}
	}
	if err := d.finger.Read(ctx); err != nil {
		return nil, err
	}
	d.glass.Hold(finger.BothHold, device.Approve, device.Deny)
	p := <-done
	if p.err == nil {
		d.say("finger", "holds both buttons for 3 s: the phone %q is paired", p.who.Name)
	}
	return p.who, p.err
}

// follow prints what the phone hears until the turn ends, and works the panel when something waits there.
func (d *demo) follow(ctx context.Context, client *phone.Client) error {
	var prose strings.Builder
	flush := func() {
		if text := strings.TrimSpace(prose.String()); text != "" {
			for line := range strings.SplitSeq(text, "\n") {
				d.say("answer", "%s", line)
			}
		}
		prose.Reset()
	}
	cited := false
	for {
		f, err := client.Next(ctx)
		if err != nil {
			return err
		}
		switch f.Type {
		case wire.TypeText:
			var t wire.Text
			if err := f.Decode(&t); err != nil {
				return err
			}
			prose.WriteString(t.Text)
		case wire.TypePending:
			flush()
			if err := d.press(ctx, f); err != nil {
				return err
			}
		case wire.TypeResult:
			flush()
			ok, err := d.result(f)
			if err != nil {
				return err
			}
			cited = cited || ok
		case wire.TypeError:
			var e wire.Error
			if err := f.Decode(&e); err != nil {
				return err
			}
			return fmt.Errorf("%s (%s)", e.Message, e.Code)
		case wire.TypeTurnEnd:
			flush()
			var end wire.TurnEnd
			if err := f.Decode(&end); err != nil {
				return err
			}
			if end.Reason != "complete" {
				return fmt.Errorf("the turn ended as %s: %s", end.Reason, end.Message)
			}
			if !cited {
				return errors.New("the model answered without a search that was approved; nothing was shown or pressed")
			}
			return nil
		}
	}
}

// press reads the card that waits at the panel and holds the button. The card comes once more when that has counted.
func (d *demo) press(ctx context.Context, f phone.Frame) error {
	var p wire.Pending
	if err := f.Decode(&p); err != nil {
		return err
	}
	if p.Decided {
		d.say("phone", "approved at the box; it is under way")
		return nil
	}
	d.say("phone", "look at the box: %s", p.Title)
	pages, err := d.finger.Approve(ctx, p.Pages)
	for i, page := range pages {
		d.say("panel", "page %d of %d: %s", i+1, p.Pages, finger.Words(page, p.Destination))
	}
	if err != nil {
		return err
	}
	d.say("finger", "holds approve for %.1f s", finger.ApproveHold.Seconds())
	return nil
}

// result prints an outcome and reports whether it brought citations.
func (d *demo) result(f phone.Frame) (bool, error) {
	var r wire.Result
	if err := f.Decode(&r); err != nil {
		return false, err
	}
	o := r.Outcome
	why := ""
	if o.Code != "" {
		why = fmt.Sprintf(" (%s: %s)", o.Code, o.Message)
	}
	d.say("result", "%s v%d: %s%s", o.Capability, o.Version, o.Status, why)
	var body struct {
		Citations []struct {
			Title   string `json:"title"`
			URL     string `json:"url"`
			Content string `json:"content"`
		} `json:"citations"`
	}
	if len(o.Data) == 0 || json.Unmarshal(o.Data, &body) != nil {
		return false, nil
	}
	for i, c := range body.Citations {
		d.say("cited", "[%d] %s <%s>", i+1, c.Title, c.URL)
		d.say("cited", "    %s", c.Content)
	}
	return o.Status == "done" && len(body.Citations) > 0, nil
}

// verify checks the audit as anybody could on another machine.
func verify(ctx context.Context, out io.Writer, dir string) error {
	report, err := audit.Verify(ctx, os.DirFS(dir), audit.VerifyOptions{})
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if report.Status != audit.Intact {
		return fmt.Errorf("audit: %s", report.Status)
	}
	fmt.Fprintf(out, "audit: %s (%d records, %d seals)\n", report.Status, report.Records, report.Seals)
	return nil
}
