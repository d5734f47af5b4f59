package phone_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"math/big"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"assent.home.arpa/appliance/phone"
	"assent.home.arpa/appliance/phone/phonetest"
)

// serve starts a box that made its own certificate.
func serve(t *testing.T) (address, fingerprint string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"assent.local"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(&phonetest.Box{})
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	server.StartTLS()
	t.Cleanup(server.Close)
	sum := sha256.Sum256(der)
	return server.URL, hex.EncodeToString(sum[:])
}

func dial(t *testing.T, address string, pin *phone.Pin) error {
	t.Helper()
	client, err := phone.Dial(t.Context(), address, pin.TLS())
	if err == nil {
		client.Close()
	}
	return err
}

func TestFirstContactIsTakenAndAnotherBoxRefused(t *testing.T) {
	box, fingerprint := serve(t)
	other, _ := serve(t)
	var pin phone.Pin
	if pin.String() != "" {
		t.Errorf("before any contact the pin is %q", pin.String())
	}
	if err := dial(t, box, &pin); err != nil {
		t.Fatalf("first contact: %v", err)
	}
	if pin.String() != fingerprint {
		t.Errorf("the pin is %s, the certificate %s", pin.String(), fingerprint)
	}
	if err := dial(t, box, &pin); err != nil {
		t.Errorf("the same box: %v", err)
	}
	if err := dial(t, other, &pin); !errors.Is(err, phone.ErrOtherBox) {
		t.Errorf("another box: %v", err)
	}
	if pin.String() != fingerprint {
		t.Errorf("another box moved the pin to %s", pin.String())
	}
}

func TestPinIsSavedWithTheIdentity(t *testing.T) {
	box, fingerprint := serve(t)
	other, _ := serve(t)
	_, _, who := paired(t)
	if err := dial(t, box, &who.Pin); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "identity.json")
	if err := who.Save(path); err != nil {
		t.Fatal(err)
	}
	again, err := phone.LoadIdentity(path)
	if err != nil {
		t.Fatal(err)
	}
	if again.Pin.String() != fingerprint {
		t.Errorf("the pin is %s, the certificate %s", again.Pin.String(), fingerprint)
	}
	if err := dial(t, other, &again.Pin); !errors.Is(err, phone.ErrOtherBox) {
		t.Errorf("another box: %v", err)
	}
	if err := dial(t, box, &again.Pin); err != nil {
		t.Errorf("the same box: %v", err)
	}
}
