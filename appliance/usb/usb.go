// Package usb decides which USB devices the box lets in.
//
// The box starts with every new device unauthorised (usbcore.authorized_default=0): the kernel reads its descriptors and binds
// no driver. What this package takes for storage, or for a hub, is then let in; a keyboard that poses as a stick, or a stick
// with a keyboard or a network card beside it, is not. The descriptors are the device's own word and hostile input, and the
// kernel uses those that it read first, not what a device says later.
package usb

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Sort is what a device is.
type Sort uint8

// The sorts.
const (
	Other   Sort = iota // stays out
	Storage             // every interface is SCSI storage
	Hub                 // every interface is a hub's; what is behind it is looked at by itself
)

func (s Sort) String() string {
	switch s {
	case Storage:
		return "storage"
	case Hub:
		return "hub"
	}
	return "other"
}

// Wanted reports whether the box lets it in.
func (s Sort) Wanted() bool { return s == Storage || s == Hub }

// MaxDescriptors bounds what a device may say of itself: eight configurations are more than any stick has.
const MaxDescriptors = 16 << 10

// ErrDescriptors says that a device describes itself in a way that USB does not know.
var ErrDescriptors = errors.New("usb: the device's descriptors are not sound")

// Descriptor types, and the classes of interfaces (USB 2.0 specification, table 9-5; usb.org, defined class codes).
const (
	typeDevice        = 1
	typeConfiguration = 2
	typeInterface     = 4

	classInDevice = 0x00 // each interface has its own
	classStorage  = 0x08
	classHub      = 0x09

	subclassSCSI  = 0x06
	protocolBulk  = 0x50
	protocolUAS   = 0x62
	deviceLength  = 18
	configLength  = 9
	faceLength    = 9
	headerLength  = 2
	maxInterfaces = 32
)

// Classify looks at a device's descriptors as sysfs has them: the device's own and those of all configurations.
func Classify(b []byte) (Sort, error) {
	if len(b) > MaxDescriptors || len(b) < deviceLength || b[0] != deviceLength || b[1] != typeDevice {
		return Other, ErrDescriptors
	}
	device, configurations := b[4], int(b[17])
	sorts := map[Sort]bool{}
	for rest := b[deviceLength:]; len(rest) > 0; configurations-- {
		if len(rest) < configLength || rest[0] < configLength || rest[1] != typeConfiguration {
			return Other, ErrDescriptors
		}
		total, faces := int(rest[2])|int(rest[3])<<8, int(rest[4])
		if total < int(rest[0]) || total > len(rest) || faces == 0 || faces > maxInterfaces {
			return Other, ErrDescriptors
		}
		if err := interfaces(rest[rest[0]:total], faces, sorts); err != nil {
			return Other, err
		}
		rest = rest[total:]
	}
	switch {
	case configurations != 0 || len(sorts) == 0:
		return Other, ErrDescriptors
	case len(sorts) > 1:
		return Other, nil
	case sorts[Storage] && (device == classInDevice || device == classStorage):
		return Storage, nil
	case sorts[Hub] && device == classHub:
		return Hub, nil
	}
	return Other, nil
}

// interfaces notes the sort of every interface of one configuration, in all its settings.
func interfaces(b []byte, want int, sorts map[Sort]bool) error {
	numbers := map[byte]bool{}
	for len(b) > 0 {
		n := int(b[0])
		if n < headerLength || n > len(b) {
			return ErrDescriptors
		}
		switch b[1] {
		case typeDevice, typeConfiguration:
			return ErrDescriptors
		case typeInterface:
			if n < faceLength {
				return ErrDescriptors
			}
			numbers[b[2]] = true
			sorts[sortOf(b[5], b[6], b[7])] = true
		}
		b = b[n:]
	}
	if len(numbers) != want {
		return ErrDescriptors
	}
	return nil
}

func sortOf(class, subclass, protocol byte) Sort {
	switch {
	case class == classHub:
		return Hub
	case class == classStorage && subclass == subclassSCSI && (protocol == protocolBulk || protocol == protocolUAS):
		return Storage
	}
	return Other
}

// Authorise looks at the device in a directory of sysfs, and lets it in if it is wanted. What is not stays as it is.
func Authorise(dir string) (Sort, error) {
	if dir != filepath.Clean(dir) || !strings.HasPrefix(dir, "/sys/devices/") {
		return Other, fmt.Errorf("usb: %q is no device's directory below /sys/devices", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Other, fmt.Errorf("usb: %w", err)
	}
	defer root.Close()
	return AuthoriseIn(root)
}

// AuthoriseIn is Authorise for a directory that is open.
func AuthoriseIn(dir *os.Root) (Sort, error) {
	f, err := dir.Open("descriptors")
	if err != nil {
		return Other, fmt.Errorf("usb: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxDescriptors+1))
	if err != nil {
		return Other, fmt.Errorf("usb: %w", err)
	}
	sort, err := Classify(b)
	if err != nil || !sort.Wanted() {
		return sort, err
	}
	w, err := dir.OpenFile("authorized", os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return sort, fmt.Errorf("usb: %w", err)
	}
	_, err = w.WriteString("1")
	if err := errors.Join(err, w.Close()); err != nil {
		return sort, fmt.Errorf("usb: %w", err)
	}
	return sort, nil
}
