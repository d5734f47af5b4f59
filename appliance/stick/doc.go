// Package stick is the exporter: the one process that touches a stick that somebody put into the box.
//
// It has one block device, one socket to the guard, and nothing else: no network, no state, no other file. It mounts
// nothing; the kernel never sees the stick's file system. The file system is parsed here, as hostile input, by package fat, and
// what the guard gets to see of it is a bounded label, numbers, and chunks of files that the guard itself has written.
//
// Run finds the one FAT volume of a medium, or says why there is none; then it does what the guard asks, one operation
// at a time, until the guard ends it or the stick is gone. Nothing is written before the guard asks, which it does after
// somebody at the box has held the buttons.
//
// RunPort does the same with a port by which the box itself can pose as a stick, over a cable: it makes the volume first, and shows and
// hides it as the guard says.
//
// A stick may be one volume without a partition table, or have a table of either kind (MBR or GPT). Exactly one FAT partition
// must be there besides an EFI system partition, which nobody means.
package stick
