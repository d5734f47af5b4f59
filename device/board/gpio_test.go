package board_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"assent.home.arpa/device"
	"assent.home.arpa/device/board"
)

// rawEvent is struct gpio_v2_line_event.
func rawEvent(stamp uint64, id, offset, seq uint32) []byte {
	b := make([]byte, 48)
	binary.NativeEndian.PutUint64(b[0:], stamp)
	binary.NativeEndian.PutUint32(b[8:], id)
	binary.NativeEndian.PutUint32(b[12:], offset)
	binary.NativeEndian.PutUint32(b[20:], seq)
	return b
}

// TestLayout holds the structures that the kernel is given against linux/gpio.h, on every machine that this is built for.
func TestLayout(t *testing.T) {
	var (
		chip   unix.GPIOChipInfo
		info   unix.GPIOV2LineInfo
		req    unix.GPIOV2LineRequest
		config unix.GPIOV2LineConfig
		attr   unix.GPIOV2LineConfigAttribute
		values unix.GPIOV2LineValues
		event  unix.GPIOV2LineEvent
	)
	for _, tt := range []struct {
		name      string
		got, want uintptr
	}{
		{"sizeof gpiochip_info", unsafe.Sizeof(chip), 68},
		{"gpiochip_info.lines", unsafe.Offsetof(chip.Lines), 64},
		{"sizeof gpio_v2_line_info", unsafe.Sizeof(info), 256},
		{"gpio_v2_line_info.consumer", unsafe.Offsetof(info.Consumer), 32},
		{"gpio_v2_line_info.offset", unsafe.Offsetof(info.Offset), 64},
		{"gpio_v2_line_info.flags", unsafe.Offsetof(info.Flags), 72},
		{"sizeof gpio_v2_line_config", unsafe.Sizeof(config), 272},
		{"gpio_v2_line_config.num_attrs", unsafe.Offsetof(config.Num_attrs), 8},
		{"gpio_v2_line_config.attrs", unsafe.Offsetof(config.Attrs), 32},
		{"sizeof gpio_v2_line_config_attribute", unsafe.Sizeof(attr), 24},
		{"gpio_v2_line_config_attribute.attr union", unsafe.Offsetof(attr.Attr.Flags), 8},
		{"gpio_v2_line_config_attribute.mask", unsafe.Offsetof(attr.Mask), 16},
		{"sizeof gpio_v2_line_request", unsafe.Sizeof(req), 592},
		{"gpio_v2_line_request.consumer", unsafe.Offsetof(req.Consumer), 256},
		{"gpio_v2_line_request.config", unsafe.Offsetof(req.Config), 288},
		{"gpio_v2_line_request.num_lines", unsafe.Offsetof(req.Num_lines), 560},
		{"gpio_v2_line_request.event_buffer_size", unsafe.Offsetof(req.Event_buffer_size), 564},
		{"gpio_v2_line_request.fd", unsafe.Offsetof(req.Fd), 588},
		{"sizeof gpio_v2_line_values", unsafe.Sizeof(values), 16},
		{"gpio_v2_line_values.mask", unsafe.Offsetof(values.Mask), 8},
		{"sizeof gpio_v2_line_event", unsafe.Sizeof(event), 48},
		{"gpio_v2_line_event.id", unsafe.Offsetof(event.Id), 8},
		{"gpio_v2_line_event.offset", unsafe.Offsetof(event.Offset), 12},
		{"gpio_v2_line_event.line_seqno", unsafe.Offsetof(event.Line_seqno), 20},
	} {
		if tt.got != tt.want {
			t.Errorf("%s is %d, the header says %d", tt.name, tt.got, tt.want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	offsets, names := []uint32{3, 17}, []device.Button{device.Approve, device.Deny}
	for _, tt := range []struct {
		name string
		b    []byte
	}{
		{"half an event", rawEvent(1, 1, 3, 1)[:24]},
		{"one event and a byte", append(rawEvent(1, 1, 3, 1), 0)},
		{"no edge", rawEvent(1, 0, 3, 1)},
		{"unknown edge", rawEvent(1, 3, 3, 1)},
		{"line that was not asked for", rawEvent(1, 1, 4, 1)},
		{"time before time", rawEvent(1<<63, 1, 3, 1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := board.DecodeEvents(tt.b, offsets, names); !errors.Is(err, board.ErrEvent) || got != nil {
				t.Errorf("decoded %+v, %v", got, err)
			}
		})
	}
}

// FuzzDecodeEvents encodes again what was decoded: it must be what the kernel said, event by event.
func FuzzDecodeEvents(f *testing.F) {
	f.Add([]byte{})
	f.Add(rawEvent(5e9, 1, 3, 1))
	f.Add(append(rawEvent(5e9, 1, 3, 1), rawEvent(6e9, 2, 17, 1)...))
	f.Add(rawEvent(1<<63, 1, 3, 1))
	offsets, names := []uint32{3, 17}, []device.Button{device.Approve, device.Deny}
	f.Fuzz(func(t *testing.T, b []byte) {
		events, err := board.DecodeEvents(b, offsets, names)
		if err != nil {
			return
		}
		if len(events)*48 != len(b) {
			t.Fatalf("%d bytes became %d events", len(b), len(events))
		}
		for i, ev := range events {
			got := b[48*i : 48*i+48]
			want := rawEvent(uint64(ev.Mono), uint32(ev.Edge), offsets[ev.Button-1], ev.Seq)
			if ev.Mono < 0 || !bytes.Equal(got[:16], want[:16]) || !bytes.Equal(got[20:24], want[20:24]) {
				t.Fatalf("event %d is %+v, the kernel said %x", i, ev, got)
			}
		}
	})
}
