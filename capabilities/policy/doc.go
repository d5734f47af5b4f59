// Package policy decides, from facts alone, whether a call may go on and whether somebody at the box must press for it.
//
// Everything here is a pure function: no clock, no file, no lock. The executor gathers Facts; Decide applies the rules in
// their order and names the one that decided, for the audit. Digest names the rules themselves, so that a record says
// under which policy it was made.
//
// # What needs a press
//
// Everything except what is read-only, stays within the box (or reads a snapshot that the owner set up), and runs in a
// sandbox that has no way out. See NeedsPress; it is the only place that knows.
//
// # Who may do what
//
// A guest may chat, and ask what concerns the box itself and needs no press (its temperature, say). Adults and owners may
// ask for everything that the registry has; what needs a press still needs it, from whoever asks. No role approves anything.
//
// # Fatigue
//
// After a denial that capability is refused for the rest of the turn, however the request is worded. After a denial, and
// after a request that nobody opened, the person's requests that need a press wait 30 s, then 2 min, then 10 min, counted
// on the boot-time clock, whatever the conversation. A card that was announced and came to nothing, taken back or opened and
// left undecided, is free three times; without ten quiet minutes, each after those counts as a refusal. An approval resets
// all that.
package policy
