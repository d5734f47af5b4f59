// Package box knows what a box is made of: which capabilities the configuration gives it, where its roles meet, and which
// boot this is. assentd and assentsim both build their roles from it, so that they cannot drift apart.
package box

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"assent.home.arpa/appliance/config"
	"assent.home.arpa/capabilities"
)

// Sockets says where the roles meet: one socket a pair, each in a directory that only the two may enter.
type Sockets struct {
	Guard       string // gateway → guard
	Courier     string // guard → courier
	GrantKey    string // guard's public grant key, written for the courier
	Export      string // exporter → guard
	WorkerNone  string // courier → worker, by class
	WorkerNet   string
	Model       string // gateway → llama-server
	Address     string // file with the box's address on the LAN (package lan)
	Notices     string // directory of what root's one-shots have to say on the panel (package notice)
	directories []string
}

// At lays the sockets out below a runtime directory.
func At(runtime string) Sockets {
	dir := func(name string) string { return filepath.Join(runtime, name) }
	return Sockets{
		Guard:       filepath.Join(dir("gateway-guard"), "guard.sock"),
		Courier:     filepath.Join(dir("guard-courier"), "courier.sock"),
		GrantKey:    filepath.Join(dir("guard-courier"), "grant.pub"),
		Export:      filepath.Join(dir("export-guard"), "export.sock"),
		WorkerNone:  filepath.Join(dir("courier-worker"), "none.sock"),
		WorkerNet:   filepath.Join(dir("courier-worker"), "net.sock"),
		Address:     filepath.Join(dir("address"), "address"),
		Notices:     dir("notices"),
		Model:       filepath.Join(dir("gateway-model"), "llama.sock"),
		directories: []string{dir("gateway-guard"), dir("guard-courier"), dir("courier-worker"), dir("gateway-model"), dir("export-guard")},
	}
}

// Make makes the directories, closed to everybody else. On the box systemd does it, with an owner a directory.
func (s Sockets) Make() error {
	for _, d := range s.directories {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return fmt.Errorf("box: %w", err)
		}
	}
	return nil
}

// Workers maps worker classes to their sockets.
func (s Sockets) Workers() map[capabilities.Class]string {
	return map[capabilities.Class]string{capabilities.ClassNone: s.WorkerNone, capabilities.ClassNet: s.WorkerNet}
}

// BootID is the kernel's name for this boot (random(4)).
func BootID() ([16]byte, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return [16]byte{}, fmt.Errorf("box: boot id: %w", err)
	}
	raw, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(string(b)), "-", ""))
	if err != nil || len(raw) != 16 {
		return [16]byte{}, fmt.Errorf("box: the kernel's boot id is %q", b)
	}
	return [16]byte(raw), nil
}

// StateDir is the part of the state that belongs to one role alone.
func StateDir(c config.Config, role string) string { return filepath.Join(c.Paths.State, role) }
