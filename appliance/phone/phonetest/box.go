// Package phonetest is a box as a phone sees it, for tests of what speaks to one: it can say what an honest box never would.
package phonetest

import (
	"encoding/base64"
	"net/http"
	"slices"
	"sync"

	"github.com/gorilla/websocket"

	"assent.home.arpa/appliance/wire"
)

// Box answers phones on every path. Its fields are its behaviour; they are set before the first connection.
type Box struct {
	Nonce [32]byte
	Name  string
	// Replies are what it says to a frame of each type, in order. V and Re are filled in.
	Replies map[wire.Type][]wire.Downstream

	mu    sync.Mutex
	heard []wire.Upstream
}

// Heard returns what phones have said so far.
func (b *Box) Heard() []wire.Upstream {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.heard)
}

// ServeHTTP holds one connection until the phone hangs up.
func (b *Box) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ws, err := new(websocket.Upgrader).Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has answered
	}
	defer ws.Close()
	challenge := wire.Challenge{Nonce: base64.RawURLEncoding.EncodeToString(b.Nonce[:]), Box: b.Name}
	if ws.WriteJSON(wire.Downstream{V: wire.Version, Type: wire.TypeChallenge, Data: challenge}) != nil {
		return
	}
	for {
		var f wire.Upstream
		if ws.ReadJSON(&f) != nil {
			return
		}
		b.mu.Lock()
		b.heard = append(b.heard, f)
		b.mu.Unlock()
		for _, reply := range b.Replies[f.Type] {
			reply.V, reply.Re = wire.Version, f.ID
			if ws.WriteJSON(reply) != nil {
				return
			}
		}
	}
}
