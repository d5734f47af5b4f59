package audit

import (
	"fmt"
	"strings"
)

// About says what a Problem is about, and so which of its numbers mean anything to a person. The zero value is about
// nothing.
type About uint8

// What a problem can be about.
const (
	AboutRecord  About = 1 // the bytes at Segment and Offset
	AboutAnchors About = 2 // the file of anchors beside the segments, found wrong at the record Seq
	AboutLog     About = 3 // the log as a whole: its beginning, its end, or a gap
	AboutKept    About = 4 // the log, held against what somebody kept elsewhere
	AboutTexts   About = 5 // literal texts that are not there
)

func (a About) String() string {
	return name(uint8(a), "nothing", "record", "anchors", "log", "kept", "texts")
}

// Problem is the first thing that is wrong.
type Problem struct {
	About   About
	Segment uint32
	Offset  int64 // in the segment's file
	Seq     Seq   // of the record that was due
	Reason  string
}

// String names the place where there is one.
func (p Problem) String() string {
	if p.About == AboutRecord {
		return fmt.Sprintf("segment %d offset %d: record %d: %s", p.Segment, p.Offset, p.Seq, p.Reason)
	}
	return p.Reason
}

// reasonOf says what is wrong for a person, who need not know how a decoder names what it refuses.
func reasonOf(err error) string {
	malformed := ErrMalformed.Error() + ": "
	reason := strings.Replace(err.Error(), malformed, "these bytes are not as a box writes them: ", 1)
	return strings.ReplaceAll(reason, malformed, "")
}

func (v *verifier) problem(s Status, about About, at place, reason string) {
	v.report.Status = s
	v.report.Problem = &Problem{About: about, Segment: at.segment, Offset: at.offset, Seq: at.seq, Reason: reason}
}
