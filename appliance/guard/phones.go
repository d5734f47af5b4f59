package guard

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"sync"

	"assent.home.arpa/appliance/ipc"
)

// maxPhones bounds the pairings of one household.
const maxPhones = 32

// phone is one pairing.
type phone struct {
	Slot    uint32   `json:"slot"`
	Person  string   `json:"person"` // opaque
	Name    string   `json:"name"`
	Role    ipc.Role `json:"role"`
	Key     []byte   `json:"key"`     // uncompressed P-256 point (SEC 1 section 2.3.3)
	Counter uint64   `json:"counter"` // highest that an ask of this phone had
}

// errReplayed says that an ask's counter was used before.
var errReplayed = errors.New("guard: the ask's counter is not greater than the last one")

// phones is who is paired. The file is replaced before anything that depends on it happens.
type phones struct {
	path string

	mu   sync.Mutex
	next uint32
	list []phone
}

type phonesFile struct {
	Version int     `json:"version"`
	Next    uint32  `json:"next"` // slots are never used twice
	Phones  []phone `json:"phones"`
}

// openPhones reads the pairings. A damaged file is an error: guessing who may ask is worse than not starting.
func openPhones(path string) (*phones, error) {
	p := &phones{path: path, next: 1}
	b, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("guard: pairings: %w", err)
	}
	if b == nil {
		return p, nil
	}
	var f phonesFile
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil || f.Version != 1 {
		return nil, fmt.Errorf("guard: pairings: %s is damaged; restore it, or remove it and pair the phones again", path)
	}
	for _, ph := range f.Phones {
		if _, err := parseKey(ph.Key); err != nil || ph.Slot == 0 || ph.Slot >= f.Next || ph.Person == "" {
			return nil, fmt.Errorf("guard: pairings: %s is damaged; restore it, or remove it and pair the phones again", path)
		}
	}
	p.next, p.list = f.Next, f.Phones
	return p, nil
}

// save writes what the pairings would be. The caller holds mu and takes them over only if it succeeds.
func (p *phones) save(next uint32, list []phone) error {
	b, err := json.MarshalIndent(phonesFile{Version: 1, Next: next, Phones: list}, "", "\t")
	if err != nil {
		return err
	}
	return replace(p.path, append(b, '\n'), 0o600)
}

func (p *phones) find(slot uint32) (phone, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.list, func(ph phone) bool { return ph.Slot == slot })
	if i < 0 {
		return phone{}, false
	}
	return p.list[i], true
}

func (p *phones) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.list)
}

// check reports why a phone could not be paired under that name and key.
func (p *phones) check(name string, key []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.list) >= maxPhones {
		return fmt.Errorf("%d phones are paired, which is the most", maxPhones)
	}
	if _, err := parseKey(key); err != nil {
		return errors.New("the phone's key is not a point of P-256; reload the page")
	}
	var names []string
	for _, ph := range p.list {
		if bytes.Equal(ph.Key, key) {
			return errors.New("this phone is paired already; reload the page")
		}
		names = append(names, ph.Name)
	}
	return checkName(name, names)
}

// add pairs a phone. The first of a household is its owner's.
func (p *phones) add(name string, key []byte) (phone, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	slot, role := p.upcomingLocked()
	ph := phone{Slot: slot, Person: newPerson(), Name: name, Role: ipc.Role(role), Key: key}
	list := append(slices.Clone(p.list), ph)
	if err := p.save(p.next+1, list); err != nil {
		return phone{}, fmt.Errorf("guard: pairings: %w", err)
	}
	p.next, p.list = p.next+1, list
	return ph, nil
}

// upcoming returns the slot and role that the next phone will have.
func (p *phones) upcoming() (slot uint32, role uint8) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.upcomingLocked()
}

func (p *phones) upcomingLocked() (uint32, uint8) {
	if len(p.list) == 0 {
		return p.next, uint8(ipc.RoleOwner)
	}
	return p.next, uint8(ipc.RoleAdult)
}

// advance uses up a counter. It fails with errReplayed, or, with the counter used up for this run, with the reason why it
// could not be made durable.
func (p *phones) advance(slot uint32, counter uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.list, func(ph phone) bool { return ph.Slot == slot })
	if i < 0 || counter <= p.list[i].Counter {
		return errReplayed
	}
	p.list[i].Counter = counter
	return p.save(p.next, p.list)
}

func newPerson() string {
	var b [8]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(b[:])
}

func parseKey(key []byte) (*ecdsa.PublicKey, error) {
	return ecdsa.ParseUncompressedPublicKey(elliptic.P256(), key)
}

// verify checks a signature as WebCrypto makes it: r and s, 32 bytes each, big-endian (IEEE P1363), over SHA-256.
func (ph phone) verify(message, sig []byte) bool {
	pub, err := parseKey(ph.Key)
	if err != nil || len(sig) != 64 {
		return false
	}
	digest := sha256.Sum256(message)
	return ecdsa.Verify(pub, digest[:], new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:]))
}
