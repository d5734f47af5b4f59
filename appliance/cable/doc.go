// Package cable has the box pose as a stick that can only be read, where the board has a USB device controller: a PC at the
// other end of the cable then sees one small disk with a copy of the record, and nothing else. The means are Linux's (configfs
// and its mass storage function, Documentation/usb/gadget_configfs.rst and mass-storage.rst).
//
// It takes two. SetUp runs once, as root: it describes the disk to the kernel, read-only and the only function there is, binds it
// to nothing, and gives away two files of it. A Port runs as the exporter, which may write those two files and nothing else of the
// description: which image is in the drive (a file that it may read itself, since the kernel opens it in its name), and which
// controller the drive is at. While that is none, the port is dead: a PC sees that nothing is there.
//
// So an exporter that was taken over can show a PC what it has, and can neither accept a byte from there nor pose as a keyboard or
// a network card.
package cable
