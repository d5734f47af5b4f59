package card

import (
	"fmt"
	"slices"
	"strings"
)

// SectorBytes is the unit of all partition tables here.
const SectorBytes = 512

// Labels of partitions.
const (
	Boot    = "boot"
	RootA   = "root_a"
	VerityA = "verity_a"
	RootB   = "root_b"
	VerityB = "verity_b"
	Audit   = "audit"
	Data    = "data"
	Empty   = "_empty" // a slot that holds nothing, as systemd names it
)

// Sizes of the partitions in the image, in bytes.
const (
	BootBytes   = 260 << 20 // the least that systemd-repart makes FAT32 of
	RootBytes   = 512 << 20
	VerityBytes = 8 << 20
	AuditBytes  = 512 << 20
	DataBytes   = 128 << 20
)

// Partition types (UAPI Discoverable Partitions Specification). Audit and data are of the generic one: systemd must not mount
// them by itself.
const (
	TypeESP    = "c12a7328-f81f-11d2-ba4b-00a0c93ec93b"
	TypeRoot   = "b921b045-1df0-41c3-af44-4c6f280d3fae" // root of an arm64 system
	TypeVerity = "df3300ce-d69f-4c92-978c-9bfb0f38d820" // its hashes
	TypeLinux  = "0fc63daf-8483-4772-8e79-3d69d8477de4"
)

// order is which labels may stand at which place of the table.
func order() [][]string {
	return [][]string{{Boot}, {RootA}, {VerityA}, {Empty, RootB}, {Empty, VerityB}, {Audit}, {Data}}
}

// NotCardError says why a disk is not one of Assent's.
type NotCardError struct{ Why string }

func (e *NotCardError) Error() string { return "not a card of Assent: " + e.Why }

// Check says whether t is the table of a card: the labels in their order, and data last on the disk, so that it can grow. The
// error is a *NotCardError.
func (t *Table) Check() error {
	parts := t.Partitions()
	want := order()
	if len(parts) != len(want) {
		return &NotCardError{fmt.Sprintf("%d partitions instead of %d", len(parts), len(want))}
	}
	var end int64
	for i, p := range parts {
		if !slices.Contains(want[i], p.Label) {
			return &NotCardError{fmt.Sprintf("partition %d is labelled %q instead of %s", p.Number, p.Label, strings.Join(want[i], " or "))}
		}
		if p.Start < end {
			return &NotCardError{fmt.Sprintf("partition %d begins before the one in front of it ends", p.Number)}
		}
		end = p.Start + p.Size
	}
	return nil
}
