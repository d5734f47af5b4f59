// Package story folds the records of an audit log into stories: what a person would recognise as one event.
//
// A call is a dozen records (what the model wrote, what policy said, what the panel showed, the press, the promise, what
// came back) and one story. A start, a pairing, a panic, a fault is one each. Every step of a story says in plain words
// what happened and names the records and digests that prove it, so that whoever does not believe the words can look.
//
// A Teller reads records in order, as audit.Verify shows them, and keeps only what is not told yet. It judges nothing:
// until the verdict on the whole log is known, nothing vouches for what it tells. Readers say so.
//
// # For programs
//
// Story's JSON form is a contract: the viewer and scripts are fed with it. Fields may be added; none changes its meaning
// or goes away. Times in it are Unix milliseconds, sequence numbers are numbers, digests and ids are lower-case
// hexadecimal, panel pages are base64 of the 1,024 bytes of a device.Frame.
//
// # Other people's words
//
// What a model, a phone or a peer wrote stands in Literals, and quoted in sentences. Its Text is safe to print: what would
// move a cursor, reorder or hide is escaped in the way of Go's string literals. It is still somebody else's text: a page
// sets it as text, never as markup, and a spreadsheet cell needs its own care.
package story
