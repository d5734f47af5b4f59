package phone_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/big"
	"net/http/httptest"
	"slices"
	"testing"

	"assent.home.arpa/appliance/phone"
	"assent.home.arpa/appliance/phone/phonetest"
	"assent.home.arpa/appliance/wire"
)

// heard decodes the latest frame of a type that the box was sent. The box has it once it has answered.
func heard(t *testing.T, box *phonetest.Box, want wire.Type, v any) {
	t.Helper()
	for _, f := range slices.Backward(box.Heard()) {
		if f.Type == want {
			if err := json.Unmarshal(f.Data, v); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("the box heard no %s", want)
}

// verify checks a signature as the gateway does, with the key that the phone gave when it was paired.
func verify(t *testing.T, box *phonetest.Box, message []byte, signature string) {
	t.Helper()
	var pair wire.Pair
	heard(t, box, wire.TypePair, &pair)
	point, err := base64.RawURLEncoding.DecodeString(pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err != nil {
		t.Fatal(err)
	}
	sig, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || len(sig) != 64 {
		t.Fatalf("a signature of %d bytes, %v; want r and s of 32 each", len(sig), err)
	}
	digest := sha256.Sum256(message)
	if !ecdsa.Verify(key, digest[:], new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:])) {
		t.Error("the signature does not verify")
	}
}

func TestQuestionsAreSignedAsTheContractSays(t *testing.T) {
	box, client, who := paired(t)
	if client.Box() != "Kitchen box" {
		t.Errorf("the box is called %q", client.Box())
	}
	if _, err := client.Hello(t.Context(), who, "", 0); err != nil {
		t.Fatal(err)
	}
	var hello wire.Hello
	heard(t, box, wire.TypeHello, &hello)
	verify(t, box, wire.AuthBytes(7, box.Nonce), hello.Sig)

	conversation := phone.NewConversation()
	// Many, since one r or s in 256 begins with a zero byte and must still fill its 32.
	for i := range uint64(600) {
		const text = "Wie warm ist die Küche?"
		if _, err := client.Ask(who, conversation, text); err != nil {
			t.Fatal(err)
		}
		if f, err := client.Next(t.Context()); err != nil || f.Type != wire.TypeTurnEnd {
			t.Fatalf("%+v, %v", f, err)
		}
		var ask wire.Ask
		heard(t, box, wire.TypeAsk, &ask)
		if ask.Counter != 42+i || ask.Conversation != hex.EncodeToString(conversation[:]) || ask.Text != text {
			t.Fatalf("question %d: %+v", i, ask)
		}
		verify(t, box, wire.AskBytes(7, conversation, 42+i, wire.TextDigest(text)), ask.Sig)
	}
}

func TestTheCableIsAskedForAsTheContractSays(t *testing.T) {
	box, client, who := paired(t)
	if _, err := client.Hello(t.Context(), who, "", 0); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(2) {
		if offer, err := client.Cable(t.Context(), who); err != nil || offer.Seconds != 300 {
			t.Fatalf("%+v, %v", offer, err)
		}
		var q wire.Cable
		heard(t, box, wire.TypeCable, &q)
		if q.Counter != 42+i {
			t.Errorf("counter %d", q.Counter)
		}
		verify(t, box, wire.CableBytes(7, q.Counter), q.Sig)
	}
}

func TestRefusalIsTyped(t *testing.T) {
	want := wire.Error{Code: "pair_code", Message: "that is not the code"}
	server := httptest.NewServer(&phonetest.Box{Replies: map[wire.Type][]wire.Downstream{wire.TypePair: {{Type: wire.TypeError, Data: want}}}})
	t.Cleanup(server.Close)
	client, err := phone.Dial(t.Context(), server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	who, err := client.Pair(t.Context(), "000000", "Anna", nil)
	var refused *phone.RefusedError
	if who != nil || !errors.As(err, &refused) || refused.Reason != want {
		t.Errorf("%+v, %v", who, err)
	}
}

func TestAddressThatIsNone(t *testing.T) {
	for _, address := range []string{"", "assent.local", "assent.local:8443", "ftp://assent.local", "https://", "https://\x1b[31m"} {
		if c, err := phone.Dial(t.Context(), address, nil); err == nil {
			c.Close()
			t.Errorf("%q was taken", address)
		}
	}
}
