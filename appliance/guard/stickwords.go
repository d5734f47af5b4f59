package guard

import (
	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/ipc"
)

// words are what the panel says of a stick: two lines of at most twenty characters on the idle screen, and in full.
type words struct{ note, hint, full string }

// wordsOf says why a stick takes no copy, and what to do about it.
func wordsOf(p ipc.StickProblem) words {
	const format, other = "format it as FAT32", "use another one"
	switch p {
	case ipc.StickExFAT:
		return words{"this stick is exFAT:", format, "This stick is exFAT, and the box writes FAT32 only. Format it as FAT32, or use another one. Nothing on it was changed."}
	case ipc.StickNTFS:
		return words{"this stick is NTFS:", format, "This stick is NTFS, and the box writes FAT32 only. Format it as FAT32, or use another one. Nothing on it was changed."}
	case ipc.StickLinux:
		return words{"a stick for Linux:", format, "This stick has a file system of Linux, and the box writes FAT32 only. Format it as FAT32, or use another one. Nothing on it was changed."}
	case ipc.StickApple:
		return words{"a stick for a Mac:", format, "This stick has a file system of Apple's, and the box writes FAT32 only. Format it as FAT32, or use another one. Nothing on it was changed."}
	case ipc.StickEncrypted:
		return words{"stick is encrypted:", other, "This stick is encrypted, so the box cannot write to it. Use another one. Nothing on it was changed."}
	case ipc.StickDisc:
		return words{"stick has a system:", other, "This stick installs a system. Use another one. Nothing on it was changed."}
	case ipc.StickBoot:
		return words{"a system starts here", other, "A system starts from this stick. Use another one. Nothing on it was changed."}
	case ipc.StickEmpty:
		return words{"unformatted stick:", format, "The box finds no file system on this stick. Format it as FAT32, or use another one. Nothing on it was changed."}
	case ipc.StickSeveral:
		return words{"stick in many parts:", other, "This stick has several partitions, and the box does not guess which is meant. Use one with a single FAT32 partition. Nothing on it was changed."}
	case ipc.StickReadOnly:
		return words{"stick is read-only:", "move its switch", "This stick cannot be written. Move its switch, or use another one. Nothing on it was changed."}
	case ipc.StickDamaged:
		return words{"stick is damaged:", "repair it on a PC", "The file system of this stick is damaged. Have a PC repair it, or use another one."}
	case ipc.StickUnsupported:
		return words{"unknown kind of FAT:", format, "The box does not know this kind of FAT. Format the stick as FAT32, or use another one."}
	case ipc.StickBusy:
		return words{"stick is in use:", "pull it out", "The box itself uses this medium. Use another one."}
	case ipc.StickFull:
		return words{"the stick is full:", "make room on it", "The stick is full. Make room on it, or use another one. The box has lost nothing."}
	}
	return words{"the stick fails:", other, "The stick cannot be read or written. Use another one. The box has lost nothing."}
}

// wordsOfCopy says that a copy is on the stick, and what it is a copy of.
func wordsOfCopy(s audit.Status) words {
	w := words{"record is copied:", "pull the stick out", "The record is on the stick. It was read back, and is good. It is safe to pull the stick out."}
	if s != audit.Intact {
		w.full = "The record is on the stick as it is: " + s.String() + ". That is evidence, so the box keeps its own. It is safe to pull the stick out."
	}
	return w
}
