package model

import (
	"errors"
	"fmt"
	"strings"
)

// ErrUnreachable says that no source of a model could be reached. Trying again later, or from another network, may help.
var ErrUnreachable = errors.New("no source of the model could be reached")

// UnknownError says that a name is neither a model of the manifest nor a path of a file.
type UnknownError struct {
	Ref   string
	Known []string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("model %q is unknown; choose one of %s, or give the path of a .gguf file", e.Ref, strings.Join(e.Known, ", "))
}

// NotPulledError says that a known model is not on this machine.
type NotPulledError struct{ ID string }

func (e *NotPulledError) Error() string {
	return fmt.Sprintf("model %s is not on this machine yet; fetch it with: assent model pull %[1]s", e.ID)
}

// Problem says what is wrong with a model's file. The zero value is invalid.
type Problem uint8

// The problems.
const (
	Missing       Problem = 1 // there is no such file, or it cannot be read
	NotGGUF       Problem = 2 // it is something else, or its header is damaged
	Truncated     Problem = 3 // it ends before its data
	WrongChecksum Problem = 4 // size or SHA-256 differ from the manifest
)

// FileError says that a file cannot be used as a model.
type FileError struct {
	Path    string
	Problem Problem
	Detail  string // what was found
}

func (e *FileError) Error() string {
	var what, do string
	switch e.Problem {
	case Missing:
		what, do = "cannot be read", "fetch a model with: assent model pull"
	case NotGGUF:
		what, do = "is not a usable GGUF file", "choose another file, or fetch a model with: assent model pull"
	case Truncated:
		what, do = "is cut short", "delete it and fetch it again with: assent model pull"
	case WrongChecksum:
		what, do = "is not the file that the manifest names", "delete it and fetch it again with: assent model pull"
	}
	return fmt.Sprintf("model file %q %s (%s); %s", e.Path, what, e.Detail, do)
}

// DigestError says that downloaded bytes are not the expected ones. They were thrown away.
type DigestError struct{ What, Want, Got string }

func (e *DigestError) Error() string {
	return fmt.Sprintf("%s has checksum %s instead of %s; the download was thrown away: try again, and if it happens again the source is not to be trusted", e.What, e.Got, e.Want)
}

// DiskFullError says that there is no room for a model. What is there already stays, for the next try.
type DiskFullError struct {
	Dir        string
	Need, Free int64 // bytes; Need is 0 where it is not known
}

func (e *DiskFullError) Error() string {
	if e.Need == 0 {
		return fmt.Sprintf("the disk with %s is full; make room and run the same command again, or set XDG_CACHE_HOME to a larger disk", e.Dir)
	}
	return fmt.Sprintf("the disk with %s has %d MB free and the model needs %d MB; make room, or set XDG_CACHE_HOME to a larger disk", e.Dir, e.Free>>20, e.Need>>20)
}
