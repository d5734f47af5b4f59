package proposal

import (
	"strings"

	"assent.home.arpa/inference"
	"assent.home.arpa/inference/dialect"
)

// Streamer turns the raw text of a step into prose that may be shown while the model still writes. It never shows a call,
// a thought or half a mark, holds less than one mark's length of text, and shows in the end exactly Parsed.Prose.
type Streamer struct {
	lexer *lexer
	buf   string // text that the lexer is at work on
	start int    // offset of buf
	out   strings.Builder
}

// NewStreamer begins a step.
func NewStreamer(m dialect.Markers) *Streamer {
	s := &Streamer{}
	s.lexer = newLexer(m, func(p part) {
		if p.kind == partProse {
			s.out.WriteString(s.buf[p.from-s.start : p.to-s.start])
		}
	})
	return s
}

// Write takes the next raw text and returns the prose that is now certain.
func (s *Streamer) Write(delta string) string {
	s.start, s.buf = s.lexer.at, s.lexer.held+delta
	s.lexer.write(delta)
	return s.take()
}

// Close returns the prose that was held back. The Streamer is done.
func (s *Streamer) Close(stop inference.Stop) string {
	s.start, s.buf = s.lexer.at, s.lexer.held
	s.lexer.close(stop)
	return s.take()
}

func (s *Streamer) take() string {
	defer s.out.Reset()
	return s.out.String()
}
