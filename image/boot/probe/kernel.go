//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// call makes a system call that is given nothing it could work with: where it is allowed it complains of that.
func call(nr uintptr, args ...uintptr) func() error {
	var a [6]uintptr
	copy(a[:], args)
	return func() error {
		if _, _, errno := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
			return errno
		}
		return nil
	}
}

// none is a descriptor that is none.
const none = ^uintptr(0)

// kernel lists what nobody on the box needs of the kernel.
func kernel() []attempt {
	list := []attempt{
		{name: "load a module", try: call(unix.SYS_FINIT_MODULE, none), gate: true},
		{name: "load a module from memory", try: call(unix.SYS_INIT_MODULE), gate: true},
		{name: "unload a module", try: call(unix.SYS_DELETE_MODULE), gate: true},
		{name: "load another kernel", try: call(unix.SYS_KEXEC_LOAD, 0, 1<<20), gate: true},
		{name: "load a program into the kernel", try: call(unix.SYS_BPF), gate: true},
		{name: "trace the kernel", try: call(unix.SYS_PERF_EVENT_OPEN), gate: true},
		{name: "handle its own page faults", try: call(unix.SYS_USERFAULTFD, none), gate: true, free: true},
		{name: "use io_uring", try: call(unix.SYS_IO_URING_SETUP), gate: true},
		{name: "put a key into the kernel", try: call(unix.SYS_ADD_KEY), gate: true, free: true},
		{name: "restart the machine", try: call(unix.SYS_REBOOT), gate: true, free: true},
		{name: "set the clock", try: call(unix.SYS_SETTIMEOFDAY), free: true},
		{name: "swap", try: call(unix.SYS_SWAPON), gate: true, free: true},
		{name: "account processes", try: call(unix.SYS_ACCT, uintptr(unsafe.Pointer(unsafe.StringData("/nowhere\x00")))), gate: true, free: true},
		{name: "read the kernel's log", try: call(unix.SYS_SYSLOG, 10), free: true},
		{name: "unmount", try: call(unix.SYS_UMOUNT2, 0, 1<<30), gate: true, free: true},
		{name: "mount", try: call(unix.SYS_MOUNT), gate: true, free: true},
		{name: "mount by the newer calls", try: call(unix.SYS_FSOPEN), gate: true, free: true},
		{name: "move a mount", try: call(unix.SYS_MOVE_MOUNT, none, 0, none, 0, 1<<30), gate: true, free: true},
		{name: "change the root", try: call(unix.SYS_CHROOT), gate: true, free: true},
		{name: "exchange the root", try: call(unix.SYS_PIVOT_ROOT), gate: true, free: true},
		{name: "enter a namespace", try: call(unix.SYS_SETNS, none), gate: true, free: true},
		{name: "make a user namespace", try: call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER), gate: true},
		{name: "make a network namespace", try: call(unix.SYS_UNSHARE, unix.CLONE_NEWNET), gate: true},
		{name: "make a mount namespace", try: call(unix.SYS_UNSHARE, unix.CLONE_NEWNS), gate: true},
		{name: "trace a process", try: call(unix.SYS_PTRACE, unix.PTRACE_ATTACH, 1), free: false},
		{name: "read the memory of a process", try: call(unix.SYS_PROCESS_VM_READV, 1), free: true},
		{name: "signal PID 1", try: func() error { return unix.Kill(1, 0) }, free: true},
		{name: "become root", try: call(unix.SYS_SETRESUID, 0, 0, 0), free: true},
		{name: "become root's group", try: call(unix.SYS_SETRESGID, 0, 0, 0), free: true},
		{name: "take up groups", try: call(unix.SYS_SETGROUPS), free: true},
		{name: "use a larger limit", try: largerLimit, free: true},
		{name: "run in real time", try: realTime, free: true},
		{name: "take another personality", try: call(unix.SYS_PERSONALITY, 0x0040000), free: true},
		{name: "map memory to write and execute", try: writeAndExecute, free: true},
		{name: "make memory executable", try: makeExecutable, free: true},
		{name: "start a shell", try: func() error { return start("/bin/sh") }, free: true},
		{name: "start what it wrote", try: startWritten},
		{name: "start what is in memory", try: startMemory},
		{name: "make a device", try: func() error { return made(unix.S_IFCHR | 0o600) }, free: true},
		{name: "give a file to root", try: setID},
	}
	for _, family := range []struct {
		name   string
		domain int
	}{
		{"packets", unix.AF_PACKET},
		{"the kernel's ciphers", unix.AF_ALG},
		{"virtual machines", unix.AF_VSOCK},
		{"bluetooth", unix.AF_BLUETOOTH},
		{"rds", unix.AF_RDS},
		{"tipc", unix.AF_TIPC},
		{"can", unix.AF_CAN},
		{"xdp", unix.AF_XDP},
	} {
		list = append(list, attempt{name: "open a socket for " + family.name, try: openSocket(family.domain, unix.SOCK_RAW, 0), gate: true})
	}
	return append(list,
		attempt{name: "open a raw socket", try: openSocket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP), free: true},
		attempt{name: "open a raw socket of IPv6", try: openSocket(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6)},
	)
}

func openSocket(domain, kind, protocol int) func() error {
	return func() error {
		fd, err := unix.Socket(domain, kind, protocol)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	}
}

func largerLimit() error {
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_RTPRIO, &now); err != nil {
		return err
	}
	more := now
	more.Max++
	if err := unix.Prlimit(0, unix.RLIMIT_RTPRIO, &more, nil); err != nil {
		return err
	}
	return unix.Prlimit(0, unix.RLIMIT_RTPRIO, &now, nil)
}

func realTime() error {
	param := struct{ priority int32 }{1}
	if _, _, errno := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, 0, 1, uintptr(unsafe.Pointer(&param))); errno != 0 { // SCHED_FIFO
		return errno
	}
	param.priority = 0
	_, _, errno := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, 0, 0, uintptr(unsafe.Pointer(&param)))
	if errno != 0 {
		return fmt.Errorf("%w: and not back: %w", errOpen, errno)
	}
	return nil
}

func writeAndExecute() error {
	b, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	return unix.Munmap(b)
}

func makeExecutable() error {
	b, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return fmt.Errorf("%w: no memory: %w", errOpen, err)
	}
	defer unix.Munmap(b)
	return unix.Mprotect(b, unix.PROT_READ|unix.PROT_EXEC)
}

// start runs a program to its end.
func start(path string) error {
	p, err := os.StartProcess(path, []string{path, "-c", ":"}, &os.ProcAttr{})
	if err != nil {
		return err
	}
	_, err = p.Wait()
	return err
}

// script is the smallest program that there is.
const script = "#!/bin/sh\n"

func startWritten() error {
	path := filepath.Join(os.TempDir(), "probe-program")
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		return err
	}
	defer os.Remove(path)
	return start(path)
}

func startMemory() error {
	fd, err := unix.MemfdCreate("probe", 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "memory")
	defer f.Close()
	if _, err := f.WriteString(script); err != nil {
		return err
	}
	return start(fmt.Sprintf("/proc/self/fd/%d", fd))
}

func made(mode uint32) error {
	path := filepath.Join(os.TempDir(), "probe-device")
	defer os.Remove(path)
	return unix.Mknod(path, mode, int(unix.Mkdev(1, 1)))
}

func setID() error {
	path := filepath.Join(os.TempDir(), "probe-file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	defer os.Remove(path)
	if err := unix.Chmod(path, 0o4700); err == nil {
		return nil
	}
	return unix.Chown(path, 0, 0)
}
