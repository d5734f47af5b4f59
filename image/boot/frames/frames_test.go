package frames_test

import (
	"bytes"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"assent.home.arpa/image/boot/frames"
	"assent.home.arpa/systemd"
)

// wire records frames.
type wire struct {
	t   *testing.T
	out bytes.Buffer
	w   *pcapgo.Writer
	at  time.Time
}

func newWire(t *testing.T) *wire {
	w := &wire{t: t, at: time.Unix(1000, 0)}
	w.w = pcapgo.NewWriter(&w.out)
	if err := w.w.WriteFileHeader(65536, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *wire) put(stack ...gopacket.SerializableLayer) {
	w.t.Helper()
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true}, stack...); err != nil {
		w.t.Fatal(err)
	}
	w.at = w.at.Add(time.Second)
	if err := w.w.WritePacket(gopacket.CaptureInfo{Timestamp: w.at, CaptureLength: len(b.Bytes()), Length: len(b.Bytes())}, b.Bytes()); err != nil {
		w.t.Fatal(err)
	}
}

func boxMAC() net.HardwareAddr { return net.HardwareAddr{0x52, 0x54, 0, 1, 2, 3} }
func other() net.HardwareAddr  { return net.HardwareAddr{2, 0, 0, 0, 0, 9} }
func everybody() net.HardwareAddr {
	return net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
}

// datagram is a UDP frame; from tells who sends it.
func (w *wire) datagram(from, to net.HardwareAddr, src, dst string, payload string) {
	w.t.Helper()
	s, d := netip.MustParseAddrPort(src), netip.MustParseAddrPort(dst)
	w.put(
		&layers.Ethernet{SrcMAC: from, DstMAC: to, EthernetType: layers.EthernetTypeIPv4},
		&layers.IPv4{Version: 4, IHL: 5, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: s.Addr().AsSlice(), DstIP: d.Addr().AsSlice()},
		&layers.UDP{SrcPort: layers.UDPPort(s.Port()), DstPort: layers.UDPPort(d.Port())},
		gopacket.Payload(payload),
	)
}

func (w *wire) segment(from, to net.HardwareAddr, src, dst string) {
	w.t.Helper()
	s, d := netip.MustParseAddrPort(src), netip.MustParseAddrPort(dst)
	w.put(
		&layers.Ethernet{SrcMAC: from, DstMAC: to, EthernetType: layers.EthernetTypeIPv4},
		&layers.IPv4{Version: 4, IHL: 5, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: s.Addr().AsSlice(), DstIP: d.Addr().AsSlice()},
		&layers.TCP{SrcPort: layers.TCPPort(s.Port()), DstPort: layers.TCPPort(d.Port()), SYN: true, Window: 1000},
	)
}

// offer is a DHCP answer that names the server itself and one for the time.
func (w *wire) offer() {
	w.t.Helper()
	w.put(
		&layers.Ethernet{SrcMAC: other(), DstMAC: boxMAC(), EthernetType: layers.EthernetTypeIPv4},
		&layers.IPv4{Version: 4, IHL: 5, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: net.IP{10, 0, 2, 2}, DstIP: net.IP{10, 0, 2, 15}},
		&layers.UDP{SrcPort: 67, DstPort: 68},
		&layers.DHCPv4{
			Operation: layers.DHCPOpReply, HardwareType: layers.LinkTypeEthernet, HardwareLen: 6, ClientHWAddr: boxMAC(),
			Options: layers.DHCPOptions{
				layers.NewDHCPOption(layers.DHCPOptServerID, []byte{10, 0, 2, 2}),
				layers.NewDHCPOption(layers.DHCPOptNTPServers, []byte{10, 0, 2, 4, 10, 0, 2, 5}),
			},
		},
	)
}

