package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"assent.home.arpa/image/boot/control"
)

// Bounds of what is passed on.
const (
	maxOutput = 4 << 20 // of a command
	maxRead   = 64 << 10
)

// contents reads the beginnings of files.
func contents(patterns []string) (map[string]string, error) {
	files := map[string]string{}
	for _, p := range patterns {
		found, err := filepath.Glob(p)
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			files[name] = ""
			f, err := os.Open(name)
			if err != nil {
				continue
			}
			b, err := io.ReadAll(io.LimitReader(f, maxRead))
			f.Close()
			if err == nil {
				files[name] = strings.TrimSpace(string(b))
			}
		}
	}
	return files, nil
}

// command runs one of the box's programs.
func command(c control.Command) (control.Answer, error) {
	if len(c.Args) == 0 {
		return control.Answer{}, errors.New("agent: no command")
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin", "LC_ALL=C", "SYSTEMD_PAGER=", "SYSTEMD_COLORS=0"}
	cmd.Stdin = strings.NewReader(c.Input)
	cmd.WaitDelay = 2 * time.Second
	out := &bounded{}
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	answer := control.Answer{Output: out.String()}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return answer, fmt.Errorf("agent: %v took more than %v", c.Args, c.Timeout)
	case errors.As(err, &exit):
		answer.Exit = exit.ExitCode()
	case err != nil:
		return answer, fmt.Errorf("agent: %w", err)
	}
	return answer, nil
}

// bounded keeps the first part of what is written.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), maxOutput-b.Len())])
	return len(p), nil
}

// processes lists what runs, and its memory. Threads of the kernel have none.
func processes() ([]control.Process, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var all []control.Process
	for _, dir := range dirs {
		rollup, err := os.ReadFile(filepath.Join(dir, "smaps_rollup"))
		if err != nil || filepath.Base(dir) == strconv.Itoa(os.Getpid()) {
			continue // it ended, is of the kernel, or is the test
		}
		name, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(rollup)) {
			if rest, found := strings.CutPrefix(line, "Pss:"); found {
				kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
				if err != nil {
					return nil, err
				}
				all = append(all, control.Process{Name: strings.TrimSpace(strings.ReplaceAll(string(name), "\x00", " ")), PSS: kib << 10})
			}
		}
	}
	return all, nil
}
