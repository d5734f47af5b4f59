package engine

import (
	"errors"
	"fmt"
)

// UnsuitableError says that a program cannot serve as the engine, and why.
type UnsuitableError struct{ Path, Reason string }

func (e *UnsuitableError) Error() string {
	return fmt.Sprintf("%s cannot be used: %s; Assent needs llama-server %s or later", e.Path, e.Reason, Oldest)
}

// NotFoundError says that this machine has no engine, and that none was to be installed.
type NotFoundError struct {
	Passed *UnsuitableError // the llama-server on PATH, if it was not suitable
}

func (e *NotFoundError) Error() string {
	const do = "run: assent engine path, or set ENGINE to the path of a llama-server " + Oldest + " or later"
	if e.Passed != nil {
		return "no engine on this machine: " + e.Passed.Error() + "; " + do
	}
	return "no engine on this machine; " + do
}

func (e *NotFoundError) Unwrap() error {
	if e.Passed == nil {
		return nil
	}
	return e.Passed
}

// InstallError says that the engine could not be fetched or unpacked. The machine is as it was.
type InstallError struct {
	Step string // what was being done
	Err  error
}

func (e *InstallError) Error() string {
	return fmt.Sprintf("the engine could not be installed (%s): %v; install Debian's package llama.cpp-tools, or build llama.cpp, and set ENGINE to its llama-server", e.Step, e.Err)
}

func (e *InstallError) Unwrap() error { return e.Err }

// ErrNotDebian is why Install fails on machines whose apt has no Debian mirror, or that have no apt.
var ErrNotDebian = errors.New("this machine's apt knows no Debian mirror")

// SocketError says that the engine cannot listen where it should.
type SocketError struct{ Path, Reason string }

func (e *SocketError) Error() string {
	return fmt.Sprintf("the engine cannot listen on %q: %s", e.Path, e.Reason)
}
