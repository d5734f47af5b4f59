package health

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"time"

	"assent.home.arpa/capabilities"
)

// Handler is the worker's half. It needs read access to /proc and /sys.
type Handler struct {
	Root  fs.FS  // the root of the file system: os.DirFS("/")
	State string // a path on the file system that holds the box's state
}

var _ capabilities.Handler = Handler{}

// Revision implements capabilities.Handler.
func (Handler) Revision() string { return Revision }

// reading is the result body. A nil field is a thing that the kernel did not tell.
type reading struct {
	Uptime          string   `json:"uptime,omitempty"`
	UptimeSeconds   *int64   `json:"uptime_seconds,omitempty"`
	CPUs            *int     `json:"cpu_count,omitempty"`
	Load1           *float64 `json:"load_1_min,omitempty"`
	Load5           *float64 `json:"load_5_min,omitempty"`
	Load15          *float64 `json:"load_15_min,omitempty"`
	MemoryTotal     *uint64  `json:"memory_total_mib,omitempty"`
	MemoryAvailable *uint64  `json:"memory_available_mib,omitempty"`
	DiskTotal       *uint64  `json:"disk_total_mib,omitempty"`
	DiskFree        *uint64  `json:"disk_free_mib,omitempty"`
	Temperature     *float64 `json:"temperature_celsius,omitempty"`
	UnderVoltage    *bool    `json:"under_voltage,omitempty"`
	UnderVoltageWas *bool    `json:"under_voltage_since_start,omitempty"`
	NotMeasured     []string `json:"not_measured,omitempty"`
}

// Run implements capabilities.Handler. It fails only where the kernel tells nothing at all.
func (h Handler) Run(_ context.Context, _ []byte, req *capabilities.Request, _ []byte, _ net.Conn, bound int) capabilities.Answer {
	if req != nil {
		return capabilities.Answer{Status: capabilities.Failed, Code: capabilities.CodeInternal}
	}
	var r reading
	k := kernel{h.Root}
	if up, ok := k.uptime(); ok {
		seconds := int64(up / time.Second)
		r.Uptime, r.UptimeSeconds = spell(up), &seconds
	}
	if n, ok := k.cpus(); ok {
		r.CPUs = &n
	}
	if l, ok := k.load(); ok {
		r.Load1, r.Load5, r.Load15 = &l[0], &l[1], &l[2]
	}
	if total, available, ok := k.memory(); ok {
		r.MemoryTotal, r.MemoryAvailable = &total, &available
	}
	if total, free, ok := disk(h.State); ok {
		r.DiskTotal, r.DiskFree = &total, &free
	}
	if t, ok := k.temperature(); ok {
		r.Temperature = &t
	} else {
		r.NotMeasured = append(r.NotMeasured, "temperature")
	}
	if now, was, ok := k.throttled(); ok {
		r.UnderVoltage, r.UnderVoltageWas = &now, &was
	} else if now, ok := k.voltageAlarm(); ok {
		r.UnderVoltage = &now
	} else {
		r.NotMeasured = append(r.NotMeasured, "under-voltage")
	}
	body, err := json.Marshal(r)
	if err != nil || len(body) > bound || !r.any() {
		return capabilities.Answer{Status: capabilities.Failed, Code: capabilities.CodeInternal}
	}
	return capabilities.Answer{Status: capabilities.Done, Items: 1, Answer: sha256.Sum256(body), Body: body}
}

// any reports whether the kernel told anything at all.
func (r reading) any() bool {
	return r.UptimeSeconds != nil || r.CPUs != nil || r.Load1 != nil || r.MemoryTotal != nil || r.DiskTotal != nil || r.Temperature != nil || r.UnderVoltage != nil
}

// spell writes d as people say it: small models are poor at turning seconds into days.
func spell(d time.Duration) string {
	minutes := int64(d / time.Minute)
	var parts []string
	for _, u := range []struct {
		n    int64
		name string
	}{{minutes / (24 * 60), "day"}, {minutes / 60 % 24, "hour"}, {minutes % 60, "minute"}} {
		switch {
		case u.n == 1:
			parts = append(parts, "1 "+u.name)
		case u.n > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", u.n, u.name))
		}
	}
	if len(parts) == 0 {
		return "less than a minute"
	}
	return strings.Join(parts, " ")
}
