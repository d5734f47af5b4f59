package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assent.home.arpa/image/emulator"
)

// impostor puts a program in the emulator's place.
func impostor(t *testing.T, script string) machine {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "qemu-system-aarch64"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return machine{image: "kernel", initrd: "files", log: filepath.Join(dir, "log")}
}

func TestBootPassesTheConsoleOn(t *testing.T) {
	m := impostor(t, `echo one; echo two; for a; do [ "$a" = -enable-kvm ] && echo kvm; done; exit 0`)
	var lines []string
	if _, err := boot(t.Context(), time.Minute, m, func(l string) { lines = append(lines, l) }); err != nil {
		t.Fatal(err)
	}
	if strings.Join(lines, ",") != "one,two" {
		t.Errorf("the console said %q", lines)
	}
	if log, err := os.ReadFile(m.log); err != nil || string(log) != "one\ntwo\n" {
		t.Errorf("the log is %q, %v", log, err)
	}
}

// TestBootEndsAMachineThatHangs shows what it said last.
func TestBootEndsAMachineThatHangs(t *testing.T) {
	m := impostor(t, "echo last words; exec sleep 60")
	spoken := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := boot(ctx, time.Second, m, func(string) { close(spoken) })
	select {
	case <-spoken:
	default:
		t.Fatal("the machine was ended before it spoke")
	}
	if err == nil || errors.Is(err, emulator.ErrUntried) || !strings.Contains(err.Error(), "not done after 1s") || !strings.Contains(err.Error(), "last words") {
		t.Errorf("boot says %v", err)
	}
}

func TestBootThatCannotBe(t *testing.T) {
	m := impostor(t, "echo no such machine >&2; exit 1")
	if _, err := boot(t.Context(), time.Minute, m, func(string) {}); !errors.Is(err, emulator.ErrUntried) || !strings.Contains(err.Error(), "no such machine") {
		t.Errorf("boot says %v", err)
	}
	m = impostor(t, "exec sleep 60")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := boot(ctx, time.Minute, m, func(string) {}); !errors.Is(err, emulator.ErrUntried) {
		t.Errorf("interrupted, boot says %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := boot(t.Context(), time.Minute, m, func(string) {}); !errors.Is(err, emulator.ErrUntried) || !strings.Contains(err.Error(), "qemu-system-arm") {
		t.Errorf("without an emulator, boot says %v", err)
	}
}
