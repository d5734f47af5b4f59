// Package phone is a phone without a screen: it speaks appliance/wire to a gateway, for the assent command and for
// assentsim's unattended demonstration.
//
// It can do what the page can: pair (which somebody at the box must accept), ask, cancel and take a request back. Besides, it can
// ask for the record over the cable, which somebody at the box must allow.
package phone

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"assent.home.arpa/appliance/wire"
)

// MaxFrame bounds a frame from the gateway: a snapshot of a long conversation is the largest.
const MaxFrame = 4 << 20

// Frame is one frame from the gateway, its data still encoded.
type Frame struct {
	V    int             `json:"v"`
	Seq  uint64          `json:"seq"`
	Re   string          `json:"re"`
	Type wire.Type       `json:"type"`
	Data json.RawMessage `json:"data"`
}

// Decode reads the frame's data into v.
func (f Frame) Decode(v any) error {
	if err := json.Unmarshal(f.Data, v); err != nil {
		return fmt.Errorf("phone: %s frame: %w", f.Type, err)
	}
	return nil
}

// RefusedError is an error that the gateway answered.
type RefusedError struct{ Reason wire.Error }

func (e *RefusedError) Error() string { return fmt.Sprintf("%s (%s)", e.Reason.Message, e.Reason.Code) }

// Client is one connection. Its methods are for one goroutine, but Next may run in another.
type Client struct {
	ws    *websocket.Conn
	nonce [32]byte
	box   string
	ids   atomic.Uint64
}

// Dial connects to the box at address ("http://127.0.0.1:8480", "https://assent.local:8443") and reads its challenge.
// tlsConfig may be nil.
func Dial(ctx context.Context, address string, tlsConfig *tls.Config) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("phone: %q is not an address such as https://assent.local", address)
	}
	origin := u.Scheme + "://" + u.Host
	u.Scheme = map[string]string{"http": "ws", "https": "wss"}[u.Scheme]
	u.Path = "/ws"
	dialer := websocket.Dialer{HandshakeTimeout: 10 * time.Second, TLSClientConfig: tlsConfig}
	ws, resp, err := dialer.DialContext(ctx, u.String(), http.Header{"Origin": {origin}})
	if err != nil {
		if resp != nil {
			return nil, fmt.Errorf("phone: %s answered with HTTP status %d", address, resp.StatusCode)
		}
		return nil, fmt.Errorf("phone: cannot reach %s: %w", address, err)
	}
	ws.SetReadLimit(MaxFrame)
	c := &Client{ws: ws}
	if err := c.challenged(ctx); err != nil {
		ws.Close()
		return nil, err
	}
	return c, nil
}

func (c *Client) challenged(ctx context.Context) error {
	f, err := c.Next(ctx)
	if err != nil {
		return err
	}
	var ch wire.Challenge
	if f.Type != wire.TypeChallenge {
		return fmt.Errorf("phone: the first frame is %q, not a challenge", f.Type)
	}
	if err := f.Decode(&ch); err != nil {
		return err
	}
	nonce, err := base64.RawURLEncoding.DecodeString(ch.Nonce)
	if err != nil || len(nonce) != len(c.nonce) {
		return errors.New("phone: the challenge has no nonce")
	}
	copy(c.nonce[:], nonce)
	c.box = ch.Box
	return nil
}

// Box is the box's name.
func (c *Client) Box() string { return c.box }

// Close hangs up.
func (c *Client) Close() error { return c.ws.Close() }

// Next waits for the next frame.
func (c *Client) Next(ctx context.Context) (Frame, error) {
	stop := context.AfterFunc(ctx, func() { c.ws.Close() })
	defer stop()
	_, b, err := c.ws.ReadMessage()
	if err != nil {
		if ctx.Err() != nil {
			return Frame{}, ctx.Err()
		}
		return Frame{}, fmt.Errorf("phone: connection lost: %w", err)
	}
	var f Frame
	if err := json.Unmarshal(b, &f); err != nil {
		return Frame{}, fmt.Errorf("phone: not a frame: %w", err)
	}
	if f.V != wire.Version {
		return Frame{}, fmt.Errorf("phone: the box speaks version %d, this program %d; update the older one", f.V, wire.Version)
	}
	return f, nil
}

