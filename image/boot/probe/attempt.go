//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// attempt is one thing that a role must not be able to do.
type attempt struct {
	name string
	// try returns nil where it worked.
	try func() error
	// gate says that try asks for something impossible, so that only the kernel's word that it is not allowed is a refusal.
	gate bool
	// free says that root without a sandbox can do it without harm, as a control.
	free bool
}

// refusals are the kernel's words for "you may not".
func refusal(err error) bool {
	for _, e := range []unix.Errno{unix.EPERM, unix.EACCES, unix.ENOSYS, unix.EAFNOSUPPORT} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// refused reports whether an attempt came to nothing, and why.
func (a attempt) refused() (bool, error) {
	err := a.try()
	switch {
	case errors.Is(err, errOpen):
		return false, err
	case a.gate:
		return refusal(err), err
	}
	return err != nil, err
}

// try makes all attempts in the place of a role and prints what came of them.
func try(r role, to targets, out io.Writer) error {
	sockets, err := r.sockets()
	if err != nil {
		return err
	}
	if err := r.cage(); err != nil {
		return err
	}
	var list []attempt
	list = append(list, kernel()...)
	list = append(list, files(r)...)
	list = append(list, meetings(r)...)
	list = append(list, network(r, to, sockets)...)
	for _, a := range list {
		word := "open"
		no, err := a.refused()
		if no {
			word = "refused"
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%v\n", r.name, word, a.name, err)
	}
	for _, n := range r.needs(to) {
		word := "needed"
		err := n.try()
		if err != nil {
			word = "missing"
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%v\n", r.name, word, n.name, err)
	}
	return nil
}

// free makes the attempts that are harmless as root without a sandbox. Each must work.
func free(out io.Writer) int {
	status := 0
	for _, a := range kernel() {
		if !a.free {
			continue
		}
		word := "open"
		no, err := a.refused()
		if no {
			word, status = "refused", 1
		}
		fmt.Fprintf(out, "free\t%s\t%s\t%v\n", word, a.name, err)
	}
	return status
}
