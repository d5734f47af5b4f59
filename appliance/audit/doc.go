// Package audit writes, recovers and verifies the box's one log: everything that was proposed, decided, approved, done,
// refused or lost.
//
// Its use is four calls. Open recovers and opens a log. Intend is barrier 1: the call's records and the promise to execute
// it are sealed and on flash when it returns. Effect is barrier 2: the outcome is on flash before anybody hears of it.
// Append is for everything on which nothing waits. What must not run without an audit takes an Intent, which only Intend
// makes; where it fails, nothing may run.
//
// # The invariant
//
// Every batch that was acknowledged ends with a signed seal. So bytes after the last valid seal were never acknowledged,
// no effect ran on them, and repairing a torn tail can never discard what somebody relied on. An intent is sealed before
// its effect can begin; an intent without an effect record is an effect that nobody can speak for, recorded as unknown at
// the next start and never repeated.
//
// The writer takes every record through the reader's own checks before it is written: encoding, limits, links, and whether
// a sound box could have written it (an intent that policy allowed, a press whose receipt is for exactly this call, an
// effect that was promised). A log that would not verify cannot be written.
//
// # Files
//
//	LOCK                    flock(2): one writer
//	seg-00000012.cborseq    segments of 1 MiB, numbered from 0 without gaps; what is not written yet is zeros
//	seg-00000013.spare      the next segment, zeroed and durable in advance
//	key.cur, key.next       the private seal key in force, and the next until its epoch is sealed
//	root.pub                the device root key, in hexadecimal, for people to compare
//	torn-*.bin              tails that a start set aside, the newest 16
//	redact.todo             a redaction under way, until its last body is gone
//	replace.tmp             a file that is to take another's place and is not finished
//	damaged-0001/           a log that could not be opened and was set aside (SetAside), as it was but for its private keys
//	setaside.todo           while that is under way: Open refuses
//	previous.log            CBOR {1: which directory, 2: link of the last seal there}: the next genesis names it
//
// # Bytes
//
// A segment is a CBOR sequence (RFC 8742) of frames and zero bytes; FORMAT.md and audit.cddl beside this file say it in
// full, and the bytes of every kind of record are fixed by the golden files of the tests. In short:
//
//	record frame   [0, body: bstr, link: bstr .size 32]
//	blob frame     [1, body: bstr, link: bstr .size 32]
//	redacted frame [1, [digest: bstr .size 32], link: bstr .size 32]
//
//	link = SHA-256("assent/audit/v1" 00 || previous link || class || SHA-256(body))
//
// The body is one record in deterministic CBOR (RFC 8949 section 4.2.1) with integer keys, no floats, no tags and no null.
// Batches begin at multiples of 4 KiB: after a seal, zeros run to the next one. Zeros anywhere else are damage.
//
// # Evolution
//
// Keys and numbers are never changed or used again. A reader of version 1 refuses what it does not know, since a verifier
// that skips a field vouches for what it did not check; anything new is version 2, which a new log's genesis says.
//
// # What it does not do
//
// Forward security is that of files: an erased key is unlinked, and flash may keep it. A log rolled back to an earlier seal
// is whole from inside; only a head that somebody noted elsewhere shows it (Head, VerifyOptions.Head). Who controls the box
// while it runs can lie about the present run, though not about earlier ones.
package audit
