package systemd_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// inNetwork tells a copy of the test's own program what it is to do in a network of its own.
const inNetwork = "ASSENT_TEST_NETWORK"

// The users of the packet filter, by the numbers that this test gives those that no file fixes.
func filterUsers(t *testing.T) map[string]uint32 {
	t.Helper()
	ids := map[string]uint32{"systemd-network": 61001, "systemd-resolve": 61002, "systemd-timesync": 61003, "root": 0}
	for _, l := range lines(t, "usr/lib/sysusers.d/assent.conf") {
		if l[0] != "u!" {
			continue
		}
		id, err := strconv.ParseUint(l[2], 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		ids[l[1]] = uint32(id)
	}
	return ids
}

// packet is one that somebody tries to send, or a connection.
type packet struct {
	User     uint32 // on the box; not for what comes from outside
	Protocol string // udp or tcp
	From, To int    // ports; From may be 0
}

// order is what a copy of this program does.
type order struct {
	Act     string // box or peer
	Filter  string
	Packets []packet
}

func TestMain(m *testing.M) {
	if text := os.Getenv(inNetwork); text != "" {
		var o order
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			panic(err)
		}
		// The neighbour is to die with this thread (prctl(2), PR_SET_PDEATHSIG), so nobody else may use it up.
		runtime.LockOSThread()
		if err := o.act(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// drain is how long a socket that is to be closed still reads what it has.
const drain = 300 * time.Millisecond

const boxAddress, peerAddress = "10.9.0.1", "10.9.0.2"

func (o order) act() error {
	switch o.Act {
	case "box":
		return o.box()
	case "peer":
		return o.peer()
	}
	return fmt.Errorf("unknown act %q", o.Act)
}

// copyOf is this program with another order, in a network of its own.
func copyOf(o order) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), inNetwork+"="+string(text))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	return cmd, nil
}

// box is a machine with the filter and one neighbour. It prints what arrived at the neighbour, and then what of the neighbour's
// arrived here.
func (o order) box() error {
	neighbour, err := copyOf(order{Act: "peer", Packets: o.Packets})
	if err != nil {
		return err
	}
	commands, err := neighbour.StdinPipe()
	if err != nil {
		return err
	}
	out, err := neighbour.StdoutPipe()
	if err != nil {
		return err
	}
	heard := bufio.NewReader(out)
	if err := neighbour.Start(); err != nil {
		return err
	}
	defer neighbour.Process.Kill()
	for _, args := range [][]string{
		{"link", "set", "lo", "up"},
		{"link", "add", "lan", "type", "veth", "peer", "name", "far"},
		{"link", "set", "far", "netns", strconv.Itoa(neighbour.Process.Pid)},
		{"address", "add", boxAddress + "/24", "dev", "lan"},
		{"link", "set", "lan", "up"},
	} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %v: %w: %s", args, err, out)
		}
	}
	filter := exec.Command("nft", "-f", "-")
	filter.Stdin = strings.NewReader(o.Filter)
	if out, err := filter.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w: %s", err, out)
	}
	if _, err := fmt.Fprintln(commands, "up"); err != nil {
		return err
	}
	if _, err := heard.ReadString('\n'); err != nil { // it listens
		return err
	}
	var sending sync.WaitGroup
	for _, p := range o.Packets {
		sending.Go(func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with its user
			// The user that the filter looks at is that of files (socket(7)), and this leaves the right to low ports.
			unix.Setfsuid(int(p.User))
			_ = p.send(peerAddress, 3*time.Second) // whether it arrives is what counts
		})
	}
	sending.Wait()
	var here []string
	stop, err := listen([]packet{{Protocol: "tcp", To: 443}, {Protocol: "tcp", To: 80}, {Protocol: "tcp", To: 22}, {Protocol: "tcp", To: 8443}, {Protocol: "udp", To: 5353}, {Protocol: "udp", To: 9999}, {Protocol: "udp", To: 68}},
		func(p packet) { here = append(here, fmt.Sprintf("%s %d", p.Protocol, p.To)) })
	if err != nil {
		return err
	}
	commands.Close()
	if _, err := heard.WriteTo(os.Stdout); err != nil {
		return err
	}
	if err := neighbour.Wait(); err != nil {
		return err
	}
	stop()
	slices.Sort(here)
	fmt.Println("here:", strings.Join(slices.Compact(here), ", "))
	return nil
}

