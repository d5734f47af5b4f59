package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"assent.home.arpa/image/blockmap"
	"assent.home.arpa/image/card"
	"assent.home.arpa/image/slots"
	"assent.home.arpa/image/verity"
)

// writeMap writes to a file which parts of the image must be written to a card.
func (b *build) writeMap(ctx context.Context, image, file string) error {
	f, err := os.Open(image)
	if err != nil {
		return err
	}
	defer f.Close()
	table, err := card.ReadTable(f)
	if err != nil {
		return err
	}
	if err := table.Check(); err != nil {
		return err
	}
	size := table.DiskSize()
	ranges := []blockmap.Range{
		{Start: 0, End: card.HeadBytes},
		{Start: size - card.TailBytes, End: size},
		{Start: slots.First, End: slots.First + slots.Size},
		{Start: slots.Second, End: slots.Second + slots.Size},
	}
	for _, p := range table.Partitions() {
		used, err := b.used(ctx, f, table, p)
		if err != nil {
			return fmt.Errorf("partition %s: %w", p.Label, err)
		}
		for _, r := range used {
			ranges = append(ranges, blockmap.Range{Start: p.Start + r.Start, End: p.Start + r.End})
		}
	}
	var text bytes.Buffer
	if err := blockmap.Write(&text, f, size, ranges); err != nil {
		return err
	}
	return os.WriteFile(file, text.Bytes(), 0o644)
}

// used returns what of a partition must be written, from its start.
func (b *build) used(ctx context.Context, disk io.ReaderAt, table *card.Table, p card.Partition) ([]blockmap.Range, error) {
	content := io.NewSectionReader(disk, p.Start, p.Size)
	switch p.Label {
	case card.Empty:
		return nil, nil
	case card.Boot:
		return blockmap.FAT32(content, p.Size)
	case card.Audit, card.Data:
		if err := sparse(b.path("partition"), content); err != nil {
			return nil, err
		}
		dump, err := b.run(ctx, "dumpe2fs", "/build/partition")
		if err != nil {
			return nil, err
		}
		return blockmap.Ext4(dump, p.Size)
	case card.RootA:
		return hashed(disk, table)
	case card.VerityA:
		return []blockmap.Range{{Start: 0, End: p.Size}}, nil
	}
	return nil, errors.New("nothing is known of it")
}

// hashed returns what of the root is hashed: all of it is read at some time, and must be what was hashed.
func hashed(disk io.ReaderAt, table *card.Table) ([]blockmap.Range, error) {
	hashes, err := table.Lookup(card.VerityA)
	if err != nil {
		return nil, err
	}
	head := make([]byte, verity.SuperblockBytes)
	if _, err := disk.ReadAt(head, hashes.Start); err != nil {
		return nil, err
	}
	s, err := verity.Parse(head)
	if err != nil {
		return nil, err
	}
	return []blockmap.Range{{Start: 0, End: int64(s.Sectors()) * 512}}, nil
}

// sparse copies what is read to a file, in which zeros take no room.
func sparse(file string, r io.Reader) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	b, zeros := make([]byte, 1<<20), make([]byte, 1<<20)
	for at := int64(0); ; {
		n, err := io.ReadFull(r, b)
		if n > 0 && !bytes.Equal(b[:n], zeros[:n]) {
			if _, err := f.WriteAt(b[:n], at); err != nil {
				return err
			}
		}
		at += int64(n)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return f.Truncate(at)
		}
		if err != nil {
			return err
		}
	}
}
