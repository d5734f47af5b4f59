package guard

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"math"
	"slices"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
)

// offer is the catalog that the gateway was given for an ask. The zero value is none.
type offer struct {
	digest audit.Digest
	names  []string
}

// offerOf digests a catalog as the audit's format says. The digest covers all of it, the names as many as a claim holds.
func offerOf(entries []capabilities.Entry) offer {
	b, err := json.Marshal(entries)
	if err != nil {
		panic("guard: internal error: a catalog cannot be encoded: " + err.Error())
	}
	o := offer{digest: sha256.Sum256(b)}
	for _, e := range entries[:min(len(entries), audit.MaxOffered)] {
		o.names = append(o.names, e.Name)
	}
	return o
}

// offered notes what was given to be offered under the live ask of a conversation. The first counts: a turn keeps its
// catalog, and asks later only to learn what is gone.
func (a *asks) offered(c conversation, o offer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e := a.byID[a.current[c]]; e != nil && e.offer.digest == (audit.Digest{}) {
		e.offer = o
	}
}

// ended returns the asks that ended since it was last called.
func (a *asks) ended() []*ask {
	a.mu.Lock()
	defer a.mu.Unlock()
	over := a.over
	a.over = nil
	return over
}

// endAll ends what is still live, in the order in which it came.
func (a *asks) endAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range slices.SortedFunc(maps.Keys(a.byID), func(x, y ipc.ID) int {
		return int(a.byID[x].number) - int(a.byID[y].number)
	}) {
		a.endLocked(id)
	}
}

// turnsOver records each ask that has ended, so that the log alone tells how many questions led to a proposal and what
// could have been proposed. A phone that asks without end is counted, like all that floods.
func (g *guard) turnsOver(ctx context.Context) {
	for _, e := range g.asks.ended() {
		c := audit.Claim{
			From: audit.ByGateway, Class: audit.ClaimTurn, Ask: audit.ID(e.id), AskDigest: e.digest, Slot: e.conv.slot,
			Conversation: audit.ID(e.conv.id), Catalog: e.offer.digest, Offered: e.offer.names,
		}
		if e.turn != nil {
			c.Count = uint16(min(e.turn.Proposals(), math.MaxUint16))
		}
		g.noteFrom(ctx, source{slot: e.conv.slot, turns: true}, audit.KindClaim, uint8(audit.ClaimTurn), c)
	}
}