// peer is the neighbour: it notes what arrives, and then tries the box's ports.
func (o order) peer() error {
	in := make([]byte, 64)
	if _, err := os.Stdin.Read(in); err != nil { // its card is there
		return err
	}
	for _, args := range [][]string{{"link", "set", "lo", "up"}, {"address", "add", peerAddress + "/24", "dev", "far"}, {"link", "set", "far", "up"}} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %v: %w: %s", args, err, out)
		}
	}
	var ports []packet
	for _, p := range o.Packets {
		if q := (packet{Protocol: p.Protocol, To: p.To}); !slices.Contains(ports, q) {
			ports = append(ports, q)
		}
	}
	stop, err := listen(ports, func(p packet) { fmt.Printf("%d %s %d\n", p.User, p.Protocol, p.To) })
	if err != nil {
		return err
	}
	fmt.Println("listening")
	if _, err := bytes.NewBuffer(nil).ReadFrom(os.Stdin); err != nil { // the box has tried all
		return err
	}
	stop()
	for _, p := range []packet{{Protocol: "udp", From: 5353, To: 5353}, {Protocol: "udp", To: 9999}, {Protocol: "udp", From: 67, To: 68}, {Protocol: "tcp", To: 22}, {Protocol: "tcp", To: 8443}, {Protocol: "tcp", To: 443}, {Protocol: "tcp", To: 80}} {
		_ = p.send(boxAddress, time.Second) // what the box drops it does not answer
	}
	return nil
}

// send sends one datagram, or opens a connection. The user's number is in it.
func (p packet) send(to string, patience time.Duration) error {
	text := strconv.FormatUint(uint64(p.User), 10)
	if p.Protocol == "tcp" {
		c, err := net.DialTimeout("tcp4", net.JoinHostPort(to, strconv.Itoa(p.To)), patience)
		if err != nil {
			return err
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(patience))
		if _, err = c.Write([]byte(text)); err != nil {
			return err
		}
		_, err = c.Read(make([]byte, 1)) // until it was noted
		return err
	}
	d := net.Dialer{LocalAddr: &net.UDPAddr{Port: p.From}, Control: func(_, _ string, c syscall.RawConn) error { // several use one
		return c.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) })
	}}
	c, err := d.Dial("udp4", net.JoinHostPort(to, strconv.Itoa(p.To)))
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Write([]byte(text))
	return err
}

// listen tells of everything that arrives at ports, one after the other, until stop, which waits for what is on its way.
func listen(ports []packet, arrived func(packet)) (stop func(), err error) {
	events := make(chan packet)
	var closers []func() error
	told := make(chan struct{})
	go func() {
		defer close(told)
		for p := range events {
			arrived(p)
		}
	}()
	note := func(p packet, text []byte) {
		if id, err := strconv.ParseUint(string(text), 10, 32); err == nil {
			p.User = uint32(id)
			events <- p
		}
	}
	var readers []chan struct{}
	for _, p := range ports {
		done := make(chan struct{})
		readers = append(readers, done)
		address := fmt.Sprintf("0.0.0.0:%d", p.To)
		if p.Protocol == "udp" {
			c, err := net.ListenPacket("udp4", address)
			if err != nil {
				return nil, err
			}
			// What has arrived and was not read yet is read still.
			closers = append(closers, func() error { return c.SetReadDeadline(time.Now().Add(drain)) })
			go func() {
				defer close(done)
				defer c.Close()
				buf := make([]byte, 16)
				for {
					n, _, err := c.ReadFrom(buf)
					if err != nil {
						return
					}
					note(p, buf[:n])
				}
			}()
			continue
		}
		l, err := net.Listen("tcp4", address)
		if err != nil {
			return nil, err
		}
		closers = append(closers, l.Close)
		go func() {
			defer close(done)
			buf := make([]byte, 16)
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.SetReadDeadline(time.Now().Add(10 * time.Second))
				n, err := c.Read(buf)
				if err == nil {
					note(p, buf[:n])
				}
				c.Close()
			}
		}()
	}
	return func() {
		for _, c := range closers {
			c()
		}
		for _, r := range readers {
			<-r
		}
		close(events)
		<-told
	}, nil
}

