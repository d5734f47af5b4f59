// Package frames holds what a box sent against the table of what may leave it without a press (package systemd, leaves.toml).
//
// It reads a capture of everything on the box's wire, decides for each frame from the box whether a row of the table covers it, and
// counts those that none does. A frame that cannot be understood is covered by none.
package frames

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"assent.home.arpa/systemd"
)

// Pressed is a connection that somebody at the box approved, which so does not leave without a press.
type Pressed struct {
	To    netip.AddrPort
	After time.Time // of the press
}

// Report is what a capture says.
type Report struct {
	Sent     int            // frames from the box
	Listed   map[string]int // by row of the table
	Pressed  int
	Unlisted []string // what each was, in order
}

// flow is where a datagram comes from and goes to.
type flow struct {
	protocol string
	from, to netip.AddrPort
}

// judge carries what is known of the wire so far.
type judge struct {
	table   []systemd.Leaf
	box     net.HardwareAddr
	chosen  bool // the owner chose that the time is asked for
	pressed []Pressed
	asked   map[flow]bool
	servers map[uint16]map[netip.Addr]bool // that DHCP named, by the port that they are for
}

// Check reads a capture (pcap) of a wire on which the box is box.
func Check(capture io.Reader, table []systemd.Leaf, box net.HardwareAddr, chosen bool, pressed []Pressed) (Report, error) {
	r, err := pcapgo.NewReader(capture)
	if err != nil {
		return Report{}, fmt.Errorf("frames: %w", err)
	}
	j := &judge{table: table, box: box, chosen: chosen, pressed: pressed, asked: map[flow]bool{}, servers: map[uint16]map[netip.Addr]bool{}}
	report := Report{Listed: map[string]int{}}
	for {
		data, info, err := r.ReadPacketData()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // of a machine whose plug was pulled
			return report, nil
		case err != nil:
			return report, fmt.Errorf("frames: %w", err)
		}
		packet := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.NoCopy)
		ether, ok := packet.LinkLayer().(*layers.Ethernet)
		if ok && !bytes.Equal(ether.SrcMAC, box) {
			j.learn(packet)
			continue
		}
		report.Sent++
		switch row, by := j.row(packet, data, info.Timestamp); by {
		case byTable:
			report.Listed[row]++
		case byPress:
			report.Pressed++
		default:
			report.Unlisted = append(report.Unlisted, describe(packet))
		}
	}
}

// learn takes note of what came to the box: whoever asks may be answered.
func (j *judge) learn(p gopacket.Packet) {
	if f, ok := flowOf(p); ok {
		j.asked[f] = true
	}
	dhcp, ok := p.Layer(layers.LayerTypeDHCPv4).(*layers.DHCPv4)
	if !ok {
		return
	}
	for _, o := range dhcp.Options {
		port, known := map[layers.DHCPOpt]uint16{layers.DHCPOptServerID: 67, layers.DHCPOptNTPServers: 123, layers.DHCPOptDNS: 53}[o.Type]
		for known && len(o.Data) >= 4 {
			if j.servers[port] == nil {
				j.servers[port] = map[netip.Addr]bool{}
			}
			j.servers[port][netip.AddrFrom4([4]byte(o.Data))] = true
			o.Data = o.Data[4:]
		}
	}
}

// Why a frame may leave.
type why int

const (
	byNothing why = iota
	byTable
	byPress
)

// row finds the row that covers a frame.
func (j *judge) row(p gopacket.Packet, data []byte, at time.Time) (string, why) {
	f, isFlow := flowOf(p)
	if isFlow && f.protocol == "tcp" && slices.ContainsFunc(j.pressed, func(c Pressed) bool { return f.to == c.To && at.After(c.After) }) {
		return "", byPress
	}
	for _, l := range j.table {
		if (l.Only == systemd.Always || j.chosen) && j.covers(l, p, data, f, isFlow) {
			return l.Name, byTable
		}
	}
	return "", byNothing
}

