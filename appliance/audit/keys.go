package audit

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
)

// The names of the small files beside the segments.
const (
	keyCurrent = "key.cur"  // private seal key of the epoch in force
	keyNext    = "key.next" // private seal key of the next, until its epoch record is sealed
	rootFile   = "root.pub" // public device root key, for people to compare; the log does not depend on it
)

// Seal keys are forward-secure: each is erased once the next has been announced under its signature, so that who steals
// the present key cannot sign for the past. Erased means unlinked: flash keeps what it likes until it wears on.
type sealKey struct {
	epoch   uint32
	private ed25519.PrivateKey
}

func (k sealKey) public() Digest { return Digest(k.private.Public().(ed25519.PublicKey)) }

// erase forgets the key in memory.
func (k sealKey) erase() { clear(k.private) }

func newSealKey(epoch uint32) (sealKey, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return sealKey{}, fmt.Errorf("audit: making a seal key: %w", err)
	}
	return sealKey{epoch: epoch, private: private}, nil
}

// keyRecord is a key file's content.
type keyRecord struct {
	Epoch uint32 `cbor:"1,keyasint"`
	Seed  Digest `cbor:"2,keyasint"`
}

func (c codec) writeKey(d Disk, name string, k sealKey) error {
	b, err := c.encode(keyRecord{Epoch: k.epoch, Seed: Digest(k.private.Seed())})
	if err != nil {
		return err
	}
	if err := removeFile(d, name); err != nil {
		return err
	}
	return writeFile(d, name, b)
}

// readKey returns false where there is no key or it was cut while it was being written.
func (c codec) readKey(d Disk, name string) (sealKey, bool, error) {
	b, err := readFile(d, name, 64)
	if errors.Is(err, fs.ErrNotExist) {
		return sealKey{}, false, nil
	}
	if err != nil {
		return sealKey{}, false, err
	}
	var r keyRecord
	if c.decode(b, &r) != nil {
		return sealKey{}, false, nil
	}
	return sealKey{epoch: r.Epoch, private: ed25519.NewKeyFromSeed(r.Seed[:])}, true, nil
}

// currentKey finds the key of the epoch in force. If power failed after an epoch was sealed and before its key was renamed,
// the key is still called next.
func (c codec) currentKey(d Disk, epoch Epoch) (sealKey, error) {
	for _, file := range []string{keyCurrent, keyNext} {
		k, ok, err := c.readKey(d, file)
		if err != nil {
			return sealKey{}, err
		}
		if !ok || k.epoch != epoch.N || k.public() != epoch.SealKey {
			continue
		}
		if file == keyNext {
			return k, promoteKey(d)
		}
		return k, nil
	}
	return sealKey{}, fmt.Errorf("%w: no seal key for epoch %d", ErrCorrupt, epoch.N)
}

func promoteKey(d Disk) error {
	if err := d.Rename(keyNext, keyCurrent); err != nil {
		return err
	}
	return d.Sync()
}

// knownSealKeys lists the public keys whose seals must be believed while recovering: those on this disk.
func (c codec) knownSealKeys(d Disk) ([]Digest, error) {
	var keys []Digest
	for _, file := range []string{keyCurrent, keyNext} {
		k, ok, err := c.readKey(d, file)
		if err != nil {
			return nil, err
		}
		if ok {
			keys = append(keys, k.public())
		}
	}
	return keys, nil
}

func writeRoot(d Disk, root Digest) error {
	if err := removeFile(d, rootFile); err != nil {
		return err
	}
	return writeFile(d, rootFile, []byte(root.String()+"\n"))
}

func readRoot(d Disk) (Digest, error) {
	b, err := readFile(d, rootFile, 128)
	if err != nil {
		return Digest{}, err
	}
	root, err := hex.DecodeString(string(bytes.TrimSuffix(b, []byte("\n"))))
	if err != nil || len(root) != len(Digest{}) {
		return Digest{}, fmt.Errorf("%w: %s holds no key", ErrCorrupt, rootFile)
	}
	return Digest(root), nil
}

func removeFile(d Disk, name string) error {
	if err := d.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
