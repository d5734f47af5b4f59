package capabilities

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net"
)

// Address says where a request may connect to. The zero value is nowhere.
type Address uint8

// The address classes. Do not renumber: the numbers are in grants.
const (
	AddressPublic   Address = 1 // globally routable unicast only
	AddressLAN      Address = 2 // private or link-local, as pinned by the owner
	AddressLoopback Address = 3 // assentsim only; the box's courier has no such case
)

// Request is the exact request, rendered by the guard. Bytes are what was shown, hashed and signed, and what is sent.
type Request struct {
	Scheme     string  `cbor:"1,keyasint"` // "https" or "http"
	Host       string  `cbor:"2,keyasint"` // A-label form, or an IP literal
	Port       uint16  `cbor:"3,keyasint"`
	Address    Address `cbor:"4,keyasint"`
	Bytes      []byte  `cbor:"5,keyasint"`           // HTTP/1.1 request, first byte to last
	Credential string  `cbor:"6,keyasint,omitempty"` // name of the credential slot inside Bytes, or empty
}

// requestDomain keeps a request's digest from being one of anything else.
const requestDomain = "assent/request/v1\x00"

// Digest is SHA-256 over the preimage. It is zero for no request.
func (r *Request) Digest() [32]byte {
	if r == nil {
		return [32]byte{}
	}
	return sha256.Sum256(r.Preimage())
}

// Preimage is destination and bytes in one string of bytes: "assent/request/v1" 00, then scheme, host, port (two bytes, big
// endian), address class (one byte), bytes and credential, each after its length in four bytes, big endian.
func (r *Request) Preimage() []byte {
	b := []byte(requestDomain)
	for _, f := range [][]byte{[]byte(r.Scheme), []byte(r.Host), binary.BigEndian.AppendUint16(nil, r.Port), {byte(r.Address)}, r.Bytes, []byte(r.Credential)} {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(f))), f...)
	}
	return b
}

// ParseRequest undoes Preimage. It reports false for what Preimage cannot have made.
func ParseRequest(preimage []byte) (Request, bool) {
	rest, ok := bytes.CutPrefix(preimage, []byte(requestDomain))
	var fields [6][]byte
	for i := range fields {
		if !ok || len(rest) < 4 || uint64(len(rest)-4) < uint64(binary.BigEndian.Uint32(rest)) {
			return Request{}, false
		}
		n := binary.BigEndian.Uint32(rest)
		fields[i], rest = rest[4:4+n], rest[4+n:]
	}
	if len(rest) > 0 || len(fields[2]) != 2 || len(fields[3]) != 1 {
		return Request{}, false
	}
	return Request{
		Scheme: string(fields[0]), Host: string(fields[1]), Port: binary.BigEndian.Uint16(fields[2]), Address: Address(fields[3][0]),
		Bytes: fields[4], Credential: string(fields[5]),
	}, true
}

// Plan is what one call would do, rendered by the guard from its arguments before anybody is asked.
type Plan struct {
	// Args is the normal form of the arguments: JSON with sorted keys and every default filled in.
	Args []byte
	// Title is the consequence in our words, as in "Search Wikipedia for".
	Title string
	// Text is, word for word, what depends on the model and leaves the box or is written. It is shown in full.
	Text string
	// Destination is the registrable domain or address that the request goes to; empty where nothing leaves.
	Destination string
	// Note adds what the person should know, as in "asks, changes nothing".
	Note string
	// Request is the exact request, or nil where nothing leaves.
	Request *Request
}

// ArgumentError says what is wrong with a call's arguments, without repeating their values.
type ArgumentError struct {
	Code     Code
	Argument string // name from our schema, or empty
	Problem  string
}

func (e *ArgumentError) Error() string {
	if e.Argument == "" {
		return e.Problem
	}
	return fmt.Sprintf("argument %q: %s", e.Argument, e.Problem)
}

// Adapter is the guard's half of a capability. It is pure: it resolves no name and opens nothing.
type Adapter interface {
	Spec() Spec
	// Plan strictly decodes the raw arguments, normalises them and renders the call. It fails with an *ArgumentError.
	Plan(raw []byte) (Plan, error)
}

// Answer is what a Handler has to say about its call.
type Answer struct {
	Status     Status // Done, Failed or Unknown
	Code       Code
	Sent       bool   // at least one byte may have left the box
	HTTPStatus uint16 // 0 where the call was not HTTP
	Items      uint16 // records in Body
	Truncated  bool
	Answer     [32]byte // digest of the answer as it arrived
	Body       []byte   // JSON of the spec's ResultShape, within the bound
}

// Handler is the worker's half of a capability: one call, in a process of its own, with at most one connection.
type Handler interface {
	Revision() string
	// Run makes the call. conn is nil where req is. It never returns more than bound bytes of body, and it reports every
	// failure in the Answer.
	Run(ctx context.Context, args []byte, req *Request, secret []byte, conn net.Conn, bound int) Answer
}
