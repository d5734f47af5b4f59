package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := identityFile()
			if err != nil {
				return err
			}
			who, err := phone.LoadIdentity(file)
			if err != nil {
				return err
			}
			client, err := phone.Dial(cmd.Context(), who.Address, who.Pin.TLS())
			if err != nil {
				return err
			}
			defer client.Close()
			welcome, err := client.Hello(cmd.Context(), who, "", 0)
			if err != nil {
				return err
			}
			a.keepAnchor(file, welcome)
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

// listen prints a turn as it comes and returns the whole of it.
func (a *app) listen(ctx context.Context, client *phone.Client) (answer, error) {
	whole := answer{Outcomes: []wire.Outcome{}}
	for {
		f, err := client.Next(ctx)
		if err != nil {
			return whole, err
		}
		switch f.Type {
		case wire.TypeText:
			var t wire.Text
			if err := f.Decode(&t); err != nil {
				return whole, err
			}
			whole.Text += t.Text
			if !a.json {
				fmt.Fprint(a.out, phone.Printable(t.Text, true))
			}
		case wire.TypePending:
			var p wire.Pending
			if err := f.Decode(&p); err != nil {
				return whole, err
			}
			if p.Decided {
				fmt.Fprintln(a.err, "approved at the box; working")
				continue
			}
			card := fmt.Sprintf("%s %q → %s", p.Title, p.Text, p.Destination)
			fmt.Fprintf(a.err, "\nlook at the box: %s\n", phone.Printable(card, false))
		case wire.TypeResult:
			var r wire.Result
			if err := f.Decode(&r); err != nil {
				return whole, err
			}
			whole.Outcomes = append(whole.Outcomes, r.Outcome)
			if !a.json {
				a.printOutcome(r.Outcome)
			}
		case wire.TypeError:
			var e wire.Error
			if err := f.Decode(&e); err != nil {
				return whole, err
			}
			return whole, bad(fmt.Errorf("%s (%s)", e.Message, e.Code))
		case wire.TypeTurnEnd:
			if err := f.Decode(&whole.End); err != nil {
				return whole, err
			}
			if !a.json {
				fmt.Fprintln(a.out)
			}
			if whole.End.Reason == "failed" {
				return whole, bad(errors.New(whole.End.Message))
			}
			return whole, judge(whole.Outcomes)
		}
	}
}

// judge says how a turn ended by the last thing that it wanted to do: a model that is refused may do better at its next try.
func judge(outcomes []wire.Outcome) error {
	if len(outcomes) == 0 {
		return nil
	}
	switch o := outcomes[len(outcomes)-1]; o.Status {
	case capabilities.Done.String():
		return nil
	case capabilities.Denied.String():
		return bad(errors.New("somebody at the box said no"))
	case capabilities.Expired.String():
		return bad(errors.New("nobody decided at the box in time"))
	case capabilities.ExpiredUnseen.String():
		return bad(errors.New("nobody looked at the box in time"))
	case capabilities.Withdrawn.String():
		return bad(errors.New("it was taken back before anybody decided"))
	case capabilities.Failed.String():
		return bad(fmt.Errorf("it was tried, and did not work (%s)", o.Code))
	case capabilities.Rejected.String():
		if o.Code == capabilities.CodeFrozen {
			return bad(errors.New("the box is frozen; hold both of its buttons to release it"))
		}
		return bad(fmt.Errorf("the box refused it (%s)", o.Code))
	}
	return &exitError{exitUnclear, errors.New("nobody can say whether it took effect; look at the record")}
}

// printOutcome prints one result apart from the model's prose.
func (a *app) printOutcome(o wire.Outcome) {
	say := func(format string, args ...any) {
		fmt.Fprintln(a.out, phone.Printable(fmt.Sprintf(format, args...), false))
	}
	end := fmt.Sprintf("%s: %s", o.Capability, o.Status)
	if o.Code != "" {
		end += fmt.Sprintf(" (%s)", o.Code)
	}
	fmt.Fprintln(a.out)
	say("── %s", end)
	if o.Message != "" {
		say("   %s", o.Message)
	}
	var found struct {
		Citations []struct{ Title, URL, Content string }
	}
	if o.Status != capabilities.Done.String() || json.Unmarshal(o.Data, &found) != nil {
		return
	}
	for i, c := range found.Citations {
		say("   [%d] %s", i+1, c.Title)
		say("       %s", c.Content)
		say("       %s", c.URL)
	}
	if len(found.Citations) == 0 {
		say("   %s", o.Data)
	}
}
