// Package flash writes an image of the box to a card: to the right disk, so that it is known afterwards what is on it.
//
// Which disks there are and which of them may be written to is Machine's business, what an image is and whether it is whole is
// Image's, and Job brings both together, with settings and a model that go onto the card as package image/card says.
//
// # Half a card is no card
//
// The first thing written is zeros over the partition table at both ends of the disk, the last is the table's first sectors.
// Whatever ends the writing in between (a pulled card, a worn one, the person), what is left has no partition table, so nothing
// boots from it and nothing takes it for a finished card. All that was written is read back past the page cache before the
// table is written; a card that lies about its size is found here, since the ends of the disk are written first.
package flash
