package ipc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/fxamacker/cbor/v2"
)

// ErrProtocol marks a peer that broke the grammar. The connection is of no further use.
var ErrProtocol = errors.New("ipc: protocol violation")

// Bounds of a write to a peer that does not read, and of a message that a peer has begun to send.
const (
	writeTimeout   = 10 * time.Second
	messageTimeout = 10 * time.Second
)

type codec struct {
	enc cbor.EncMode
	dec cbor.DecMode
}

// newCodec fixes the encoding: deterministic out; in, no duplicate keys, tags, indefinite lengths or unknown fields.
func newCodec() codec {
	enc, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		panic("ipc: internal error: " + err.Error())
	}
	dec, err := cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		MaxNestedLevels:   8,
		MaxArrayElements:  1024,
		MaxMapPairs:       1024,
		UTF8:              cbor.UTF8RejectInvalid,
	}.DecMode()
	if err != nil {
		panic("ipc: internal error: " + err.Error())
	}
	return codec{enc, dec}
}

type envelope struct {
	_       struct{} `cbor:",toarray"`
	Version uint8
	Kind    Kind
	ID      uint64
	Body    []byte
}

// Conn carries messages over a stream. Send may be called from several goroutines, Receive from one.
type Conn struct {
	net   net.Conn
	codec codec

	mu sync.Mutex // serialises writes
}

// NewConn wraps a connected stream: a unix socket, or net.Pipe in tests.
func NewConn(c net.Conn) *Conn { return &Conn{net: c, codec: newCodec()} }

// Close closes the stream.
func (c *Conn) Close() error { return c.net.Close() }

// Encode returns the bytes of one message, length included.
func (c *Conn) Encode(id uint64, m Message) ([]byte, error) {
	body, err := c.codec.enc.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("ipc: encode %T: %w", m, err)
	}
	msg, err := c.codec.enc.Marshal(envelope{Version: Version, Kind: m.Kind(), ID: id, Body: body})
	if err != nil {
		return nil, fmt.Errorf("ipc: encode %T: %w", m, err)
	}
	if len(msg) > MaxMessage {
		return nil, fmt.Errorf("ipc: %T of %d bytes is over the bound of %d", m, len(msg), MaxMessage)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(msg))), msg...), nil
}

// Send writes one message. An error of the stream closes it: half a message may be on its way, and whoever waits to send
// next must not wait for the same peer again.
func (c *Conn) Send(id uint64, m Message) error {
	b, err := c.Encode(id, m)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.write(b); err != nil {
		c.net.Close()
		return fmt.Errorf("ipc: send: %w", err)
	}
	return nil
}

func (c *Conn) write(b []byte) error {
	if err := c.net.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	_, err := c.net.Write(b)
	return err
}

// Receive reads the next message, for which it waits as long as it takes; a message that has begun must be complete
// within messageTimeout. io.EOF means that the peer closed between messages; an error that wraps ErrProtocol means that it
// broke the grammar. After any error the connection must be closed.
func (c *Conn) Receive() (uint64, Message, error) { return c.receive(c.net) }

func (c *Conn) receive(r io.Reader) (uint64, Message, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:1]); err != nil {
		return 0, nil, err
	}
	// A stream without deadlines does without; where it is closed already, the next read says so.
	_ = c.net.SetReadDeadline(time.Now().Add(messageTimeout))
	if _, err := io.ReadFull(r, head[1:]); err != nil {
		return 0, nil, fmt.Errorf("ipc: receive: %w", noEOF(err))
	}
	n := binary.BigEndian.Uint32(head[:])
	if n == 0 || n > MaxMessage {
		return 0, nil, fmt.Errorf("%w: length %d", ErrProtocol, n)
	}
	var buf bytes.Buffer // grows with what arrives: the length is only the peer's word
	if _, err := io.CopyN(&buf, r, int64(n)); err != nil {
		return 0, nil, fmt.Errorf("ipc: receive: %w", noEOF(err))
	}
	_ = c.net.SetReadDeadline(time.Time{})
	return c.decode(buf.Bytes())
}

func (c *Conn) decode(buf []byte) (uint64, Message, error) {
	var e envelope
	if err := c.codec.exact(buf, &e); err != nil {
		return 0, nil, err
	}
	if e.Version != Version {
		return 0, nil, fmt.Errorf("%w: version %d, want %d", ErrProtocol, e.Version, Version)
	}
	m := blank(e.Kind)
	if m == nil {
		return 0, nil, fmt.Errorf("%w: unknown kind %d", ErrProtocol, e.Kind)
	}
	if err := c.codec.exact(e.Body, m); err != nil {
		return 0, nil, fmt.Errorf("kind %d: %w", e.Kind, err)
	}
	return e.ID, m, nil
}

// exact decodes b into v and demands that b is v's one deterministic encoding: the decoder accepts non-minimal integers
// and unsorted keys (fxamacker/cbor issue 734), which would give one message several forms.
func (c codec) exact(b []byte, v any) error {
	if err := c.dec.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%w: %v", ErrProtocol, err)
	}
	again, err := c.enc.Marshal(v)
	if err != nil || !bytes.Equal(again, b) {
		return fmt.Errorf("%w: not the deterministic encoding", ErrProtocol)
	}
	return nil
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
