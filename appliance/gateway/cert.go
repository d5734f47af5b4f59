package gateway

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"assent.home.arpa/appliance/clock"
)

// Certificate lifetimes. Phones refuse certificates of more than 398 days; one that is about to end is replaced at a
// start, so that no phone ever meets an expired one.
const (
	certLife  = 396 * 24 * time.Hour
	certRenew = 30 * 24 * time.Hour
)

// certEpoch begins certificates that are made while nobody knows the date.
var certEpoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const certFile = "tls.pem"

// Certificate is the box's own, for a household in which no authority could vouch for it. Somebody at a phone compares
// Fingerprint once, and either makes an exception or installs Authority.
type Certificate struct {
	TLS tls.Certificate
	// Authority is the DER of the certificate that issued TLS. It can be installed on a phone without handing the box
	// any power over other sites: its key was thrown away when it had signed this one certificate, and it is limited by
	// name to the box.
	Authority []byte
}

// Fingerprint is SHA-256 over the certificate that the box presents, in pairs of hex digits, as browsers show it.
func (c Certificate) Fingerprint() string {
	sum := sha256.Sum256(c.TLS.Certificate[0])
	pairs := make([]string, len(sum))
	for i, b := range sum {
		pairs[i] = strings.ToUpper(hex.EncodeToString([]byte{b}))
	}
	return strings.Join(pairs, ":")
}

// LoadCertificate returns the certificate in dir, so that what a phone has accepted holds over restarts. It makes a new
// one where there is none, where the names have changed, or where the clock is known and the old one is not valid for
// much longer. A new address does not change it: phones that made an exception would have to do so again.
func LoadCertificate(dir string, hosts []string, addrs []net.IP, c clock.Clock) (Certificate, error) {
	now, state := c.Wall()
	path := filepath.Join(dir, certFile)
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return Certificate{}, fmt.Errorf("gateway: certificate: %w", err)
	default:
		// One that cannot be read, as after a power cut, is of no use to anybody and is replaced.
		if cert, err := parseCertificate(b); err == nil && usable(cert.TLS.Leaf, hosts, now, state) {
			return cert, nil
		}
	}
	from := now.Add(-24 * time.Hour) // phones' clocks differ
	if state == clock.Unset {
		from = certEpoch
	}
	b, err = makeCertificate(hosts, addrs, from)
	if err != nil {
		return Certificate{}, err
	}
	if err := replace(path, b); err != nil {
		return Certificate{}, fmt.Errorf("gateway: certificate: %w", err)
	}
	return parseCertificate(b)
}

func usable(leaf *x509.Certificate, hosts []string, now time.Time, state clock.State) bool {
	if !slices.Equal(leaf.DNSNames, certNames(hosts)) {
		return false
	}
	return state == clock.Unset || now.After(leaf.NotBefore) && now.Add(certRenew).Before(leaf.NotAfter)
}

// certNames are the configured hosts that are names.
func certNames(hosts []string) []string {
	names := []string{"localhost"}
	for _, h := range hosts {
		if host, _, err := net.SplitHostPort(h); err == nil {
			h = host
		}
		if net.ParseIP(h) == nil {
			names = append(names, strings.ToLower(h))
		}
	}
	return names
}

func makeCertificate(hosts []string, addrs []net.IP, from time.Time) ([]byte, error) {
	fail := func(err error) ([]byte, error) { return nil, fmt.Errorf("gateway: certificate: %w", err) }
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fail(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fail(err)
	}
	names := certNames(hosts)
	var nets []*net.IPNet
	for _, a := range addrs {
		bits := 128
		if a.To4() != nil {
			a, bits = a.To4(), 32
		}
		nets = append(nets, &net.IPNet{IP: a, Mask: net.CIDRMask(bits, bits)})
	}
	ca := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "Assent, this box only"},
		NotBefore: from, NotAfter: from.Add(certLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
		PermittedDNSDomainsCritical: true, PermittedDNSDomains: names, PermittedIPRanges: nets,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if len(nets) == 0 { // a constraint binds only the kinds of name that it lists
		ca.ExcludedIPRanges = []*net.IPNet{{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}, {IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}}
	}
	leaf := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "Assent"},
		NotBefore: from, NotAfter: from.Add(certLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, DNSNames: names, IPAddresses: addrs,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return fail(err)
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey)
	if err != nil {
		return fail(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fail(err)
	}
	var b bytes.Buffer
	for _, block := range []*pem.Block{{Type: "PRIVATE KEY", Bytes: keyDER}, {Type: "CERTIFICATE", Bytes: leafDER}, {Type: "CERTIFICATE", Bytes: caDER}} {
		if err := pem.Encode(&b, block); err != nil {
			return fail(err)
		}
	}
	return b.Bytes(), nil
}

func serial() *big.Int {
	var b [16]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	b[0] &= 0x7f    // positive (RFC 5280 section 4.1.2.2)
	return new(big.Int).SetBytes(b[:])
}

func parseCertificate(b []byte) (Certificate, error) {
	pair, err := tls.X509KeyPair(b, b)
	if err != nil {
		return Certificate{}, fmt.Errorf("gateway: certificate: %w", err)
	}
	if len(pair.Certificate) != 2 {
		return Certificate{}, errors.New("gateway: certificate: not a chain of two")
	}
	if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
		return Certificate{}, fmt.Errorf("gateway: certificate: %w", err)
	}
	return Certificate{TLS: pair, Authority: pair.Certificate[1]}, nil
}

// replace writes a file that is there whole or not at all, whatever happens to the power.
func replace(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".tls-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
