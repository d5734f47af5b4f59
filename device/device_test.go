package device_test

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"assent.home.arpa/device"
)

func TestEventGolden(t *testing.T) {
	// a4          map(4)
	//    01 1b 000000012a05f200   1: mono, 5,000,000,000 ns
	//    02 01                    2: edge, press
	//    03 07                    3: seq
	//    04 01                    4: button, approve
	const want = "a4011b000000012a05f200020103070401"
	ev := device.Event{Mono: 5e9, Edge: device.Press, Seq: 7, Button: device.Approve}
	mode, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := mode.Marshal(ev)
	if err != nil {
		t.Fatal(err)
	}
	if hex.EncodeToString(got) != want {
		t.Fatalf("event encodes as %x, contract says %s", got, want)
	}
	var back device.Event
	if err := cbor.Unmarshal(got, &back); err != nil || back != ev {
		t.Fatalf("decoded %+v, %v", back, err)
	}
}

func TestFrameLayoutIsDisplayRAM(t *testing.T) {
	var f device.Frame
	f.Set(3, 9, true) // page 1, column 3, row bit 1
	var want device.Frame
	want[128+3] = 0x02
	if !bytes.Equal(f[:], want[:]) || !f.At(3, 9) {
		t.Fatal("pixel (3,9) is not bit 1 of byte 131")
	}
	f.Set(-1, 0, true)
	f.Set(128, 0, true)
	f.Set(0, 64, true)
	if f.At(128, 0) || f != want {
		t.Fatal("a point outside the panel changed the frame")
	}
	f.Set(3, 9, false)
	f.Invert()
	if !f.At(0, 0) || !f.At(127, 63) {
		t.Fatal("Invert left a pixel dark")
	}
}
