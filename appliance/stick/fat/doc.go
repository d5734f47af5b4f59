// Package fat writes a few new files onto a FAT12, FAT16 or FAT32 volume that belongs to somebody else.
//
// The volume is hostile input: nothing that it says is believed before it is bounded. Chains, directories and tables have
// limits, numbers are checked against the size of the medium, and nothing outside the volume is ever read or written.
//
// The volume is also somebody's: what is on it stays as it is, byte for byte. A directory that others have entries in is
// changed only in the slots that a new entry needs, never read and written anew; a table only in the entries that change.
//
// # When the medium is pulled out
//
// A file has no name before all of it, and its chain, is on the medium; a directory is given another name in one sector. So a
// cut leaves lost clusters, which any check of the file system gives back, and never a name that leads to something else.
// While the volume is changed its "clean" bit is off, as Windows and Linux do it, so that the next computer offers that check.
//
// # Names
//
// Files and directories that this package makes have names of ASCII letters, digits, "-", "." and "_". Names are compared as
// FAT does it, without regard to case, with the long and the short name of each entry.
//
// Source of the layout: Microsoft, "FAT: General Overview of On-Disk Format", version 1.03 (fatgen103).
package fat