// covers reports whether all conditions of a row hold.
func (j *judge) covers(l systemd.Leaf, p gopacket.Packet, data []byte, f flow, isFlow bool) bool {
	ether, protocol := kinds(p)
	icmp, isICMP := p.Layer(layers.LayerTypeICMPv6).(*layers.ICMPv6)
	switch {
	case !slices.Contains(l.Ether, ether):
	case len(l.Protocol) > 0 && !slices.Contains(l.Protocol, protocol):
	case len(l.SourcePort) > 0 && (!isFlow || !slices.Contains(l.SourcePort, f.from.Port())):
	case len(l.DestinationPort) > 0 && (!isFlow || !slices.Contains(l.DestinationPort, f.to.Port())):
	case len(l.ICMPType) > 0 && (!isICMP || !slices.Contains(l.ICMPType, icmp.TypeCode.Type())):
	case len(l.To) > 0 && !slices.ContainsFunc(l.To, func(to string) bool { return j.goes(to, p, f, isFlow) }):
	case slices.ContainsFunc(l.Without, func(text string) bool { return contains(data, text) }):
	default:
		return true
	}
	return false
}

// contains reports whether a frame holds a text in letters of any case.
func contains(data []byte, text string) bool {
	return bytes.Contains(bytes.ToLower(data), []byte(strings.ToLower(text)))
}

// goes reports whether a frame goes where a row says.
func (j *judge) goes(to string, p gopacket.Packet, f flow, isFlow bool) bool {
	switch to {
	case systemd.Broadcast:
		ether := p.LinkLayer().(*layers.Ethernet)
		return ether.DstMAC.String() == "ff:ff:ff:ff:ff:ff" || isFlow && f.to.Addr() == netip.AddrFrom4([4]byte{255, 255, 255, 255})
	case systemd.Asker:
		return isFlow && j.asked[flow{f.protocol, f.to, f.from}]
	case systemd.Server:
		return isFlow && j.servers[f.to.Port()][f.to.Addr()]
	}
	addr, err := netip.ParseAddr(to)
	return err == nil && isFlow && f.to.Addr() == addr
}

// kinds names a frame's network and transport as the table does.
func kinds(p gopacket.Packet) (ether, protocol string) {
	for _, k := range []struct {
		layer gopacket.LayerType
		name  string
	}{{layers.LayerTypeARP, "arp"}, {layers.LayerTypeIPv4, "ipv4"}, {layers.LayerTypeIPv6, "ipv6"}} {
		if p.Layer(k.layer) != nil {
			ether = k.name
		}
	}
	for _, k := range []struct {
		layer gopacket.LayerType
		name  string
	}{{layers.LayerTypeUDP, "udp"}, {layers.LayerTypeTCP, "tcp"}, {layers.LayerTypeIGMP, "igmp"}, {layers.LayerTypeICMPv6, "icmpv6"}} {
		if p.Layer(k.layer) != nil {
			protocol = k.name
		}
	}
	return ether, protocol
}

// flowOf returns a UDP or TCP frame's ends.
func flowOf(p gopacket.Packet) (flow, bool) {
	network := p.NetworkLayer()
	if network == nil {
		return flow{}, false
	}
	src, ok := netip.AddrFromSlice(network.NetworkFlow().Src().Raw())
	dst, ok2 := netip.AddrFromSlice(network.NetworkFlow().Dst().Raw())
	if !ok || !ok2 {
		return flow{}, false
	}
	switch t := p.TransportLayer().(type) {
	case *layers.UDP:
		return flow{"udp", netip.AddrPortFrom(src, uint16(t.SrcPort)), netip.AddrPortFrom(dst, uint16(t.DstPort))}, true
	case *layers.TCP:
		return flow{"tcp", netip.AddrPortFrom(src, uint16(t.SrcPort)), netip.AddrPortFrom(dst, uint16(t.DstPort))}, true
	}
	return flow{}, false
}

// describe says what a frame is, for people.
func describe(p gopacket.Packet) string {
	ether, protocol := kinds(p)
	text := strings.TrimSpace(ether + " " + protocol)
	if f, ok := flowOf(p); ok {
		return fmt.Sprintf("%s %s to %s", text, f.from, f.to)
	}
	if n := p.NetworkLayer(); n != nil {
		text += fmt.Sprintf(" %s to %s", n.NetworkFlow().Src(), n.NetworkFlow().Dst())
	}
	if icmp, ok := p.Layer(layers.LayerTypeICMPv6).(*layers.ICMPv6); ok {
		text += " " + icmp.TypeCode.String()
	}
	if l := p.LinkLayer(); l != nil && p.NetworkLayer() == nil {
		text += fmt.Sprintf(" %s to %s", l.LinkFlow().Src(), l.LinkFlow().Dst())
	}
	return text
}
