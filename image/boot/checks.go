package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// readyLimit is how long a box may take until guard and gateway say that they are ready.
const readyLimit = 4 * time.Minute

// roles are the units without which a box is not ready.
func roles() []string { return []string{"assent-guard.service", "assent-gateway.service"} }

// ready waits until units are active, and returns when, after the kernel's start, the last one became so.
func (b *box) ready(ctx context.Context, units ...string) (time.Duration, error) {
	var last time.Duration
	err := b.until(ctx, readyLimit, strings.Join(units, " and ")+" not ready", func(ctx context.Context) error {
		last = 0
		for _, unit := range units {
			text, err := b.agent.Run(ctx, "systemctl", "show", unit, "-p", "ActiveState", "-p", "ActiveEnterTimestampMonotonic")
			if err != nil {
				return err
			}
			fields := map[string]string{}
			for line := range strings.Lines(text) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
				fields[name] = value
			}
			if fields["ActiveState"] != "active" {
				return fmt.Errorf("%s is %s", unit, fields["ActiveState"])
			}
			micros, err := strconv.ParseInt(fields["ActiveEnterTimestampMonotonic"], 10, 64)
			if err != nil {
				return err
			}
			last = max(last, time.Duration(micros)*time.Microsecond)
		}
		return nil
	})
	return last, err
}

// running demands that everything that should run does, and that nothing failed.
func (b *box) running(ctx context.Context) error {
	return b.until(ctx, 2*time.Minute, "not everything runs", func(ctx context.Context) error {
		state, err := b.agent.Run(ctx, "systemctl", "is-system-running")
		if err == nil {
			return nil
		}
		failed, _ := b.agent.Run(ctx, "systemctl", "list-units", "--failed", "--plain", "--no-legend", "--no-pager")
		jobs, _ := b.agent.Run(ctx, "systemctl", "list-jobs", "--plain", "--no-legend", "--no-pager")
		return fmt.Errorf("the system is %s; failed: %s; jobs: %s", strings.TrimSpace(state), strings.TrimSpace(failed), strings.TrimSpace(jobs))
	})
}

// sealed demands that no kernel module can be loaded any more.
func (b *box) sealed(ctx context.Context) error {
	const switchedOff = "/proc/sys/kernel/modules_disabled"
	files, err := b.agent.Read(ctx, switchedOff)
	if err == nil && files[switchedOff] != "1" {
		err = fmt.Errorf("%s is %q", switchedOff, files[switchedOff])
	}
	return err
}

// listen is a socket on which the box hears the network.
type listen struct {
	protocol string // tcp or udp, of either family
	port     uint16
}

// hears lists the sockets on which the box hears more than itself.
func (b *box) hears(ctx context.Context) (map[listen]bool, error) {
	files, err := b.agent.Read(ctx, "/proc/net/tcp", "/proc/net/tcp6", "/proc/net/udp", "/proc/net/udp6")
	if err != nil {
		return nil, err
	}
	found := map[listen]bool{}
	for name, text := range files {
		protocol := strings.TrimSuffix(path.Base(name), "6")
		for line := range strings.Lines(text) {
			l, ok := parseSocket(protocol, line)
			if ok {
				found[l] = true
			}
		}
	}
	return found, nil
}

// parseSocket reads a line of /proc/net/tcp and its likes (Documentation/networking/proc_net_tcp.rst). It reports false for what is
// no socket that listens, or one that hears only the box itself.
func parseSocket(protocol, line string) (listen, bool) {
	const listening, unconnected = "0A", "07"
	fields := strings.Fields(line)
	if len(fields) < 4 || protocol == "tcp" && fields[3] != listening || protocol == "udp" && fields[3] != unconnected {
		return listen{}, false
	}
	addr, port, found := strings.Cut(fields[1], ":")
	n, err := strconv.ParseUint(port, 16, 16)
	raw, err2 := hex.DecodeString(addr)
	if !found || err != nil || err2 != nil {
		return listen{}, false
	}
	// Four bytes at a time, in the processor's order.
	local := len(raw) == 4 && raw[3] == 127 || len(raw) == 16 && addr == "00000000000000000000000001000000"
	return listen{protocol, uint16(n)}, !local
}

// mayHear is what the box may listen on, and why.
func mayHear() map[listen]string {
	return map[listen]string{
		{"tcp", 443}:  "the phone page",
		{"tcp", 80}:   "where people are told to use the other",
		{"udp", 5353}: "mDNS",
		{"udp", 68}:   "DHCP",
		{"udp", 546}:  "DHCPv6",
	}
}

// quietOutside demands that the box listens on nothing else, and on its page.
func (b *box) quietOutside(ctx context.Context) error {
	found, err := b.hears(ctx)
	if err != nil {
		return err
	}
	var wrong []string
	for l := range found {
		if mayHear()[l] == "" {
			wrong = append(wrong, fmt.Sprintf("%s %d", l.protocol, l.port))
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("the box listens on %s", strings.Join(slices.Sorted(slices.Values(wrong)), ", "))
	}
	for _, port := range []uint16{httpsPort, plainPort} {
		if !found[listen{"tcp", port}] {
			return fmt.Errorf("the box does not listen on port %d", port)
		}
	}
	return nil
}

// memory is what everything but the model and the test itself takes, in bytes, and the largest of it.
func (b *box) memory(ctx context.Context) (int64, string, error) {
	all, err := b.processes(ctx)
	if err != nil {
		return 0, "", err
	}
	sum := int64(0)
	sizes := map[int64]string{}
	for _, p := range all {
		if strings.Contains(p.Name, "llama-server") {
			continue
		}
		sum += p.PSS
		sizes[p.PSS] = p.Name
	}
	if len(sizes) < 5 {
		return 0, "", errors.New("hardly anything runs")
	}
	var largest []string
	for _, size := range slices.Backward(slices.Sorted(maps.Keys(sizes))) {
		if len(largest) < 6 {
			largest = append(largest, fmt.Sprintf("%.1f MB %s", float64(size)/1e6, sizes[size]))
		}
	}
	return sum, strings.Join(largest, "; "), nil
}

// inputs are the devices that the kernel takes for something to type or click on, beside the board's own button.
func (b *box) inputs(ctx context.Context) (map[string]string, error) {
	return b.agent.Read(ctx, "/sys/class/input/input*/name")
}
