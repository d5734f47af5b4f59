// Package ipc is the contract between the roles: what gateway, guard, courier, worker and exporter may say to each other.
//
// # Framing
//
// A message is a four-byte big-endian length and that many bytes of CBOR: the array
//
//	[version, kind, id, body]     uint, uint, uint, bstr
//
// in which body is the deterministic encoding (RFC 8949 section 4.2.1) of the message's map with integer keys. Anything
// longer than MaxMessage, of another version, of an unknown kind, with an unknown or repeated key, or not deterministically
// encoded is refused, and the connection with it: a peer that breaks the grammar is not a peer.
//
// The id pairs answers with questions: whoever asks picks it, from 1; id 0 marks a notice that answers nothing and that
// nothing answers. Notices are dealt with in their order.
//
// # Who may say what
//
//	gateway → guard     Hello Auth CatalogRequest Ask EndAsk Propose Withdraw Claim Pair StatusRequest
//	                    InboxRequest Seen Cable
//	guard   → gateway   Welcome AuthReply Catalog AskReply Pending Outcome PairReply Status Notice
//	                    Inbox CableReply Error
//	courier → guard     Challenge Result Error
//	guard   → courier   Execute Abort
//	courier → worker    Job (with at most one descriptor)
//	worker  → courier   JobResult
//	exporter → guard    StickHello StickReply
//	guard   → exporter  StickOp
//
// Each socket has one peer and lies in a directory that only the two can enter; CheckPeer is the second lock on that door.
//
// # Compatibility
//
// Keys and kinds are never renumbered or reused. Both ends come from one binary, so a version that differs is a deployment
// mistake and is refused.
package ipc