// D8, W1, W16: the packet filter lets out the courier's connections and look-ups, and of everybody else what the table of what
// leaves says; and lets in phones and who asks for the box's name.
func TestFirewall(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: the packet filter: a network of its own needs root")
	}
	for _, program := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("SKIPPED: the packet filter: this machine has no %s", program)
		}
	}
	users := filterUsers(t)
	text, err := os.ReadFile("usr/lib/assent/firewall.nft")
	if err != nil {
		t.Fatal(err)
	}
	filter := string(text)
	for name, id := range users {
		filter = strings.ReplaceAll(filter, fmt.Sprintf("skuid %q", name), fmt.Sprintf("skuid %d", id))
	}
	type try struct {
		user     string
		protocol string
		from, to int
		arrives  bool
	}
	tries := []try{
		{"assent-courier", "tcp", 0, 443, true},
		{"assent-courier", "tcp", 0, 8080, true},
		{"assent-courier", "udp", 0, 53, true},
		{"assent-courier", "udp", 0, 9999, false},
		{"assent-courier", "udp", 5353, 5353, false},
		{"assent-courier", "udp", 68, 67, false},
		{"systemd-network", "udp", 68, 67, true},
		{"systemd-network", "udp", 0, 53, false},
		{"systemd-network", "tcp", 0, 443, false},
		{"systemd-network", "udp", 0, 67, false},
		{"systemd-resolve", "udp", 5353, 5353, true},
		{"systemd-resolve", "udp", 0, 53, false},
		{"systemd-resolve", "udp", 0, 5353, false},
		{"systemd-resolve", "tcp", 0, 443, false},
		{"systemd-timesync", "udp", 0, 123, true},
		{"systemd-timesync", "udp", 0, 53, false},
		{"systemd-timesync", "tcp", 0, 443, false},
	}
	for _, nobody := range []string{"root", "assent-gateway", "assent-guard", "assent-worker", "assent-model", "assent-export", "assent-address"} {
		for _, port := range []int{53, 67, 123, 5353, 9999} {
			tries = append(tries, try{nobody, "udp", 0, port, false})
		}
		tries = append(tries, try{nobody, "tcp", 0, 443, false}, try{nobody, "tcp", 0, 8080, false})
	}
	o := order{Act: "box", Filter: filter}
	for _, tr := range tries {
		o.Packets = append(o.Packets, packet{User: users[tr.user], Protocol: tr.protocol, From: tr.from, To: tr.to})
	}
	run := func() (arrived map[string]bool, here string) {
		t.Helper()
		cmd, err := copyOf(o)
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		arrived = map[string]bool{}
		for line := range strings.Lines(string(out)) {
			line = strings.TrimSpace(line)
			if rest, ok := strings.CutPrefix(line, "here: "); ok {
				here = rest
				continue
			}
			arrived[line] = true
		}
		return arrived, here
	}
	arrived, here := run()
	for _, tr := range tries {
		key := fmt.Sprintf("%d %s %d", users[tr.user], tr.protocol, tr.to)
		if tr.from == 0 && slices.Contains(tries, try{tr.user, tr.protocol, tr.to, tr.to, true}) || tr.to == 67 && tr.from == 0 && tr.user == "systemd-network" {
			continue // the neighbour cannot tell from which port it came
		}
		if arrived[key] != tr.arrives {
			t.Errorf("%s %s %d→%d: arrived %v, want %v", tr.user, tr.protocol, tr.from, tr.to, arrived[key], tr.arrives)
		}
	}
	if want := "tcp 443, tcp 80, udp 5353, udp 68"; here != want {
		t.Errorf("of a neighbour's there arrived %s, want %s", here, want)
	}
	o.Filter = "" // the same without a filter arrives, or the test would prove nothing
	arrived, here = run()
	for _, tr := range tries {
		if !arrived[fmt.Sprintf("%d %s %d", users[tr.user], tr.protocol, tr.to)] {
			t.Errorf("%s %s %d does not arrive without a filter either", tr.user, tr.protocol, tr.to)
		}
	}
	if want := "tcp 22, tcp 443, tcp 80, tcp 8443, udp 5353, udp 68, udp 9999"; here != want {
		t.Errorf("without a filter, of a neighbour's there arrived %s, want %s", here, want)
	}
}
