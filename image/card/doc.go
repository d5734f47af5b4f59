// Package card says how a card is laid out, and reads and edits that layout.
//
// # The disk
//
// A GUID partition table (UEFI 2.10, section 5.3) with sectors of 512 bytes. The labels are the contract: everything that looks
// for a partition looks for its label.
//
//	#  label     what                                                                              in the image
//	1  boot      FAT32: firmware, U-Boot, the kernels of both slots, and where people drop assent.toml  260 MiB
//	2  root_a    erofs, the root of slot A                                                         512 MiB
//	3  verity_a  dm-verity hashes of root_a                                                          8 MiB
//	4  _empty    slot B, as slot A; root_b once it holds something                                 512 MiB
//	5  _empty    verity_b, likewise                                                                  8 MiB
//	6  audit     ext4, the guard's state: its own partition is its own quota                       512 MiB
//	7  data      ext4, /var: the last partition, which grows to the end of the card                128 MiB
//
// The file system in data must have blocks of 4096 bytes (mkfs.ext4 would choose 1024 for one so small), since it grows to the
// size of the card while it is mounted.
//
// # The import area
//
// A model is larger than the image's data partition, and what writes a card cannot write ext4. So it makes the partition as
// large as the card and puts the file, raw, at the partition's end, where the file system has not grown to yet:
//
//	| ext4 ......... | free ......... | the file's bytes | zeros | header |
//	0                                 Start              +Length         partition's end
//
// The file begins at the last multiple of 1 MiB from which it still fits before the header. The header is the last 4096 bytes
// of the partition, integers little-endian:
//
//	offset  bytes
//	     0      8  "ASSENTia"
//	     8      4  version, 1
//	    12      4  CRC-32C (Castagnoli) of these 4096 bytes, taken with this field zero
//	    16      8  length of the file
//	    24     32  SHA-256 of the file
//	    56     64  its name, padded with zeros: 1 to 64 of a-z A-Z 0-9 . _ -, the first a letter or a digit
//	   120   3976  zeros
//
// On the first boot, assentd import grows the file system up to Start and no further, copies the file into it, checks it,
// wipes the header, and only then grows the file system to the whole partition. Nothing else grows that file system. While it
// ends at or before Start the area is waiting; once it reaches beyond, whatever looks like a header belongs to some file.
package card
