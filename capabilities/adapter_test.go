package capabilities_test

import (
	"bytes"
	"crypto/sha256"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/capabilities"
)

// FuzzParseRequest: what is read as a request is written as the same bytes, so a literal in the audit has one meaning.
func FuzzParseRequest(f *testing.F) {
	r := capabilities.Request{
		Scheme: "https", Host: "wiki.example", Port: 443, Address: capabilities.AddressPublic, Bytes: []byte("GET / HTTP/1.1\r\n\r\n"), Credential: "pihole",
	}
	f.Add(r.Preimage())
	f.Add([]byte("assent/request/v1\x00"))
	f.Add(append(r.Preimage(), 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, ok := capabilities.ParseRequest(b)
		if ok && !bytes.Equal(got.Preimage(), b) {
			t.Errorf("%x is read as %+v", b, got)
		}
	})
}

func TestRequestsPreimage(t *testing.T) {
	r := capabilities.Request{Scheme: "http", Host: "10.0.0.2", Port: 8080, Address: capabilities.AddressLAN, Bytes: []byte("GET /")}
	if r.Digest() != sha256.Sum256(r.Preimage()) {
		t.Error("the digest is of something else")
	}
	got, ok := capabilities.ParseRequest(r.Preimage())
	if d := cmp.Diff(r, got); !ok || d != "" {
		t.Error(ok, d)
	}
}