func check(t *testing.T, w *wire, chosen bool, pressed ...frames.Pressed) frames.Report {
	t.Helper()
	table, err := systemd.Leaves()
	if err != nil {
		t.Fatal(err)
	}
	r, err := frames.Check(&w.out, table, boxMAC(), chosen, pressed)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// W16: what the table has may leave.
func TestWhatMayLeave(t *testing.T) {
	w := newWire(t)
	w.datagram(boxMAC(), everybody(), "0.0.0.0:68", "255.255.255.255:67", "an address, please")
	w.offer()
	w.datagram(boxMAC(), other(), "10.0.2.15:68", "10.0.2.2:67", "the same again")
	w.put(
		&layers.Ethernet{SrcMAC: boxMAC(), DstMAC: everybody(), EthernetType: layers.EthernetTypeARP},
		&layers.ARP{AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: 1, SourceHwAddress: boxMAC(), SourceProtAddress: []byte{10, 0, 2, 15}, DstHwAddress: everybody(), DstProtAddress: []byte{10, 0, 2, 2}},
	)
	w.segment(other(), boxMAC(), "10.0.2.2:40000", "10.0.2.15:443")
	w.segment(boxMAC(), other(), "10.0.2.15:443", "10.0.2.2:40000")
	w.segment(boxMAC(), other(), "10.0.2.15:50000", "10.0.2.2:8888")
	w.datagram(boxMAC(), other(), "10.0.2.15:5353", "224.0.0.251:5353", "here I am")
	w.datagram(boxMAC(), other(), "10.0.2.15:60000", "10.0.2.5:123", "what time is it")
	pressed := frames.Pressed{To: netip.MustParseAddrPort("10.0.2.2:8888"), After: time.Unix(1003, 0)}
	r := check(t, w, true, pressed)
	want := frames.Report{Sent: 7, Pressed: 1, Listed: map[string]int{"dhcp": 2, "arp": 1, "answers": 1, "mdns": 1, "time": 1}}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
}

// W16: and nothing else may, however much it looks like it.
func TestWhatMayNotLeave(t *testing.T) {
	for name, send := range map[string]func(*wire){
		"a name in a request for an address": func(w *wire) {
			w.datagram(boxMAC(), everybody(), "0.0.0.0:68", "255.255.255.255:67", "hostname Assent")
		},
		"a request for an address to a stranger": func(w *wire) { w.datagram(boxMAC(), other(), "10.0.2.15:68", "10.0.2.9:67", "") },
		"the time from a stranger": func(w *wire) {
			w.offer()
			w.datagram(boxMAC(), other(), "10.0.2.15:60000", "10.0.2.9:123", "")
		},
		"a name looked up":              func(w *wire) { w.datagram(boxMAC(), other(), "10.0.2.15:60000", "10.0.2.3:53", "") },
		"a connection of the box's own": func(w *wire) { w.segment(boxMAC(), other(), "10.0.2.15:443", "10.0.2.2:40000") },
		"a connection to another port":  func(w *wire) { w.segment(boxMAC(), other(), "10.0.2.15:50000", "10.0.2.2:8889") },
		"a connection before the press": func(w *wire) { w.segment(boxMAC(), other(), "10.0.2.15:50000", "10.0.2.2:8888") },
		"something that is no frame at all": func(w *wire) {
			w.put(&layers.Ethernet{SrcMAC: boxMAC(), DstMAC: other(), EthernetType: 0x88cc}, gopacket.Payload("hello"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			send(w)
			pressed := frames.Pressed{To: netip.MustParseAddrPort("10.0.2.2:8888"), After: time.Unix(1003, 0)}
			if r := check(t, w, true, pressed); len(r.Unlisted) != 1 {
				t.Errorf("got %+v", r)
			}
		})
	}
	w := newWire(t)
	w.offer()
	w.datagram(boxMAC(), other(), "10.0.2.15:60000", "10.0.2.5:123", "")
	if r := check(t, w, false); len(r.Unlisted) != 1 || !strings.Contains(r.Unlisted[0], "10.0.2.5:123") {
		t.Errorf("the time is asked for without the owner's word: %+v", r)
	}
}

// TestACaptureThatEndsInAFrame is one of a machine whose plug was pulled.
func TestACaptureThatEndsInAFrame(t *testing.T) {
	w := newWire(t)
	w.segment(boxMAC(), other(), "10.0.2.15:50000", "10.0.2.2:8888")
	w.segment(boxMAC(), other(), "10.0.2.15:50000", "10.0.2.2:8888")
	w.out.Truncate(w.out.Len() - 5)
	if r := check(t, w, true); r.Sent != 1 {
		t.Errorf("%d frames", r.Sent)
	}
	table, err := systemd.Leaves()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := frames.Check(strings.NewReader("no capture at all, but long enough for one"), table, boxMAC(), true, nil); err == nil {
		t.Error("something else was taken for a capture")
	}
}
