// Command initrd is the first process of the box: it finds the root that the kernel's command line names, has the kernel check
// every block of it that is ever read, and hands over to systemd. It is the whole of the initial file system but for the modules
// that it loads, and it is written into the same file as the kernel.
//
// # What it does
//
//  1. It loads the modules below /modules, in the order of their names: for the disk, device mapper and erofs. No USB: the only
//     disks there are belong to the board, so no stick that somebody plugged in can pose as the root or as a partition of the box.
//  2. It waits for the two partitions that roothash= names (package verity), maps them with dm-verity, and mounts the root
//     read-only.
//  3. It leaves in /run what only it knows: /run/assent-boot/slot, "a" or "b", from the label of the root's partition; and a rule for
//     udev, which gives the partitions of this disk, and of no other, their names below /dev/assent: boot, audit, data, and disk
//     for the whole.
//  4. It moves /dev, /proc, /sys and /run into the root and becomes systemd.
//
// Where a step fails it says so on the console and restarts the machine after ten seconds. The boot loader has counted the
// attempt, so a slot that does not come up loses its turn to the other.
//
// # The test variant
//
// Built with the tag testlayer, it does one thing more before it becomes systemd: if there is a disk with an ext4 file system
// labelled assent-layer (the label in the superblock), it mounts it read-only at /run/assent-layer, loads the modules that the
// file order there names, one file a line, relative to the folder, and starts the program agent from it with the argument
// "@agent", standard streams on the console, as a process that outlives the hand-over: systemd does not end a process whose
// first argument begins with '@' (systemd's ROOT_STORAGE_DAEMONS). The agent sees the box's own file tree, as first process and
// everybody else see it. The variant that is shipped does not hold this code; for it such a disk is a disk.
package main
