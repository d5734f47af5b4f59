// Package devicetest holds a display and buttons that behave like the real parts, faults included: a bus that stops
// acknowledging, a display that is slow or hangs, lines that bounce, ring, stick, lose edges or are cut. They run on an injected
// clock, so that a test says when things happen.
package devicetest
