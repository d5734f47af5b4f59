package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Bounds of a file of anchors.
const (
	maxAnchorFile = 1 << 20
	maxAnchors    = 1024
)

// coseTag begins a tagged COSE_Sign1 (RFC 9052 section 4.2): CBOR tag 18. No base64 begins so.
const coseTag = 0xd2

// readAnchors reads seals that were kept outside the box: one as it is, as an export holds it, or any number in base64 or
// base64url, each on a line, as phones keep them. Empty lines and lines that begin with # are passed over.
func readAnchors(path string) ([][]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--anchor: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxAnchorFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("--anchor: %w", err)
	case len(b) > maxAnchorFile:
		return nil, fmt.Errorf("--anchor: %q is over %d MiB", path, maxAnchorFile>>20)
	case len(b) > 0 && b[0] == coseTag:
		return [][]byte{b}, nil
	}
	var all [][]byte
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		seal, err := decodeBase64(line)
		if err != nil || len(seal) == 0 || seal[0] != coseTag || len(all) == maxAnchors {
			return nil, &exitError{exitWrongCall, fmt.Errorf("--anchor: %q holds no seals: one seal's bytes, or seals in base64, one a line", path)}
		}
		all = append(all, seal)
	}
	if len(all) == 0 {
		return nil, &exitError{exitWrongCall, fmt.Errorf("--anchor: %q is empty", path)}
	}
	return all, nil
}

// decodeBase64 reads either alphabet, padded or not.
func decodeBase64(s string) ([]byte, error) {
	s = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(s), "=")
	b, err := base64.RawStdEncoding.DecodeString(s)
	if err != nil {
		return nil, errors.New("no base64")
	}
	return b, nil
}
