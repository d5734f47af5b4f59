package llama

import (
	"container/list"
	"sync"
)

// Bounds of the cache: texts, and bytes of texts and ids together.
const (
	cacheTexts = 4096
	cacheBytes = 8 << 20
)

// cache remembers the ids of texts, the least recently used forgotten first, so that a turn asks the engine only about
// the text that is new in it.
type cache struct {
	mu    sync.Mutex
	texts map[string]*list.Element
	order *list.List // of *cached, most recently used first
	bytes int
}

type cached struct {
	text string
	ids  []int32
}

func (c *cached) size() int { return len(c.text) + 4*len(c.ids) + 128 }

func newCache() *cache { return &cache{texts: map[string]*list.Element{}, order: list.New()} }

// get returns the ids of text, asking for them if need be. The caller must not change them.
func (c *cache) get(text string, ask func() ([]int32, error)) ([]int32, error) {
	c.mu.Lock()
	e, ok := c.texts[text]
	if ok {
		c.order.MoveToFront(e)
	}
	c.mu.Unlock()
	if ok {
		return e.Value.(*cached).ids, nil
	}
	ids, err := ask()
	if err != nil {
		return nil, err
	}
	c.put(&cached{text, ids})
	return ids, nil
}

func (c *cache) put(n *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.texts[n.text]; ok || n.size() > cacheBytes/4 {
		return
	}
	c.texts[n.text] = c.order.PushFront(n)
	c.bytes += n.size()
	for c.bytes > cacheBytes || c.order.Len() > cacheTexts {
		old := c.order.Remove(c.order.Back()).(*cached)
		delete(c.texts, old.text)
		c.bytes -= old.size()
	}
}
