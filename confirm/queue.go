package confirm

import (
	"slices"

	"assent.home.arpa/capabilities"
)

// queue holds the cards behind the front one. It serves persons in turn: the next card is the oldest one of whoever was
// served least recently, so that many requests of one person cannot hold up another's.
type queue struct {
	cards  []*card
	served []string // persons, the least recently served first; bounded by the persons that may queue at once
}

func (q *queue) push(c *card) { q.cards = append(q.cards, c) }

func (q *queue) len() int { return len(q.cards) }

// next removes and returns the card whose turn it is, or nil.
func (q *queue) next() *card {
	if len(q.cards) == 0 {
		return nil
	}
	best := 0
	for i, c := range q.cards {
		if q.rank(c.req.Person) < q.rank(q.cards[best].req.Person) {
			best = i
		}
	}
	c := q.cards[best]
	q.cards = slices.Delete(q.cards, best, best+1)
	q.served = append(slices.DeleteFunc(q.served, func(p string) bool { return p == c.req.Person }), c.req.Person)
	if len(q.served) > maxQueued {
		q.served = slices.Delete(q.served, 0, 1)
	}
	return c
}

// rank orders persons: never served comes first, then by how long ago.
func (q *queue) rank(person string) int { return slices.Index(q.served, person) }

// take removes the card of inv and returns it, or nil.
func (q *queue) take(inv capabilities.InvocationID) *card {
	i := slices.IndexFunc(q.cards, func(c *card) bool { return c.req.Inv == inv })
	if i < 0 {
		return nil
	}
	c := q.cards[i]
	q.cards = slices.Delete(q.cards, i, i+1)
	return c
}

// drain empties the queue.
func (q *queue) drain() []*card {
	cards := q.cards
	q.cards = nil
	return cards
}
