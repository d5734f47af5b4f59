package health

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// maxFile bounds what is read of one file. The largest, /proc/meminfo, has about 1.5 KiB.
const maxFile = 16 << 10

// kernel reads what Linux tells in proc(5) and sysfs(5). Every method reports false where it does not.
type kernel struct{ root fs.FS }

func (k kernel) read(name string) (string, bool) {
	f, err := k.root.Open(name)
	if err != nil {
		return "", false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	return strings.TrimSpace(string(b)), err == nil
}

func (k kernel) number(name string) (int64, bool) {
	s, ok := k.read(name)
	n, err := strconv.ParseInt(s, 10, 64)
	return n, ok && err == nil
}

// uptime reads /proc/uptime: seconds since boot, suspend included.
func (k kernel) uptime() (time.Duration, bool) {
	s, _ := k.read("proc/uptime")
	first, _, _ := strings.Cut(s, " ")
	seconds, ok := amount(first)
	if !ok || seconds > math.MaxInt64/float64(time.Second) {
		return 0, false
	}
	return time.Duration(seconds) * time.Second, true
}

// load reads the averages over 1, 5 and 15 minutes in /proc/loadavg.
func (k kernel) load() (l [3]float64, ok bool) {
	s, _ := k.read("proc/loadavg")
	fields := strings.Fields(s)
	if len(fields) < len(l) {
		return l, false
	}
	for i := range l {
		if l[i], ok = amount(fields[i]); !ok {
			return l, false
		}
	}
	return l, true
}

// cpus counts the processors that are on line: "0-3,5" is five.
func (k kernel) cpus() (int, bool) {
	s, ok := k.read("sys/devices/system/cpu/online")
	if !ok {
		return 0, false
	}
	n := 0
	for span := range strings.SplitSeq(s, ",") {
		from, to, isRange := strings.Cut(span, "-")
		if !isRange {
			to = from
		}
		a, errA := strconv.ParseUint(from, 10, 16)
		b, errB := strconv.ParseUint(to, 10, 16)
		if errA != nil || errB != nil || b < a {
			return 0, false
		}
		n += int(b-a) + 1
	}
	return n, true
}

// memory reads total and available memory in MiB. "Available" is the kernel's own estimate of what can be used without
// swapping; "free" would count the page cache as used.
func (k kernel) memory() (total, available uint64, ok bool) {
	s, _ := k.read("proc/meminfo")
	found := 0
	for line := range strings.Lines(s) {
		name, rest, _ := strings.Cut(line, ":")
		var to *uint64
		switch name {
		case "MemTotal":
			to = &total
		case "MemAvailable":
			to = &available
		default:
			continue
		}
		kib, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		if err != nil {
			return 0, 0, false
		}
		*to = kib / 1024
		found++
	}
	return total, available, found == 2
}

// temperature is the hottest thermal zone in degrees Celsius. A Raspberry Pi has one, of its processor.
func (k kernel) temperature() (float64, bool) {
	zones, err := fs.Glob(k.root, "sys/class/thermal/thermal_zone*/temp")
	if err != nil {
		return 0, false
	}
	hottest, found := math.Inf(-1), false
	for _, z := range zones {
		// Millidegrees. A sensor that is off answers with an error or with something that no board survives.
		if milli, ok := k.number(z); ok && milli > -60_000 && milli < 200_000 {
			hottest, found = max(hottest, math.Round(float64(milli)/100)/10), true
		}
	}
	return hottest, found
}

// throttled reads the Raspberry Pi firmware's flags: bit 0 is under-voltage now, bit 16 is under-voltage since the start.
func (k kernel) throttled() (now, was, ok bool) {
	s, ok := k.read("sys/devices/platform/soc/soc:firmware/get_throttled")
	flags, err := strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 32)
	if !ok || err != nil {
		return false, false, false
	}
	return flags&1 != 0, flags&(1<<16) != 0, true
}

// voltageAlarm reads the same from mainline's raspberrypi-hwmon driver, which does not say what has been.
func (k kernel) voltageAlarm() (now, ok bool) {
	names, err := fs.Glob(k.root, "sys/class/hwmon/hwmon*/name")
	if err != nil {
		return false, false
	}
	for _, n := range names {
		if driver, _ := k.read(n); driver != "rpi_volt" {
			continue
		}
		alarm, ok := k.number(path.Join(path.Dir(n), "in0_lcrit_alarm"))
		return alarm != 0, ok
	}
	return false, false
}

// disk measures the file system that holds dir, in MiB. Free is what an unprivileged writer can still use.
func disk(dir string) (total, free uint64, ok bool) {
	var st unix.Statfs_t
	for {
		err := unix.Statfs(dir, &st)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || st.Bsize <= 0 {
			return 0, 0, false
		}
		unit := uint64(st.Bsize)
		return st.Blocks * unit >> 20, st.Bavail * unit >> 20, true
	}
}

// amount parses a finite number that is not negative.
func amount(s string) (float64, bool) {
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil && v >= 0 && !math.IsInf(v, 0)
}
