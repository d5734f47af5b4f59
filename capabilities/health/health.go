// Package health is system.health: how the box itself is doing, as its kernel says.
//
// It takes no arguments, reads /proc and /sys and lets nothing leave the box, so it needs no press. What the kernel does not
// tell is left out of the result and named as not measured: a missing thermal sensor is never zero, and a model that is told
// of it makes no temperature up.
package health

import (
	"encoding/json"
	"time"

	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/arguments"
)

// Revision names the adapter that grants and approvals of this package refer to.
const Revision = "health/1"

const argBytes = 256

const argsSchema = `{"type":"object","properties":{},"additionalProperties":false}`

const resultShape = `{
	"type": "object",
	"additionalProperties": false,
	"properties": {
		"uptime": {"type": "string", "maxLength": 64, "description": "time since the box started"},
		"uptime_seconds": {"type": "integer", "minimum": 0},
		"cpu_count": {"type": "integer", "minimum": 1},
		"load_1_min": {"type": "number", "minimum": 0, "description": "processes that run or wait; busy from cpu_count upwards"},
		"load_5_min": {"type": "number", "minimum": 0},
		"load_15_min": {"type": "number", "minimum": 0},
		"memory_total_mib": {"type": "integer", "minimum": 0},
		"memory_available_mib": {"type": "integer", "minimum": 0},
		"disk_total_mib": {"type": "integer", "minimum": 0},
		"disk_free_mib": {"type": "integer", "minimum": 0},
		"temperature_celsius": {"type": "number", "description": "the hottest sensor"},
		"under_voltage": {"type": "boolean", "description": "the power supply is too weak right now"},
		"under_voltage_since_start": {"type": "boolean"},
		"not_measured": {"type": "array", "maxItems": 8, "items": {"type": "string", "maxLength": 32}, "description": "what this box has no sensor for"}
	}
}`

// Adapter is the guard's half.
type Adapter struct{}

var _ capabilities.Adapter = Adapter{}

// Spec implements capabilities.Adapter.
func (Adapter) Spec() capabilities.Spec {
	return capabilities.Spec{
		Name:        "system.health",
		Version:     1,
		Revision:    Revision,
		Description: "Read this box's own temperature, load, memory, disk space and uptime.",
		ArgsSchema:  json.RawMessage(argsSchema),
		ResultShape: json.RawMessage(resultShape),
		Effect:      capabilities.Read,
		Network:     capabilities.NetworkNone,
		Privacy:     capabilities.PrivacyBox,
		Class:       capabilities.ClassNone,
		Log:         capabilities.LogView,
		Bounds:      capabilities.Bounds{PerTurn: 3, ArgBytes: argBytes, Shown: 64, Body: 4 << 10, Timeout: 5 * time.Second},
		Idempotent:  true,
	}
}

// Plan implements capabilities.Adapter. The only arguments are none.
func (Adapter) Plan(raw []byte) (capabilities.Plan, error) {
	if _, err := arguments.Object(raw, argBytes); err != nil {
		return capabilities.Plan{}, err
	}
	return capabilities.Plan{Args: []byte("{}"), Title: "Read the box's health", Note: "stays in the box, changes nothing"}, nil
}
