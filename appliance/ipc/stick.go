package ipc

// MaxStickChunk bounds the bytes of a file that one StickOp or StickReply carries.
const MaxStickChunk = 128 << 10

// Bounds of names on a stick. Names are slash-separated paths of letters, digits, "-", "." and "_".
const (
	MaxStickLabel = 11 // bytes; what FAT can hold
	MaxStickName  = 64 // bytes of each element
)

// StickProblem says why a stick takes no copy, or why an operation failed. The zero value is none. Do not renumber.
type StickProblem uint8

// The problems.
const (
	StickExFAT       StickProblem = 1 // another file system than FAT: these six
	StickNTFS        StickProblem = 2
	StickLinux       StickProblem = 3
	StickApple       StickProblem = 4
	StickEncrypted   StickProblem = 5
	StickDisc        StickProblem = 6  // an installation medium (ISO 9660)
	StickEmpty       StickProblem = 7  // nothing on it that anybody knows
	StickSeveral     StickProblem = 8  // more than one FAT partition: nobody knows which is meant
	StickBoot        StickProblem = 9  // something starts from it
	StickReadOnly    StickProblem = 10 // its switch, or its controller, refuses writes
	StickDamaged     StickProblem = 11 // its file system contradicts itself
	StickUnreadable  StickProblem = 12 // the medium fails, or it is gone
	StickUnsupported StickProblem = 13 // FAT, of a size or kind that nobody makes
	StickBusy        StickProblem = 14 // something else on the box uses it
	StickFull        StickProblem = 15
	StickExists      StickProblem = 16 // there is something of that name
	StickMissing     StickProblem = 17 // there is nothing of that name
	StickRefused     StickProblem = 18 // an operation that makes no sense, or a name that is none
)

// StickHello is what an exporter says first, with id 0: what it found. All but Problem and Cable is the stick's own word.
type StickHello struct {
	Problem StickProblem `cbor:"1,keyasint"`
	Label   []byte       `cbor:"2,keyasint,omitempty"` // the volume's name, at most MaxStickLabel bytes
	Size    int64        `cbor:"3,keyasint,omitempty"` // bytes of the medium
	// Cable says that there is no stick, but a port by which the box itself can pose as a read-only one. StickMake comes before
	// all other verbs there.
	Cable bool `cbor:"4,keyasint,omitempty"`
}

// StickVerb says what an exporter is to do. The zero value is invalid. Do not renumber.
type StickVerb uint8

// The verbs.
const (
	StickFree   StickVerb = 1  // Size of the reply: bytes that are free
	StickStat   StickVerb = 2  // Yes of the reply: there is something called Name
	StickMkdir  StickVerb = 3  // make the directory Name
	StickCreate StickVerb = 4  // make the file Name, and write to it by Handle, which the guard picks
	StickWrite  StickVerb = 5  // append Data to the file of Handle
	StickClose  StickVerb = 6  // put the file of Handle on the medium, durably, under its name
	StickRead   StickVerb = 7  // Data of the reply: Size bytes of Name from Offset on, as they are on the medium
	StickRename StickVerb = 8  // give the directory Name the name To, durably; both are in the root
	StickRemove StickVerb = 9  // remove Name with all that is in it; there may be none
	StickSync   StickVerb = 10 // flush
	StickEnd    StickVerb = 11 // flush, and touch the medium no more
	StickMake   StickVerb = 12 // cable: make an empty medium that has Room
	StickShow   StickVerb = 13 // cable, after StickEnd: let whoever is at the other end read the medium
	StickShown  StickVerb = 14 // cable: Yes of the reply: it can still be read, and nobody there has ejected it
	StickHide   StickVerb = 15 // cable: take it off the cable, and throw the medium away
)

// StickOp is what the guard asks of an exporter. StickReply answers it. The guard sends one at a time.
type StickOp struct {
	Verb   StickVerb `cbor:"1,keyasint"`
	Name   string    `cbor:"2,keyasint,omitempty"`
	To     string    `cbor:"3,keyasint,omitempty"`
	Handle uint32    `cbor:"4,keyasint,omitempty"`
	Offset int64     `cbor:"5,keyasint,omitempty"`
	Size   uint32    `cbor:"6,keyasint,omitempty"` // at most MaxStickChunk
	Data   []byte    `cbor:"7,keyasint,omitempty"` // at most MaxStickChunk
	Room   int64     `cbor:"8,keyasint,omitempty"` // bytes of files
}

// StickReply answers a StickOp. Where Problem is set nothing else is.
type StickReply struct {
	Problem StickProblem `cbor:"1,keyasint,omitempty"`
	Yes     bool         `cbor:"2,keyasint,omitempty"`
	Size    int64        `cbor:"3,keyasint,omitempty"`
	Data    []byte       `cbor:"4,keyasint,omitempty"`
}
