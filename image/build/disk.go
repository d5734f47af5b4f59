package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"assent.home.arpa/image/card"
	"assent.home.arpa/image/slots"
)

// seed fixes all identifiers of partitions and file systems, so that two builds are the same. Cards may have them in common: the box
// looks for labels on the disk that it was started from, never for an identifier that another disk could have.
const seed = "2d1c6f5e-6a0b-4f27-9d3a-4a7353e9c0de"

// tableBytes is what the partition tables take at both ends, rounded to what partitions are aligned to.
const tableBytes = 4 << 20

// partitions makes the disk without its boot partition, and learns the root's hash from it.
func (b *build) partitions(ctx context.Context) error {
	if err := os.Mkdir(b.path("definitions"), 0o755); err != nil {
		return err
	}
	for i, d := range definitions() {
		if err := os.WriteFile(b.path("definitions", fmt.Sprintf("%02d.conf", 10*(i+1))), []byte(d), 0o644); err != nil {
			return err
		}
	}
	size := int64(card.BootBytes + 2*(card.RootBytes+card.VerityBytes) + card.AuditBytes + card.DataBytes + tableBytes)
	out, err := b.repart(ctx, "--empty=create", fmt.Sprintf("--size=%d", size), "--defer-partitions=esp", "--json=short")
	if err != nil {
		return err
	}
	var made []struct {
		Roothash string `json:"roothash"`
	}
	if err := json.Unmarshal([]byte(out), &made); err != nil {
		return fmt.Errorf("systemd-repart: %w", err)
	}
	for _, p := range made {
		if p.Roothash != "" {
			b.roothash = p.Roothash
		}
	}
	if b.roothash == "" {
		return fmt.Errorf("systemd-repart tells no root hash: %.300s", out)
	}
	return nil
}

// repart runs systemd-repart on the disk, without any device of the machine.
func (b *build) repart(ctx context.Context, args ...string) (string, error) {
	env := []string{
		fmt.Sprintf("SYSTEMD_REPART_MKFS_OPTIONS_VFAT=-S %d", card.SectorBytes), // U-Boot wants the disk's own sectors
		"SYSTEMD_REPART_MKFS_OPTIONS_EXT4=-b 4096 -J size=16",
	}
	args = append([]string{"systemd-repart", "--definitions=/build/definitions", "--offline=yes", "--seed=" + seed, "--no-pager", "--dry-run=no"}, args...)
	return b.tools.run(ctx, b.dir, env, append(args, "/build/disk")...)
}

// definitions are the partitions of package card, as repart.d(5) has them.
func definitions() []string {
	partition := func(kind, label string, bytes int, more ...string) string {
		lines := []string{
			"[Partition]", "Type=" + kind, "Label=" + label,
			fmt.Sprintf("SizeMinBytes=%d", bytes), fmt.Sprintf("SizeMaxBytes=%d", bytes), "Weight=0",
		}
		return strings.Join(append(lines, more...), "\n") + "\n"
	}
	const verity = "VerityMatchKey=a"
	return []string{
		partition("esp", card.Boot, card.BootBytes, "Format=vfat", "CopyFiles=/build/boot:/"),
		partition("root-arm64", card.RootA, card.RootBytes, "Format=erofs", "Compression=zstd", "CopyFiles=/build/root:/", "Verity=data", verity),
		partition("root-arm64-verity", card.VerityA, card.VerityBytes, "Verity=hash", verity),
		partition("root-arm64", card.Empty, card.RootBytes),
		partition("root-arm64-verity", card.Empty, card.VerityBytes),
		partition("linux-generic", card.Audit, card.AuditBytes, "Format=ext4"),
		partition("linux-generic", card.Data, card.DataBytes, "Format=ext4"),
	}
}

// bootState writes which slot starts first.
func bootState(file string) error {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := slots.Write(f, slots.Fresh()); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
