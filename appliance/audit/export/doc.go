// Package export hands a log over: to a stick, to another computer, to whoever is to judge it.
//
// A copy is one directory that explains itself and that can be verified without the box:
//
//	AUDIT-1f2e3d4c-5120/
//	  README.txt          what this is, and how to check it
//	  log/                seg-*.cborseq and anchors.cborseq, byte for byte: the evidence, sufficient by itself;
//	                      and REDACTED.txt in a copy without literal texts
//	  seal.cose           the newest seal (COSE_Sign1), to keep elsewhere as an anchor
//	  FORMAT.md audit.cddl
//	  view/index.html …   for reading in any browser; not evidence
//	  SHA256SUMS          finds damage of the copy, not forgery
//
// The name is made of the first eight digits of the root key and of the newest seal's sequence number. Where something has it
// already, a number is added: nobody here has read what that is, so it neither counts as a copy nor is touched.
//
// There is no verifier in a copy: a box that lies would bring one that lies with it.
//
// A log may be written while it is copied. The anchors are read first and the newest segment last, so that no part of the
// copy promises what another lacks, and the newest segment is read again until it ends with a seal or does not change.
//
// A copy appears whole or not at all. It is made under another name; each file is synced, dropped from the cache and read
// back; then the directory gets its name. A log that is altered or incomplete is copied too, since it is evidence: the
// report, the README and the view say what is wrong with it.
package export
