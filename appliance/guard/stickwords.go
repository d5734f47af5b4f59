package guard

import (
	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/export"
	"assent.home.arpa/appliance/ipc"
)

// words are what the panel says of a stick: two lines of at most twenty characters on the idle screen, and in full.
type words struct{ note, hint, full string }

// wordsOf says why a stick takes no copy, and what to do about it.
func wordsOf(p ipc.StickProblem) words {
	const format, other = "format it as FAT32", "use another one"
	const same = " Nothing on it was changed."
	switch p {
	case ipc.StickExFAT:
		return words{"this stick is exFAT:", format, "This stick is exFAT: format it as FAT32." + same}
	case ipc.StickNTFS:
		return words{"this stick is NTFS:", format, "This stick is NTFS: format it as FAT32." + same}
	case ipc.StickLinux:
		return words{"a stick for Linux:", format, "This stick is for Linux: format it as FAT32." + same}
	case ipc.StickApple:
		return words{"a stick for a Mac:", format, "This stick is for a Mac: format it as FAT32." + same}
	case ipc.StickEncrypted:
		return words{"stick is encrypted:", other, "This stick is encrypted: use another one." + same}
	case ipc.StickDisc:
		return words{"stick has a system:", other, "This stick installs a system: use another." + same}
	case ipc.StickBoot:
		return words{"a system starts here", other, "A system starts from this stick: use another." + same}
	case ipc.StickEmpty:
		return words{"unformatted stick:", format, "Unformatted stick: format it as FAT32." + same}
	case ipc.StickSeveral:
		return words{"stick in many parts:", other, "This stick is in many parts: use another. It must have one FAT32 partition." + same}
	case ipc.StickReadOnly:
		return words{"stick is read-only:", "move its switch", "This stick cannot be written: move its switch, or use another."}
	case ipc.StickDamaged:
		return words{"stick is damaged:", "repair it on a PC", "This stick is damaged: repair it on a PC, or use another."}
	case ipc.StickUnsupported:
		return words{"unknown kind of FAT:", format, "Unknown kind of FAT: format the stick as FAT32." + same}
	case ipc.StickBusy:
		return words{"stick is in use:", other, "The box itself uses this stick: use another."}
	case ipc.StickFull:
		return words{"the stick is full:", "make room on it", "The stick is full: make room on it, or use another. Nothing is lost."}
	}
	return words{"the stick fails:", other, "The stick fails: use another. Nothing is lost."}
}

// wordsOfCopy says that a copy is on the stick, of what, and by which code a computer can tell that it is that one: the record goes
// on, so the code on the idle screen is soon another. That it was read back is the word of what wrote it; only a computer proves it.
func wordsOfCopy(r export.Report) words {
	code := r.Log.Head.Code()
	w := words{"copy code " + code, "pull the stick out", "Safe to remove. Copy read back, code " + code + ". Check it with that code on a PC."}
	if r.Log.Status != audit.Intact {
		w.full = "Safe to remove. The record is on the stick as it is: " + r.Log.Status.String() + ". Code " + code + ". It is evidence: the box keeps its own."
	}
	if r.Beside != "" {
		w.full += " Its name was taken, so it ends with a number."
	}
	return w
}
