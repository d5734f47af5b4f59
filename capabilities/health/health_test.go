package health_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/health"
)

func file(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

// pi is what a Raspberry Pi 4 shows, as far as the capability looks.
func pi() fstest.MapFS {
	return fstest.MapFS{
		"proc/uptime":                                         file("273661.52 1021413.10\n"),
		"proc/loadavg":                                        file("0.52 1.25 0.98 2/214 1207\n"),
		"proc/meminfo":                                        file("MemTotal:        3884664 kB\nMemFree:          214912 kB\nMemAvailable:    2201464 kB\nBuffers:           12345 kB\n"),
		"sys/devices/system/cpu/online":                       file("0-3\n"),
		"sys/class/thermal/thermal_zone0/temp":                file("48312\n"),
		"sys/class/thermal/thermal_zone1/temp":                file("61056\n"),
		"sys/class/thermal/cooling_device0/cur_state":         file("0\n"),
		"sys/devices/platform/soc/soc:firmware/get_throttled": file("50000\n"),
		"sys/class/hwmon/hwmon0/name":                         file("cpu_thermal\n"),
		"sys/class/hwmon/hwmon1/name":                         file("rpi_volt\n"),
		"sys/class/hwmon/hwmon1/in0_lcrit_alarm":              file("1\n"),
	}
}

func run(t *testing.T, root fs.FS, state string) (capabilities.Answer, map[string]any) {
	t.Helper()
	a := health.Handler{Root: root, State: state}.Run(t.Context(), []byte("{}"), nil, nil, nil, health.Adapter{}.Spec().Bounds.Body)
	if a.Status != capabilities.Done {
		return a, nil
	}
	var got map[string]any
	if err := json.Unmarshal(a.Body, &got); err != nil {
		t.Fatal(err)
	}
	if err := shape(t).Validate(got); err != nil {
		t.Errorf("the result breaks its own schema: %v", err)
	}
	return a, got
}

func shape(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(health.Adapter{}.Spec().ResultShape, &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReadsWhatTheKernelTells(t *testing.T) {
	a, got := run(t, pi(), "/nowhere")
	want := map[string]any{
		"uptime": "3 days 4 hours 1 minute", "uptime_seconds": 273661.0, "cpu_count": 4.0,
		"load_1_min": 0.52, "load_5_min": 1.25, "load_15_min": 0.98,
		"memory_total_mib": 3793.0, "memory_available_mib": 2149.0,
		"temperature_celsius": 61.1, "under_voltage": false, "under_voltage_since_start": true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if a.Sent || a.Items != 1 || a.Answer == [32]byte{} {
		t.Errorf("%+v", a)
	}
}

func TestWhatIsNotToldIsAbsent(t *testing.T) {
	for event, c := range map[string]struct {
		change func(fstest.MapFS)
		absent []string
	}{
		"no thermal sensor": {func(m fstest.MapFS) {
			delete(m, "sys/class/thermal/thermal_zone0/temp")
			delete(m, "sys/class/thermal/thermal_zone1/temp")
		}, []string{"temperature_celsius"}},
		"sensors that are off": {func(m fstest.MapFS) {
			m["sys/class/thermal/thermal_zone0/temp"] = file("-274000")
			m["sys/class/thermal/thermal_zone1/temp"] = file("")
		}, []string{"temperature_celsius"}},
		"no firmware, no hwmon": {func(m fstest.MapFS) {
			delete(m, "sys/devices/platform/soc/soc:firmware/get_throttled")
			delete(m, "sys/class/hwmon/hwmon1/name")
		}, []string{"under_voltage", "under_voltage_since_start"}},
		"no MemAvailable":          {func(m fstest.MapFS) { m["proc/meminfo"] = file("MemTotal: 1024 kB\n") }, []string{"memory_total_mib", "memory_available_mib"}},
		"half a load average":      {func(m fstest.MapFS) { m["proc/loadavg"] = file("0.52 1.25") }, []string{"load_1_min", "load_5_min", "load_15_min"}},
		"a load that is no number": {func(m fstest.MapFS) { m["proc/loadavg"] = file("NaN -1 Inf") }, []string{"load_1_min"}},
		"uptime hidden":            {func(m fstest.MapFS) { delete(m, "proc/uptime") }, []string{"uptime", "uptime_seconds"}},
		"uptime that overflows":    {func(m fstest.MapFS) { m["proc/uptime"] = file("1e300 1") }, []string{"uptime", "uptime_seconds"}},
		"a strange processor list": {func(m fstest.MapFS) { m["sys/devices/system/cpu/online"] = file("3-0") }, []string{"cpu_count"}},
		"no file system":           {func(fstest.MapFS) {}, []string{"disk_total_mib", "disk_free_mib"}},
	} {
		m := pi()
		c.change(m)
		_, got := run(t, m, "/nowhere")
		for _, k := range c.absent {
			if v, ok := got[k]; ok {
				t.Errorf("%s: %s is %v", event, k, v)
			}
		}
		if len(got) == 0 {
			t.Errorf("%s: nothing is left", event)
		}
	}
}

// A model that is not told that there is no thermometer makes a temperature up.
func TestWhatIsNotMeasuredIsNamed(t *testing.T) {
	root := pi()
	for name := range root {
		if strings.Contains(name, "thermal") || strings.Contains(name, "hwmon") || strings.Contains(name, "throttled") {
			delete(root, name)
		}
	}
	_, got := run(t, root, t.TempDir())
	if diff := cmp.Diff([]any{"temperature", "under-voltage"}, got["not_measured"]); diff != "" {
		t.Error(diff)
	}
	if _, all := run(t, pi(), t.TempDir()); all["not_measured"] != nil {
		t.Errorf("a box with every sensor says %v", all["not_measured"])
	}
}

func TestMainlineAlarmStandsInForTheFirmware(t *testing.T) {
	m := pi()
	delete(m, "sys/devices/platform/soc/soc:firmware/get_throttled")
	_, got := run(t, m, "/nowhere")
	if got["under_voltage"] != true {
		t.Errorf("under_voltage is %v", got["under_voltage"])
	}
	if v, ok := got["under_voltage_since_start"]; ok {
		t.Errorf("it was invented: %v", v)
	}
}

func TestToldNothingItFails(t *testing.T) {
	if a, _ := run(t, fstest.MapFS{}, "/nowhere"); a.Status != capabilities.Failed {
		t.Errorf("%+v", a)
	}
}

func TestOverTheBoundItFails(t *testing.T) {
	a := health.Handler{Root: pi(), State: "/"}.Run(t.Context(), nil, nil, nil, nil, 20)
	if a.Status != capabilities.Failed || a.Body != nil {
		t.Errorf("%+v", a)
	}
}

func TestReadsThisMachine(t *testing.T) {
	state := t.TempDir()
	_, got := run(t, os.DirFS("/"), state)
	for _, k := range []string{"uptime_seconds", "cpu_count", "load_1_min", "memory_total_mib", "disk_total_mib", "disk_free_mib"} {
		if _, ok := got[k]; !ok {
			t.Errorf("%s is missing on a real Linux", k)
		}
	}
	zones, _ := filepath.Glob("/sys/class/thermal/thermal_zone*/temp")
	if _, ok := got["temperature_celsius"]; ok && len(zones) == 0 {
		t.Error("a temperature without a sensor")
	}
}

func TestUptimeIsSpelled(t *testing.T) {
	for raw, want := range map[string]string{"5.0 1": "less than a minute", "61.9 1": "1 minute", "3600 1": "1 hour", "90061 1": "1 day 1 hour 1 minute", "864000 1": "10 days"} {
		m := pi()
		m["proc/uptime"] = file(raw)
		if _, got := run(t, m, "/nowhere"); got["uptime"] != want {
			t.Errorf("%s: %v, want %s", raw, got["uptime"], want)
		}
	}
}

func TestTakesNoArguments(t *testing.T) {
	for raw, code := range map[string]capabilities.Code{
		`{"token":"9F3A"}`:                   capabilities.CodeUnknownArgument,
		`{"x":1,"x":1}`:                      capabilities.CodeUnknownArgument,
		`null`:                               capabilities.CodeInvalidArguments,
		`[]`:                                 capabilities.CodeInvalidArguments,
		``:                                   capabilities.CodeInvalidArguments,
		`{} {}`:                              capabilities.CodeInvalidArguments,
		`{` + strings.Repeat(" ", 300) + `}`: capabilities.CodeArgumentTooLong,
	} {
		_, err := health.Adapter{}.Plan([]byte(raw))
		var arg *capabilities.ArgumentError
		if !errors.As(err, &arg) || arg.Code != code {
			t.Errorf("%s: %v, want %s", raw, err, code)
		}
	}
	p, err := health.Adapter{}.Plan([]byte(" { } "))
	if err != nil || string(p.Args) != "{}" {
		t.Errorf("got %s, %v", p.Args, err)
	}
}

// A19: what needs no press sends nothing and changes nothing.
func TestIsLocalAndReadOnly(t *testing.T) {
	s := health.Adapter{}.Spec()
	if s.Effect != capabilities.Read || s.Network != capabilities.NetworkNone || s.Class != capabilities.ClassNone {
		t.Errorf("effect %d, network %d, class %s", s.Effect, s.Network, s.Class)
	}
	p, err := health.Adapter{}.Plan([]byte("{}"))
	if err != nil || p.Request != nil || p.Destination != "" {
		t.Errorf("the plan sends something: %+v, %v", p, err)
	}
	if s.Revision != (health.Handler{}).Revision() {
		t.Errorf("adapter %s, handler %s", s.Revision, health.Handler{}.Revision())
	}
}
