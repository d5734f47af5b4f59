package engine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Oldest is the oldest release whose behaviour Assent was measured against, and OldestBuild its build number, which is all
// that engines from elsewhere than Debian tell.
const (
	Oldest      = "0.7.0"
	OldestBuild = 11669
)

// examineTime bounds how long an engine may take to say its version and its options.
const examineTime = 20 * time.Second

// examine runs the executable at path and decides whether Assent can use it. The error is an *UnsuitableError or that of
// an ended ctx.
func examine(ctx context.Context, path string, origin Origin) (Engine, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Engine{}, err
	}
	said, err := ask(ctx, path, "--version")
	if err != nil {
		return Engine{}, unsuitable(ctx, path, err)
	}
	version, err := parseVersion(said)
	if err != nil {
		return Engine{}, unsuitable(ctx, path, err)
	}
	help, err := ask(ctx, path, "--help")
	if err != nil {
		return Engine{}, unsuitable(ctx, path, err)
	}
	for _, flag := range required() {
		if !offers(help, flag) {
			return Engine{}, &UnsuitableError{path, fmt.Sprintf("version %s does not know the option %s", version, flag)}
		}
	}
	return Engine{Path: path, Version: version, Origin: origin}, nil
}

func unsuitable(ctx context.Context, path string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &UnsuitableError{path, err.Error()}
}

// ask runs path with one option and returns what it printed, on whichever stream.
func ask(ctx context.Context, path, option string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, examineTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, option)
	cmd.Env = environment()
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("it did not answer %s within %v", option, examineTime)
	case err != nil:
		return "", fmt.Errorf("it does not run: %s", firstLine(string(out), err))
	}
	return string(out), nil
}

// versionLine matches "version: 0.7.0 (build 11669, commit Debian)" and "version: 11669 (0123abc)".
var versionLine = regexp.MustCompile(`(?m)^version: ((?:(\d+)\.(\d+)\.\d+ \(build \d+|(\d+) \([0-9a-f]+).*)$`)

// parseVersion returns the version in what an engine says of itself, if it is new enough.
func parseVersion(said string) (string, error) {
	m := versionLine.FindStringSubmatch(said)
	if m == nil {
		return "", fmt.Errorf("it does not say a version of llama.cpp")
	}
	version := strings.TrimSpace(m[1])
	if m[4] != "" {
		if build, err := strconv.Atoi(m[4]); err != nil || build < OldestBuild {
			return "", fmt.Errorf("build %s is older than build %d", m[4], OldestBuild)
		}
		return version, nil
	}
	major, errMajor := strconv.Atoi(m[2])
	minor, errMinor := strconv.Atoi(m[3])
	if errMajor != nil || errMinor != nil || (major == 0 && minor < 7) {
		return "", fmt.Errorf("version %s is older than %s", version, Oldest)
	}
	return version, nil
}

// offers reports whether a help text lists an option.
func offers(help, flag string) bool {
	for field := range strings.FieldsFuncSeq(help, func(r rune) bool { return r == ' ' || r == ',' || r == '\n' || r == '\t' }) {
		if field == flag {
			return true
		}
	}
	return false
}

// firstLine returns the first line of output that says something, bounded, or else the error.
func firstLine(out string, err error) string {
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); line != "" {
			return strings.ToValidUTF8(line[:min(len(line), 300)], "\uFFFD")
		}
	}
	return err.Error()
}

func modified(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
