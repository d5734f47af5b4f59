package guard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
)

// inbox keeps the calls with an unknown outcome until a person has seen them. The log says what each of them is; the file
// says, over restarts and over the pruning of the log, which of them nobody has seen.
type inbox struct {
	path string

	acks sync.Mutex // one person says seen at a time, so that each item is recorded as seen once

	mu   sync.Mutex
	file inboxFile
}

type inboxFile struct {
	Version int       `json:"version"`
	Items   []unknown `json:"items"` // the oldest first
	Older   uint32    `json:"older"` // more than the list holds: they are in the audit alone
}

// unknown is a call of which nobody can say whether it took effect. It is never made again. Texts are bounded.
type unknown struct {
	Inv         []byte                 `json:"inv"`
	Intent      audit.Seq              `json:"intent"` // of the log in use; 0 where it was promised in another
	Slot        uint32                 `json:"slot"`
	Person      string                 `json:"person"`
	Name        capabilities.Name      `json:"name"`
	Version     capabilities.Version   `json:"version"`
	Log         capabilities.LogPolicy `json:"log"`
	Title       string                 `json:"title,omitempty"`
	Text        string                 `json:"text,omitempty"`
	Destination string                 `json:"destination,omitempty"`
	When        int64                  `json:"when"` // Unix milliseconds, 0 where the clock was unset
	Why         capabilities.Code      `json:"why"`
	Cut         bool                   `json:"cut"`
	Sent        bool                   `json:"sent"`
}

func (u unknown) inv() capabilities.InvocationID { return capabilities.InvocationID(u.Inv) }

// bounded cuts a text at ipc.MaxUnknownText bytes, between two characters, and shows that it did.
func bounded(s string) string {
	const more = "…"
	if len(s) <= ipc.MaxUnknownText {
		return s
	}
	n := ipc.MaxUnknownText - len(more)
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + more
}

// openInbox reads what nobody has seen. A damaged file is an error: nobody must lose sight of what may have been done.
func openInbox(path string) (*inbox, error) {
	i := &inbox{path: path, file: inboxFile{Version: 1}}
	b, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("guard: inbox: %w", err)
	}
	if b == nil {
		return i, nil
	}
	damaged := fmt.Errorf("guard: inbox: %s is damaged; remove it, and look for unknown outcomes in the audit", path)
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&i.file); err != nil || i.file.Version != 1 || len(i.file.Items) > ipc.MaxUnknowns {
		return nil, damaged
	}
	for _, u := range i.file.Items {
		if len(u.Inv) != len(capabilities.InvocationID{}) {
			return nil, damaged
		}
	}
	return i, nil
}

// change replaces the file with what edit makes of it. Where the disk does not take it the change holds for this run, and
// the error says that a restart undoes it: what was added comes back from the log, what was seen is shown once more.
func (i *inbox) change(edit func(f *inboxFile)) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	f := i.file
	f.Items = slices.Clone(f.Items)
	edit(&f)
	i.file = f
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return replace(i.path, b, 0o600)
}

// add keeps calls that are not in it yet, and reports how many those are. Beyond the bound the oldest are only counted.
func (i *inbox) add(calls ...unknown) (added int, err error) {
	fresh := slices.DeleteFunc(slices.Clone(calls), func(u unknown) bool {
		_, known := i.find(u.inv())
		return known
	})
	if len(fresh) == 0 {
		return 0, nil
	}
	return len(fresh), i.change(func(f *inboxFile) {
		f.Items = append(f.Items, fresh...)
		if extra := len(f.Items) - ipc.MaxUnknowns; extra > 0 {
			f.Items, f.Older = f.Items[extra:], f.Older+uint32(extra)
		}
	})
}

// remove forgets a call that somebody has seen. With the last one the count of older ones goes too: whoever has read the
// list was told of it.
func (i *inbox) remove(inv capabilities.InvocationID) error {
	return i.change(func(f *inboxFile) {
		f.Items = slices.DeleteFunc(f.Items, func(u unknown) bool { return u.inv() == inv })
		if len(f.Items) == 0 {
			f.Older = 0
		}
	})
}

// orphan notes that the log in which the calls were promised was set aside.
func (i *inbox) orphan() error {
	return i.change(func(f *inboxFile) {
		for at := range f.Items {
			f.Items[at].Intent = 0
		}
	})
}

// forget removes what a model wrote of calls that were promised before a date. The calls themselves stay until somebody has seen
// them.
func (i *inbox) forget(before time.Time) error {
	old := func(u unknown) bool {
		return u.When != 0 && u.When < before.UnixMilli() && u.Text+u.Destination != ""
	}
	i.mu.Lock()
	some := slices.ContainsFunc(i.file.Items, old)
	i.mu.Unlock()
	if !some {
		return nil
	}
	return i.change(func(f *inboxFile) {
		for at := range f.Items {
			if u := &f.Items[at]; old(*u) {
				u.Text, u.Destination = "", ""
			}
		}
	})
}

func (i *inbox) find(inv capabilities.InvocationID) (unknown, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	at := slices.IndexFunc(i.file.Items, func(u unknown) bool { return u.inv() == inv })
	if at < 0 {
		return unknown{}, false
	}
	return i.file.Items[at], true
}

// count is how many outcomes are unknown to somebody.
func (i *inbox) count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.file.Items) + int(i.file.Older)
}

// of returns what a phone may know, the latest first.
func (i *inbox) of(ph phone, name func(slot uint32) string) *ipc.Inbox {
	i.mu.Lock()
	defer i.mu.Unlock()
	answer := &ipc.Inbox{}
	if ph.Role == ipc.RoleOwner {
		answer.Older = i.file.Older
	}
	for _, u := range slices.Backward(i.file.Items) {
		if !u.concerns(ph) {
			continue
		}
		item := ipc.Unknown{
			Inv: u.inv(), Slot: u.Slot, Phone: name(u.Slot), Name: u.Name, Version: u.Version, Title: u.Title, Destination: u.Destination,
			When: u.When, Seq: uint64(u.Intent), Why: u.Why, Cut: u.Cut, Sent: u.Sent,
		}
		if u.Person == ph.Person || u.Log == capabilities.LogView {
			item.Text = u.Text
		}
		answer.Items = append(answer.Items, item)
	}
	return answer
}

// concerns reports whether a phone is told of u: the person who asked for it is, and so is an owner.
func (u unknown) concerns(ph phone) bool {
	return ph.Slot != 0 && (u.Person == ph.Person || ph.Role == ipc.RoleOwner)
}
