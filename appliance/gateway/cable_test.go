package gateway_test

import (
	"testing"

	"assent.home.arpa/appliance/wire"
)

// A request for the cable goes to the guard as it was signed, and its answer comes back; who is not known cannot ask.
func TestTheCableIsAskedForWithASignature(t *testing.T) {
	b := start(t, say("Yes."))
	stranger := newHandset(t, b, 2).dial()
	stranger.raw(wire.Upstream{V: wire.Version, ID: "s1", Type: wire.TypeCable})
	stranger.wantError("hello_first")

	p, q := newHandset(t, b, 1), newHandset(t, b, 2)
	p.connect()
	p.send(wire.TypeCable, wire.Cable{Counter: 7, Sig: q.sign(wire.CableBytes(1, 7))})
	p.wantError("bad_signature")
	p.send(wire.TypeCable, wire.Cable{Counter: 8, Sig: p.sign(wire.CableBytes(1, 7))})
	p.wantError("bad_signature")
	p.send(wire.TypeCable, wire.Cable{Counter: 7, Sig: "AAAA"})
	p.wantError("bad_frame")
	p.send(wire.TypeCable, map[string]any{"counter": 7, "sig": p.sign(wire.CableBytes(1, 7)), "approve": true})
	p.wantError("bad_frame")
	id := p.send(wire.TypeCable, wire.Cable{Counter: 7, Sig: p.sign(wire.CableBytes(1, 7))})
	f := p.want(wire.TypeCable)
	if o := decode[wire.CableOffer](t, f); o.Seconds != 300 || f.Re != id {
		t.Errorf("%+v answers %q", o, f.Re)
	}
}
