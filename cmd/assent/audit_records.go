package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/clock"
)

func parseInv(s string) (id audit.ID, err error) {
	if s == "" {
		return id, nil
	}
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(id) {
		return id, &exitError{exitWrongCall, errors.New("--inv takes 32 hex digits")}
	}
	if id = audit.ID(b); id == (audit.ID{}) {
		return id, &exitError{exitWrongCall, errors.New("--inv: no call has an id of zeros only")}
	}
	return id, nil
}

// printRecord prints one record on a line, in full if wanted.
func (a *app) printRecord(e audit.Entered, full bool) {
	if a.json {
		a.printJSON(recordLine(e))
		return
	}
	fmt.Fprintf(a.out, "%6d  %-23s  %s\n", e.Seq, recorded(e), sentence(e))
	if full {
		a.printFields(e)
	}
}

// recorded is the wall clock where it was set, and the time since the box's start otherwise.
func recorded(e audit.Entered) string {
	switch {
	case e.Redacted:
		return "(removed)"
	case e.Clock == clock.Unset:
		return "start+" + e.Boot.Round(time.Second).String()
	}
	return instant(e.Wall)
}

// sentence says in words what a record says.
func sentence(e audit.Entered) string {
	switch p := e.Payload.(type) {
	case nil:
		return "literal text, removed"
	case *audit.Genesis:
		return fmt.Sprintf("log begun; root key %s", p.Root)
	case *audit.Segment:
		return fmt.Sprintf("segment %d", p.Index)
	case *audit.Boot:
		return bootSentence(p)
	case *audit.Proposal:
		return fmt.Sprintf("proposal %s: the model asked for %s, for phone %d", e.Inv, quote(p.Name), p.Slot)
	case *audit.Decision:
		return decisionSentence(p)
	case *audit.Approval:
		return fmt.Sprintf("at the box: %s", p.Outcome)
	case *audit.IntentRecord:
		return "execution promised"
	case *audit.EffectRecord:
		return strings.TrimSpace(fmt.Sprintf("outcome: %s %s", p.Status, code(string(p.Code))))
	case *audit.Observe:
		return fmt.Sprintf("looked again: as expected: %s", p.Matches)
	case *audit.Seal:
		return "sealed; head " + audit.Head{Link: e.Link}.Code()
	case *audit.Epoch:
		return fmt.Sprintf("seal key %d from here on", p.N)
	case *audit.ClockStep:
		return fmt.Sprintf("wall clock set from %s to %s (%s)", instant(p.From), instant(p.To), p.ToState)
	case *audit.Admin:
		return administration(p)
	case *audit.Fault:
		return fmt.Sprintf("fault: %s in %s %s", p.Class, quote([]byte(p.Where)), code(p.Code))
	case *audit.Suppressed:
		return fmt.Sprintf("%d records of kind %s were too many to keep", p.Count, p.Of)
	case *audit.Blob:
		return fmt.Sprintf("literal text: %s, %d bytes", p.Purpose, len(p.Bytes))
	case *audit.Redact:
		return fmt.Sprintf("the text of record %d was removed by %s", p.Seq, p.By)
	case *audit.Claim:
		return claimSentence(p)
	case *audit.Freeze:
		if p.On {
			return fmt.Sprintf("frozen by %s", p.By)
		}
		return fmt.Sprintf("released by %s", p.By)
	case *audit.Feed:
		return fmt.Sprintf("feed %s: %s %s", quote([]byte(p.ID)), p.Status, code(string(p.Code)))
	case *audit.Tool:
		return fmt.Sprintf("tool %s: %s", quote(p.Name), p.State)
	case *audit.Withdraw:
		return fmt.Sprintf("withdrawn by %s", p.By)
	}
	return e.Kind.String()
}

func administration(p *audit.Admin) string {
	s := "administration: " + p.Action.String()
	if p.Subject != "" {
		s += " " + quote([]byte(p.Subject))
	}
	switch p.On {
	case audit.Yes:
		s += " on"
	case audit.No:
		s += " off"
	}
	return s + ": " + p.Outcome.String()
}

