package wire

import (
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// What turns a key into the digits that people compare.
const (
	keyCodeContext = "assent/pair/v1\x00"
	keyCodeRounds  = 10_000
	keyCodeDigits  = 1_000_000_000_000
)

// KeyCode is what the phone and the panel both show while a phone is being paired: twelve digits of the phone's key, as
// "1234 5678 9012". Only if they agree did the box get the key that the phone made.
//
//	PBKDF2-HMAC-SHA-256 (RFC 8018), password: the uncompressed point [65], salt: "assent/pair/v1" 00 || pairing code, 10,000 rounds
//
// Its first eight bytes, big-endian, modulo 10^12, are the number. Whoever stands between phone and guard sees the key only
// when the phone sends it, and has until pairing closes, two minutes, to find another with the same digits. The pairing code, fresh on
// the panel each time, makes any table made before worthless; the rounds make each try cost as much as ten thousand.
func KeyCode(pairingCode string, key []byte) string {
	b, err := pbkdf2.Key(sha256.New, string(key), []byte(keyCodeContext+pairingCode), keyCodeRounds, 8)
	if err != nil {
		panic("wire: internal error: " + err.Error()) // the lengths are constants
	}
	n := binary.BigEndian.Uint64(b) % keyCodeDigits
	return fmt.Sprintf("%04d %04d %04d", n/1e8, n/1e4%1e4, n%1e4)
}
