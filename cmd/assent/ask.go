package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"assent.home.arpa/appliance/phone"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/capabilities"
)

func (a *app) newAskCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "ask QUESTION...",
		Short: "Ask the paired box one question",
		Long: "Ask the paired box one question and print its answer. What needs a press is approved at the box and nowhere else; this command\n" +
			"only says that something waits there. Exit status 0: answered; 1: the box could not answer, or the last thing it wanted to do was\n" +
			"denied, refused, expired or failed; 2: nobody can tell whether that took effect.",
		Example: "  assent ask \"How much memory is free on this box?\"\n" +
			"  assent --json ask \"Search the web: how tall is the Eiffel Tower?\" | jq -r '.outcomes[].status'",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			who, file, client, err := a.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer client.Close()
			if _, err := client.Ask(who, phone.NewConversation(), strings.Join(args, " ")); err != nil {
				return err
			}
			if err := who.Save(file); err != nil { // the counter, before anything else can fail
				return err
			}
			answer, err := a.listen(cmd.Context(), client)
			if a.json {
				a.printJSON(answer)
			}
			return err
		},
	}
}

// answer is what ask --json prints.
type answer struct {
	Text     string         `json:"text"`
	Outcomes []wire.Outcome `json:"outcomes"`
	End      wire.TurnEnd   `json:"end"`
}

// transcript prints a turn as it comes: prose as it is said, and everything else on lines of its own.
type transcript struct {
	*app
	open bool // the last line of the prose has not ended
}

func (t *transcript) prose(text string) {
	fmt.Fprint(t.out, phone.Printable(text, true))
	t.open = text != "" && !strings.HasSuffix(text, "\n")
}

func (t *transcript) line(w io.Writer, format string, args ...any) {
	if t.open {
		fmt.Fprintln(t.out)
		t.open = false
	}
	fmt.Fprintln(w, phone.Printable(fmt.Sprintf(format, args...), false))
}

// listen prints a turn as it comes and returns the whole of it.
func (a *app) listen(ctx context.Context, client *phone.Client) (answer, error) {
	whole := answer{Outcomes: []wire.Outcome{}}
	t := &transcript{app: a}
	for {
		f, err := client.Next(ctx)
		if err != nil {
			return whole, err
		}
		switch f.Type {
		case wire.TypeText:
			var said wire.Text
			if err := f.Decode(&said); err != nil {
				return whole, err
			}
			whole.Text += said.Text
			if !a.json {
				t.prose(said.Text)
			}
		case wire.TypePending:
			var p wire.Pending
			if err := f.Decode(&p); err != nil {
				return whole, err
			}
			if p.Decided {
				t.line(a.err, "approved at the box; working")
				continue
			}
			t.line(a.err, "look at the box: %s %q → %s", p.Title, p.Text, p.Destination)
		case wire.TypeResult:
			var r wire.Result
			if err := f.Decode(&r); err != nil {
				return whole, err
			}
			whole.Outcomes = append(whole.Outcomes, r.Outcome)
			if !a.json {
				t.outcome(r.Outcome)
			}
		case wire.TypeError:
			var e wire.Error
			if err := f.Decode(&e); err != nil {
				return whole, err
			}
			return whole, bad(errors.New(e.Message))
		case wire.TypeTurnEnd:
			if err := f.Decode(&whole.End); err != nil {
				return whole, err
			}
			return whole, t.end(whole)
		}
	}
}

// end ends the last line and says how the turn ended, where nothing has said so yet.
func (t *transcript) end(whole answer) error {
	if t.open {
		fmt.Fprintln(t.out)
	}
	switch whole.End.Reason {
	case "failed":
		return bad(errors.New(whole.End.Message))
	case "length":
		fmt.Fprintln(t.err, "assent: the answer was cut off: it reached the longest that the box allows")
	}
	return t.judge(whole.Outcomes)
}

// judge says how a turn ended by the last thing that it wanted to do: a model that is refused may do better at its next try.
func (a *app) judge(outcomes []wire.Outcome) error {
	if len(outcomes) == 0 {
		return nil
	}
	status, words := ending(outcomes[len(outcomes)-1])
	switch {
	case status == 0:
		return nil
	case a.json:
		return &exitError{status, errors.New(words)}
	}
	return &exitError{status, toldError{errors.New(words)}} // when it happened
}

const nobodyKnows = "nobody can say whether it took effect; look at the record"

// ending says in a person's words what became of something that the model wanted to do, and which exit status that is. The
// box's own message is left out where it is for the model.
func ending(o wire.Outcome) (status int, words string) {
	because := func(words string) string {
		if o.Message != "" {
			words += ": " + o.Message
		}
		if o.RetryIn > 0 {
			words += fmt.Sprintf("; ask again in %d seconds", o.RetryIn)
		}
		return words
	}
	switch o.Status {
	case capabilities.Done.String():
		return 0, "done"
	case capabilities.Unknown.String():
		return exitUnclear, because(nobodyKnows)
	}
	if o.Code == capabilities.CodeFrozen {
		return exitBad, "the box is frozen; to release it hold both of its buttons for 3 seconds and do what its screen says"
	}
	switch o.Status {
	case capabilities.Denied.String():
		return exitBad, "somebody at the box said no"
	case capabilities.Expired.String():
		return exitBad, "nobody decided at the box in time"
	case capabilities.ExpiredUnseen.String():
		return exitBad, "nobody looked at the box in time"
	case capabilities.Withdrawn.String():
		return exitBad, "it was taken back before anybody decided"
	case capabilities.Failed.String():
		return exitBad, because("it was tried, and did not work")
	case capabilities.Rejected.String():
		return exitBad, because("the box refused it")
	}
	return exitUnclear, because(nobodyKnows) // a status of a newer box
}

// outcome prints one result apart from the model's prose.
func (t *transcript) outcome(o wire.Outcome) {
	_, words := ending(o)
	t.line(t.out, "── %s: %s", o.Capability, words)
	var found struct {
		Citations []struct{ Title, URL, Content string }
	}
	if o.Status != capabilities.Done.String() || json.Unmarshal(o.Data, &found) != nil {
		return
	}
	for i, c := range found.Citations {
		t.line(t.out, "   [%d] %s", i+1, c.Title)
		t.line(t.out, "       %s", c.Content)
		t.line(t.out, "       %s", c.URL)
	}
	if len(found.Citations) == 0 {
		t.line(t.out, "   %s", o.Data)
	}
}
