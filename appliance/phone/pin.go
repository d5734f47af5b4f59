package phone

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
)

// Pin is how a box is known again: the SHA-256 of the certificate that it made for itself, which no authority vouches for.
// The zero Pin takes the certificate of the first contact, as somebody at a phone does who accepts the browser's warning.
type Pin struct{ fingerprint string }

// ErrOtherBox says that whoever answers is not the box that was paired.
var ErrOtherBox = errors.New("phone: this is not the box that was paired: its certificate is another one. If the box was reset, pair again")

// String is the fingerprint in hex, empty before the first contact.
func (p *Pin) String() string { return p.fingerprint }

// TLS returns a configuration that accepts this one certificate.
func (p *Pin) TLS() *tls.Config {
	return &tls.Config{
		InsecureSkipVerify: true, // in favour of the check below
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return fmt.Errorf("phone: no certificate")
			}
			sum := sha256.Sum256(s.PeerCertificates[0].Raw)
			seen := hex.EncodeToString(sum[:])
			if p.fingerprint == "" {
				p.fingerprint = seen
			}
			if seen != p.fingerprint {
				return ErrOtherBox
			}
			return nil
		},
	}
}