// Send writes one frame and returns its id.
func (c *Client) Send(t wire.Type, data any) (string, error) {
	raw, err := json.Marshal(data)
	if err != nil {
		return "", fmt.Errorf("phone: encode: %w", err)
	}
	id := "c" + strconv.FormatUint(c.ids.Add(1), 10)
	b, err := json.Marshal(wire.Upstream{V: wire.Version, ID: id, Type: t, Data: raw})
	if err != nil {
		return "", fmt.Errorf("phone: encode: %w", err)
	}
	if err := c.ws.SetWriteDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return "", fmt.Errorf("phone: send: %w", err)
	}
	if err := c.ws.WriteMessage(websocket.TextMessage, b); err != nil {
		return "", fmt.Errorf("phone: send: %w", err)
	}
	return id, nil
}

// answer waits for the frame that answers id and decodes it into v; other frames are dropped.
func (c *Client) answer(ctx context.Context, id string, want wire.Type, v any) error {
	for {
		f, err := c.Next(ctx)
		if err != nil {
			return err
		}
		switch {
		case f.Re != id && f.Type != wire.TypeError:
		case f.Type == wire.TypeError:
			refused := &RefusedError{}
			if err := f.Decode(&refused.Reason); err != nil {
				return err
			}
			return refused
		case f.Type == want:
			return f.Decode(v)
		}
	}
}

// Pair asks for a slot with the code that the panel shows, and waits until somebody at the box has accepted. compare, which
// may be nil, is told first what the panel must show of the key that this phone made (wire.KeyCode).
func (c *Client) Pair(ctx context.Context, code, name string, compare func(keyCode string)) (*Identity, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	point, err := key.PublicKey.Bytes()
	if err != nil {
		return nil, fmt.Errorf("phone: key: %w", err)
	}
	if compare != nil {
		compare(wire.KeyCode(code, point))
	}
	id, err := c.Send(wire.TypePair, wire.Pair{Code: code, Name: name, Key: encode(point)})
	if err != nil {
		return nil, err
	}
	var p wire.Paired
	if err := c.answer(ctx, id, wire.TypePaired, &p); err != nil {
		return nil, err
	}
	return &Identity{Slot: p.Slot, Name: p.Name, key: key}, nil
}

// Hello proves who is there. last and session resume an earlier connection; both may be zero.
func (c *Client) Hello(ctx context.Context, who *Identity, session string, last uint64) (wire.Welcome, error) {
	sig, err := who.sign(wire.AuthBytes(who.Slot, c.nonce))
	if err != nil {
		return wire.Welcome{}, err
	}
	id, err := c.Send(wire.TypeHello, wire.Hello{Slot: who.Slot, Sig: sig, Session: session, Last: last})
	if err != nil {
		return wire.Welcome{}, err
	}
	var w wire.Welcome
	if err := c.answer(ctx, id, wire.TypeWelcome, &w); err != nil {
		return wire.Welcome{}, err
	}
	who.Counter = max(who.Counter, w.Counter)
	return w, nil
}

// NewConversation names a conversation.
func NewConversation() [16]byte {
	var c [16]byte
	rand.Read(c[:]) // never fails (crypto/rand)
	return c
}

// Ask sends one signed question. What comes of it arrives through Next.
func (c *Client) Ask(who *Identity, conversation [16]byte, text string) (string, error) {
	who.Counter++
	sig, err := who.sign(wire.AskBytes(who.Slot, conversation, who.Counter, wire.TextDigest(text)))
	if err != nil {
		return "", err
	}
	return c.Send(wire.TypeAsk, wire.Ask{Conversation: hex.EncodeToString(conversation[:]), Counter: who.Counter, Text: text, Sig: sig})
}

// Cable asks the box to offer its record over its USB cable, which only the owner's phone may, and for how long it does.
func (c *Client) Cable(ctx context.Context, who *Identity) (wire.CableOffer, error) {
	who.Counter++
	sig, err := who.sign(wire.CableBytes(who.Slot, who.Counter))
	if err != nil {
		return wire.CableOffer{}, err
	}
	id, err := c.Send(wire.TypeCable, wire.Cable{Counter: who.Counter, Sig: sig})
	if err != nil {
		return wire.CableOffer{}, err
	}
	var offer wire.CableOffer
	err = c.answer(ctx, id, wire.TypeCable, &offer)
	return offer, err
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// sign returns the signature as WebCrypto makes it: r‖s of 32 bytes each (IEEE P1363), base64url.
func (i *Identity) sign(message []byte) (string, error) {
	digest := sha256.Sum256(message)
	r, s, err := ecdsa.Sign(rand.Reader, i.key, digest[:])
	if err != nil {
		return "", fmt.Errorf("phone: sign: %w", err)
	}
	var sig [64]byte
	r.FillBytes(sig[:32])
	s.FillBytes(sig[32:])
	return encode(sig[:]), nil
}
