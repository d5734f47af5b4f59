package hiltest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/device/board/boardtest"
)

// host is a host controller's side of a connection.
type host struct {
	*testing.T
	conn  net.Conn
	ended chan error
}

func plugIn(t *testing.T, d usbDevice) *host {
	near, far := net.Pipe()
	h := &host{T: t, conn: near, ended: make(chan error, 1)}
	go func() { h.ended <- serve(far, d) }()
	t.Cleanup(func() { near.Close() })
	return h
}

// header is the fixed part of a message, in network order.
func header(fields ...uint32) []byte {
	b := make([]byte, headerSize)
	for i, f := range fields {
		binary.BigEndian.PutUint32(b[4*i:], f)
	}
	return b
}

// control makes one control request and returns status and data of the reply.
func (h *host) control(seq uint32, kind, request byte, value, index uint16, out []byte, in int) (int32, []byte) {
	h.Helper()
	direction, length := uint32(1), uint32(in)
	if out != nil {
		direction, length = 0, uint32(len(out))
	}
	msg := header(1, seq, 1<<16|1, direction, 0, 0, length)
	msg[40], msg[41] = kind, request
	le := binary.LittleEndian
	le.PutUint16(msg[42:], value)
	le.PutUint16(msg[44:], index)
	le.PutUint16(msg[46:], uint16(length))
	if _, err := h.conn.Write(append(msg, out...)); err != nil {
		h.Fatal(err)
	}
	reply := make([]byte, headerSize)
	if _, err := io.ReadFull(h.conn, reply); err != nil {
		h.Fatal(err)
	}
	be := binary.BigEndian
	if be.Uint32(reply) != 3 || be.Uint32(reply[4:]) != seq {
		h.Fatalf("the reply begins with %x", reply[:8])
	}
	n := be.Uint32(reply[24:])
	if out != nil {
		return int32(be.Uint32(reply[20:])), nil
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(h.conn, data); err != nil {
		h.Fatal(err)
	}
	return int32(be.Uint32(reply[20:])), data
}

// status asks i2c-tiny-usb how the last message went.
func (h *host) status() byte {
	h.Helper()
	_, s := h.control(99, 0xc1, 3, 0, 0, nil, 1)
	return s[0]
}

func TestTheKernelFindsItsDriver(t *testing.T) {
	h := plugIn(t, NewAdapter(0, boardtest.NewSSD1306()))
	_, d := h.control(1, 0x80, 6, 0x0100, 0, nil, 18)
	if len(d) != 18 || binary.LittleEndian.Uint16(d[8:]) != 0x0403 || binary.LittleEndian.Uint16(d[10:]) != 0xc631 {
		t.Errorf("the device is %x", d)
	}
	if _, d := h.control(2, 0x80, 6, 0x0100, 0, nil, 8); len(d) != 8 {
		t.Errorf("%d bytes instead of the 8 that were asked for", len(d))
	}
	if _, d := h.control(3, 0x80, 6, 0x0200, 0, nil, 255); len(d) != 18 || d[2] != 18 || d[4] != 1 {
		t.Errorf("the configuration is %x", d)
	}
	if _, d := h.control(4, 0x80, 6, 0x0302, 0x0409, nil, 255); !bytes.Equal(d[2:8], []byte("i\x002\x00c\x00")) {
		t.Errorf("the product's name is %q", d)
	}
	if s, _ := h.control(5, 0x80, 6, 0x0f00, 0, nil, 5); s != -32 {
		t.Errorf("a descriptor that there is not: status %d", s)
	}
	if s, _ := h.control(6, 0x00, 9, 1, 0, []byte{}, 0); s != 0 {
		t.Errorf("set configuration: status %d", s)
	}
	if _, f := h.control(7, 0xc1, 1, 0, 0, nil, 4); binary.LittleEndian.Uint32(f)&1 != 1 {
		t.Errorf("functions %x lack plain i2c", f)
	}
	if s, _ := h.control(8, 0xc1, 77, 0, 0, nil, 4); s != -32 {
		t.Errorf("a request that there is not: status %d", s)
	}
}

func TestMessagesReachTheDisplay(t *testing.T) {
	display := boardtest.NewSSD1306()
	a := NewAdapter(0, display)
	h := plugIn(t, a)
	h.control(1, 0x41, 7, 0, 0x3c, []byte{0x00, 0x81, 0x42}, 0)
	if h.status() != statusAck || display.Contrast() != 0x42 {
		t.Errorf("status %d, contrast %#x", h.status(), display.Contrast())
	}
	if _, in := h.control(2, 0xc1, 7, 1, 0x3c, nil, 1); !cmp.Equal(in, []byte{0x43}) || h.status() != statusAck {
		t.Errorf("the display's state is %x", in)
	}
	h.control(3, 0x41, 7, 0, 0x3d, []byte{0x00, 0xae}, 0)
	if h.status() != statusNAK {
		t.Error("an address where nobody is acknowledges")
	}
	display.FailAfter(0)
	h.control(4, 0x41, 7, 0, 0x3c, []byte{0x00, 0xae}, 0)
	if h.status() != statusNAK || a.Refused() != nil {
		t.Errorf("a silent display: status %d, %v", h.status(), a.Refused())
	}
	display.Heal()
	h.control(5, 0x41, 7, 0, 0x3c, []byte{0x00, 0xff}, 0)
	if h.status() != statusNAK || a.Refused() == nil {
		t.Error("a command that no data sheet has passes")
	}
}

func TestAdapterHangs(t *testing.T) {
	a := NewAdapter(0, boardtest.NewSSD1306())
	h := plugIn(t, a)
	a.Hang()
	go a.Resume()
	if h.status() != statusIdle {
		t.Error("no answer after it resumed")
	}
	if h.control(1, 0x41, 7, 0, 0x3c, []byte{0x00, 0xae}, 0); a.Still(time.Hour) {
		t.Error("still, right after a message")
	}
}

func TestDamagedMessagesEndTheConnection(t *testing.T) {
	for name, msg := range map[string][]byte{
		"another command":  header(9, 1),
		"another endpoint": header(1, 1, 1, 0, 3, 0, 0),
		"too long":         header(1, 1, 1, 0, 0, 0, 1<<20),
	} {
		h := plugIn(t, NewAdapter(0, boardtest.NewSSD1306()))
		if _, err := h.conn.Write(msg); err != nil {
			t.Fatal(err)
		}
		if err := <-h.ended; !errors.Is(err, errUSBIP) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnlinkIsAnswered(t *testing.T) {
	h := plugIn(t, NewAdapter(0, boardtest.NewSSD1306()))
	if _, err := h.conn.Write(header(2, 7)); err != nil {
		t.Fatal(err)
	}
	reply := make([]byte, headerSize)
	if _, err := io.ReadFull(h.conn, reply); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(header(4, 7), reply); diff != "" {
		t.Error(diff)
	}
}
