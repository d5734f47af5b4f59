package phone

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Identity is a paired phone: its slot, its key and how many questions it has asked.
type Identity struct {
	Slot    uint32
	Name    string
	Counter uint64
	Address string // where the box is
	Pin     Pin

	key *ecdsa.PrivateKey
}

// ErrNotPaired says that this program has not been paired with a box.
var ErrNotPaired = errors.New("not paired with a box yet: hold both buttons at the box for 3 seconds, then run assent pair")

type identityFile struct {
	Slot    uint32 `json:"slot"`
	Name    string `json:"name"`
	Counter uint64 `json:"counter"`
	Address string `json:"address"`
	Pin     string `json:"pin,omitempty"`
	Key     []byte `json:"key"` // PKCS #8
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("phone: key: %w", err)
	}
	return key, nil
}

// LoadIdentity reads a saved identity; ErrNotPaired where there is none.
func LoadIdentity(path string) (*Identity, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotPaired
	}
	if err != nil {
		return nil, fmt.Errorf("phone: identity: %w", err)
	}
	var f identityFile
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("phone: %s is damaged; pair again: %w", path, err)
	}
	k, err := x509.ParsePKCS8PrivateKey(f.Key)
	key, ok := k.(*ecdsa.PrivateKey)
	if err != nil || !ok || key.Curve != elliptic.P256() {
		return nil, fmt.Errorf("phone: %s holds no P-256 key; pair again", path)
	}
	return &Identity{Slot: f.Slot, Name: f.Name, Counter: f.Counter, Address: f.Address, Pin: Pin{f.Pin}, key: key}, nil
}

// Save writes the identity so that only its owner can read it. A crash leaves the old one or the new one.
func (i *Identity) Save(path string) error {
	der, err := x509.MarshalPKCS8PrivateKey(i.key)
	if err != nil {
		return fmt.Errorf("phone: identity: %w", err)
	}
	b, err := json.Marshal(identityFile{Slot: i.Slot, Name: i.Name, Counter: i.Counter, Address: i.Address, Pin: i.Pin.fingerprint, Key: der})
	if err != nil {
		return fmt.Errorf("phone: identity: %w", err)
	}
	if err := replace(path, b); err != nil {
		return fmt.Errorf("phone: identity: %w", err)
	}
	return nil
}

// replace puts b in place of a file's contents, for its owner alone. A crash leaves the old ones or the new ones.
func replace(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(b)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
