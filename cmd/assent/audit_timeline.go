package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/story"
)

// timeline is stories as lines. They come in the order of their ends, and are read in that of their beginnings.
type timeline []moment

type moment struct {
	first audit.Seq
	when  story.When
	text  string
}

func (t *timeline) add(s story.Story) {
	*t = append(*t, moment{s.First, s.When, fmt.Sprintf("%-29s  %-14s  %s  [%s]", dated(s.When), outcomeWord(s), line(s), reference(s))})
}

// slack is how far a time that is counted back may be off before it is the clock that went back.
const slack = 2 * time.Second

// print prints the lines in the order of the record, which no clock can change, and says between which the clock went back.
func (t timeline) print(w io.Writer) {
	slices.SortStableFunc(t, func(a, b moment) int { return cmp.Compare(a.first, b.first) })
	var before int64 // the last time that is known, in Unix milliseconds
	for _, m := range t {
		if m.when.Clock != story.ClockUnset {
			if back := time.Duration(before-m.when.Unix) * time.Millisecond; before != 0 && back > slack {
				fmt.Fprintf(w, "%45s  the box's clock went back by %s here\n", "", back.Round(time.Second))
			}
			before = m.when.Unix
		}
		fmt.Fprintln(w, m.text)
	}
}

// dated is when a story began, as this computer's people read it.
func dated(w story.When) string {
	switch w.Clock {
	case story.ClockUnset:
		return w.Text
	case story.ClockEstimated:
		return "about " + instant(w.Unix)
	}
	return instant(w.Unix)
}

// line is a story in a line: what it was, for whom, and what makes it worth nothing.
func line(s story.Story) string {
	text := s.Headline
	if s.Kind == story.KindCall && s.Phone > 0 {
		text += fmt.Sprintf(", for phone %d", s.Phone)
	}
	if s.Seal == 0 {
		text += " (never sealed)"
	}
	return text
}

func outcomeWord(s story.Story) string {
	if s.Outcome == story.Noted {
		return ""
	}
	return strings.ReplaceAll(string(s.Outcome), "_", " ")
}

// reference is the short form of an id: enough to ask for it.
func reference(s story.Story) string {
	if s.Kind == story.KindCall {
		return number(s.First)
	}
	return s.ID
}

func number(s audit.Seq) string { return fmt.Sprintf("#%d", s) }
