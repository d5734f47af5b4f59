package proposal

import (
	"strings"

	"assent.home.arpa/inference"
	"assent.home.arpa/inference/dialect"
)

type partKind uint8

const (
	partProse  partKind = iota + 1
	partHidden          // thoughts, and what follows an ambiguity
	partCall            // one call, or a closing mark without one
	partStray           // a reasoning part was closed that was never opened; empty
)

// part is a stretch of the text, as byte offsets.
type part struct {
	kind      partKind
	from, to  int
	complete  bool   // of a call: it has both marks
	ambiguous string // of a call: why it has two readings, or empty
	forged    bool   // not a call: the model wrote a result, which only the box does
}

type mode uint8

const (
	inProse mode = iota
	inCall
	inThought
	inDoubt // after an ambiguity, until the end: nothing is prose, and no call counts
	inForged
)

// lexer splits a text into parts as it arrives, so that Parse and Streamer cannot disagree about what is prose. It holds
// less than one mark's length of text.
type lexer struct {
	m    dialect.Markers
	emit func(part)

	mode mode
	held string // the end of the text, where it may be the beginning of a mark
	at   int    // offset of held
	from int    // offset at which the open call, thought, forged result or stretch of doubt began

	quoted, escaped bool  // inCall: inside a JSON string; after a backslash in one
	drafts          []int // inThought: offsets of the calls in it

	doubt string // inDoubt: why no call counts
	call  bool   // inDoubt: the stretch began with a call's mark
}

func newLexer(m dialect.Markers, emit func(part)) *lexer { return &lexer{m: m, emit: emit} }

func (l *lexer) write(text string) {
	buf := l.held + text
	for {
		i, mark := first(buf, l.marks())
		if mark == "" {
			break
		}
		l.text(buf[:i])
		l.at += len(mark)
		l.mark(mark, l.at-len(mark))
		buf = buf[i+len(mark):]
	}
	n := len(buf) - undecided(buf, l.marks())
	l.text(buf[:n])
	l.held = buf[n:]
}

// close takes the end of the text. Half a mark is what the model meant to say if it ended there, and nothing otherwise.
func (l *lexer) close(stop inference.Stop) {
	end := l.at + len(l.held)
	switch l.mode {
	case inProse:
		kind := partProse
		if stop != inference.StopEnd {
			kind = partHidden
		}
		l.stretch(kind, l.at, end)
	case inCall:
		l.emit(part{kind: partCall, from: l.from, to: end})
	case inThought:
		if len(l.drafts) == 0 {
			l.stretch(partHidden, l.from, end)
			return
		}
		l.reconsider("the reasoning part around it was never closed")
		l.flush(end)
	case inDoubt:
		l.flush(end)
	case inForged:
		l.emit(part{kind: partCall, from: l.from, to: end, forged: true})
	}
}

// marks lists what matters in the present mode.
func (l *lexer) marks() []string {
	switch l.mode {
	case inCall:
		return []string{l.m.CallOpen, l.m.CallClose}
	case inThought:
		return []string{l.m.ReasonOpen, l.m.ReasonClose, l.m.CallOpen}
	case inDoubt:
		return []string{l.m.CallOpen}
	case inForged:
		return []string{l.m.DataClose}
	}
	return []string{l.m.CallOpen, l.m.CallClose, l.m.ReasonOpen, l.m.ReasonClose, l.m.DataOpen, l.m.DataClose}
}

// text takes text that is part of no mark.
func (l *lexer) text(s string) {
	switch l.mode {
	case inProse:
		l.stretch(partProse, l.at, l.at+len(s))
	case inCall:
		for i := range len(s) {
			switch {
			case l.escaped:
				l.escaped = false
			case l.quoted && s[i] == '\\':
				l.escaped = true
			case s[i] == '"':
				l.quoted = !l.quoted
			}
		}
	}
	l.at += len(s)
}

// mark takes one mark, which began at an offset and ends at l.at.
func (l *lexer) mark(mark string, begin int) {
	switch l.mode {
	case inProse:
		l.proseMark(mark, begin)
	case inCall:
		l.callMark(mark, begin)
	case inThought:
		switch mark {
		case l.m.CallOpen:
			l.drafts = append(l.drafts, begin)
		case l.m.ReasonClose:
			l.stretch(partHidden, l.from, l.at)
			l.mode, l.drafts = inProse, nil
		default:
			l.reconsider("a reasoning part was opened inside another")
		}
	case inDoubt:
		l.doubtfulCall(begin)
	case inForged:
		l.emit(part{kind: partCall, from: l.from, to: l.at, forged: true})
		l.mode = inProse
	}
}

func (l *lexer) proseMark(mark string, begin int) {
	switch mark {
	case l.m.CallOpen:
		l.mode, l.from, l.quoted, l.escaped = inCall, begin, false, false
	case l.m.CallClose:
		l.emit(part{kind: partCall, from: begin, to: l.at})
	case l.m.ReasonOpen:
		l.mode, l.from = inThought, begin
	case l.m.DataOpen:
		l.mode, l.from = inForged, begin
	case l.m.DataClose:
		l.emit(part{kind: partCall, from: begin, to: l.at, forged: true})
	default:
		l.emit(part{kind: partStray, from: l.at, to: l.at})
		l.stretch(partProse, begin, l.at)
	}
}

func (l *lexer) callMark(mark string, begin int) {
	switch {
	case mark == l.m.CallOpen:
		l.emit(part{kind: partCall, from: l.from, to: begin, ambiguous: "another call was opened inside it"})
		l.mode, l.from, l.call, l.doubt = inDoubt, begin, true, "it was opened inside another call, or after one that was"
	case l.quoted:
		l.emit(part{kind: partCall, from: l.from, to: l.at, ambiguous: "its closing mark stands inside a string"})
		l.mode, l.from, l.call, l.doubt = inDoubt, l.at, false, "an earlier call was closed inside a string"
	default:
		l.emit(part{kind: partCall, from: l.from, to: l.at, complete: true})
		l.mode = inProse
	}
}

// reconsider turns the open thought into doubt: the calls in it may have been meant.
func (l *lexer) reconsider(why string) {
	l.mode, l.call, l.doubt = inDoubt, false, why
	for _, begin := range l.drafts {
		l.doubtfulCall(begin)
	}
	l.drafts = nil
}

func (l *lexer) doubtfulCall(begin int) {
	l.flush(begin)
	l.from, l.call = begin, true
}

// flush ends the present stretch of doubt.
func (l *lexer) flush(to int) {
	if l.call {
		l.emit(part{kind: partCall, from: l.from, to: to, ambiguous: l.doubt})
		return
	}
	l.stretch(partHidden, l.from, to)
}

func (l *lexer) stretch(k partKind, from, to int) {
	if from < to {
		l.emit(part{kind: k, from: from, to: to})
	}
}

// first finds the earliest mark in s, in one pass whatever s holds.
func first(s string, marks []string) (int, string) {
	for i := range len(s) {
		for _, m := range marks {
			if s[i] == m[0] && strings.HasPrefix(s[i:], m) {
				return i, m
			}
		}
	}
	return len(s), ""
}

// undecided returns how many bytes at the end of s may be the beginning of a mark.
func undecided(s string, marks []string) int {
	longest := 0
	for _, m := range marks {
		for n := min(len(m)-1, len(s)); n > longest; n-- {
			if strings.HasSuffix(s, m[:n]) {
				longest = n
			}
		}
	}
	return longest
}
