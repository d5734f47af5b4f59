//go:build linux

// Probe tries, from inside each unit of a running box, what a role that was taken over would like to do, and fails if any of it
// works (D8, W1). It is part of the boot test and of no image.
//
//	probe all             as root on the box: probes every role, prints a line for each attempt, puts everything back
//	probe all ROLE...     the same for some roles
//	probe try ROLE ...    what it starts in a unit's place
//	probe free            the same attempts by root without a sandbox, which must work: or a refusal would prove nothing
//
// It is one static program (CGO_ENABLED=0, GOOS=linux, GOARCH=arm64). "probe all" copies itself to /run/assent-probe, writes a
// drop-in for each unit to /run/systemd/system that starts the copy in place of the role and leaves every wall of the unit
// standing, starts the units one after the other, and then removes the drop-ins and starts the roles again. Roles that
// cage themselves are caged as they do it (box.Room). Each line is
//
//	ROLE <tab> refused|open|needed|missing <tab> ATTEMPT <tab> ERROR
//
// where needed is something that the role must be able to do, since a sandbox that refuses everything proves as little, and
// missing one that it could not. The exit status is 0 if every line says refused or needed, 1 if not, 2 if a role could not be
// probed, 3 for wrong usage.
//
// The attempts with sockets go to listeners that "probe all" opens on the box itself, so nothing leaves it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
)

func main() {
	// Attempts at namespaces and identities must not leak into the threads of others.
	runtime.LockOSThread()
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

const usage = "usage: probe all [ROLE...] | free | try ROLE [-near ADDRESS] [-far ADDRESS]\n"

func run(args []string, out, errs io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(errs, usage)
		return 3
	}
	flags := flag.NewFlagSet("probe", flag.ContinueOnError)
	flags.SetOutput(errs)
	near := flags.String("near", "", "`address` of a listener of the box, on its loopback")
	far := flags.String("far", "", "`address` of a listener of the box, on the LAN")
	switch args[0] {
	case "all":
		return probeAll(args[1:], out, errs)
	case "free":
		return free(out)
	case "try":
		if len(args) < 2 || flags.Parse(args[2:]) != nil {
			break
		}
		r, ok := roleNamed(args[1])
		if !ok {
			fmt.Fprintf(errs, "probe: there is no role %q\n", args[1])
			return 3
		}
		if err := try(r, targets{near: *near, far: *far}, out); err != nil {
			fmt.Fprintln(errs, "probe:", err)
			return 2
		}
		return 0
	}
	fmt.Fprint(errs, usage)
	return 3
}

// errOpen is what an attempt returns that could go on, but must not.
var errOpen = errors.New("it could go on")