func bootSentence(p *audit.Boot) string {
	s := "start"
	if p.Build != "" {
		s += " of build " + quote([]byte(p.Build))
	}
	if p.Program == audit.ProgramSimulator {
		s += " (simulator)"
	}
	if p.TailBytes > 0 {
		s += fmt.Sprintf("; %d bytes that were never acknowledged were set aside", p.TailBytes)
	}
	if n := len(p.Unresolved); n > 0 {
		s += fmt.Sprintf("; %d calls were cut off and their outcome is unknown", n)
	}
	return s
}

func decisionSentence(p *audit.Decision) string {
	switch p.Verdict {
	case audit.Allow:
		return fmt.Sprintf("%s: goes on without a press (rule %s)", p.Stage, quote([]byte(p.Rule)))
	case audit.Confirm:
		return fmt.Sprintf("%s: needs a press (rule %s)", p.Stage, quote([]byte(p.Rule)))
	}
	return strings.TrimSpace(fmt.Sprintf("%s: %s %s", p.Stage, p.Status, code(string(p.Code))))
}

func claimSentence(p *audit.Claim) string {
	s := fmt.Sprintf("claimed by %s: %s", p.From, p.Class)
	if p.Code != "" {
		s += " " + code(string(p.Code))
	}
	if len(p.Text) > 0 {
		s += " " + quote(p.Text)
	}
	if p.Count > 0 {
		s += ", " + plural(uint64(p.Count), "proposal")
	}
	return s
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "(" + strings.Trim(strconv.Quote(s), `"`) + ")"
}

// instant is a time as this computer's people read it.
func instant(ms int64) string { return time.UnixMilli(ms).Format("2006-01-02 15:04:05 MST") }

// quote shows bytes that somebody else chose: nothing in them can move a cursor or end the quotation.
func quote(b []byte) string {
	if !utf8.Valid(b) {
		return "hex " + hex.EncodeToString(b)
	}
	return strconv.Quote(string(b))
}

func (a *app) printFields(e audit.Entered) {
	for _, f := range audit.Fields(e.Payload) {
		fmt.Fprintf(a.out, "          %s: %s\n", f.Name, plain(reflect.ValueOf(f.Value)))
	}
}

// plain is a field's value for a person.
func plain(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case audit.Bytes:
		return quote(x)
	case fmt.Stringer:
		return x.String()
	case string:
		return quote([]byte(x))
	}
	switch v.Kind() {
	case reflect.String:
		return quote([]byte(v.String()))
	case reflect.Slice:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = plain(v.Index(i))
		}
		return strings.Join(parts, ", ")
	}
	return fmt.Sprint(v.Interface())
}

// recordLine is the JSON form of a record. Byte strings and digests are hexadecimal, enumerations are words, durations are
// nanoseconds.
func recordLine(e audit.Entered) map[string]any {
	line := map[string]any{
		"seq": e.Seq, "kind": e.Kind.String(), "segment": e.Segment, "offset": e.Offset, "link": e.Link.String(),
	}
	if e.Redacted {
		line["redacted"] = true
		return line
	}
	line["boot_id"], line["boot_ns"], line["clock"] = e.BootID.String(), int64(e.Boot), e.Clock.String()
	if e.Wall != 0 {
		line["wall_ms"] = e.Wall
	}
	if e.Inv != (audit.ID{}) {
		line["inv"] = e.Inv.String()
	}
	payload := map[string]any{}
	for _, f := range audit.Fields(e.Payload) {
		payload[f.Name] = machine(reflect.ValueOf(f.Value))
	}
	line["payload"] = payload
	return line
}

func machine(v reflect.Value) any {
	switch x := v.Interface().(type) {
	case time.Duration:
		return int64(x)
	case fmt.Stringer:
		return x.String()
	}
	switch v.Kind() {
	case reflect.Slice:
		parts := make([]any, v.Len())
		for i := range parts {
			parts[i] = machine(v.Index(i))
		}
		return parts
	case reflect.Struct:
		fields := map[string]any{}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				fields[strings.ToLower(f.Name)] = machine(v.Field(i))
			}
		}
		return fields
	}
	return v.Interface()
}
