// Package cage lets a role give up, for ever, what it does not need of the kernel: the last of its walls, from inside.
//
// The unit that starts a role is the first. This one is for what a unit cannot say. A socket that PID 1 made, or that another
// role passed on, belongs to their network, whatever network the role itself is in: connect(2) with AF_UNSPEC dissolves a
// connection, or a listener, into a fresh socket of that network, which then connects anywhere. Landlock (landlock(7))
// refuses the next connect. It does not know Multipath TCP, so sockets that are passed to a role are plain TCP; and where
// a kernel's Landlock is too old, the role says so and has its unit alone.
package cage

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/landlock-lsm/go-landlock/landlock"
	"github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// tcpSince is the Landlock ABI that first refused TCP connects (Linux 6.7).
const tcpSince = 4

// own is what a role may do in directories of its own: files and folders, no devices, links, sockets or programs.
const own landlock.AccessFSSet = syscall.AccessFSReadFile | syscall.AccessFSReadDir | syscall.AccessFSWriteFile | syscall.AccessFSTruncate |
	syscall.AccessFSMakeReg | syscall.AccessFSMakeDir | syscall.AccessFSRemoveFile | syscall.AccessFSRemoveDir

// dns is the port that a Dials role may send datagrams to.
const dns = 53

// Room is all that is left to a role. Descriptors that are open stay usable.
type Room struct {
	Read    []string // files and directories
	Write   []string // directories
	Sockets []string // unix sockets that it connects to, or directories of them
	Dials   bool     // it opens TCP connections and asks name servers
}

// Enter confines the whole process. What is in Read and does not exist is left out; anything else that does not exist is an
// error.
func Enter(log *slog.Logger, r Room) error {
	// No core dump and no ptrace by another process of the same user: the memory holds what people said.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("cage: %w", err)
	}
	if abi, err := syscall.LandlockGetABIVersion(); err != nil || abi < tcpSince {
		log.Warn("this kernel's landlock cannot refuse connects; only the unit confines this role", "abi", abi)
	}
	config := landlock.V11
	rules := []landlock.Rule{landlock.PathAccess(own, r.Write...)}
	if r.Dials {
		config.HandledAccessNet &^= syscall.AccessNetConnectTCP
		rules = append(rules, landlock.BindUDP(0), landlock.ConnectSendUDP(dns))
	}
	dirs, files := sorted(r.Read)
	rules = append(rules, landlock.RODirs(dirs...).IgnoreIfMissing(), landlock.ROFiles(files...).IgnoreIfMissing())
	sockets := r.Sockets
	// systemd has to hear that the role lives (sd_notify(3)).
	if notify := os.Getenv("NOTIFY_SOCKET"); strings.HasPrefix(notify, "/") {
		sockets = append(sockets[:len(sockets):len(sockets)], notify)
	}
	dirs, files = sorted(sockets)
	rules = append(rules, landlock.RODirs(dirs...).WithResolveUnix(), landlock.ROFiles(files...).WithResolveUnix())
	if err := config.BestEffort().Restrict(rules...); err != nil {
		return fmt.Errorf("cage: %w", err)
	}
	return nil
}

// sorted tells directories from the rest: Landlock has other rights for them.
func sorted(paths []string) (dirs, files []string) {
	for _, p := range paths {
		if info, err := os.Stat(p); err == nil && info.IsDir() {
			dirs = append(dirs, p)
		} else {
			files = append(files, p)
		}
	}
	return dirs, files
}

// Beside returns the directory that really holds path: whatever replaces a file by renaming makes a new one there, which a
// rule about the old one would not cover.
func Beside(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return filepath.Dir(real)
	}
	return filepath.Dir(path)
}
