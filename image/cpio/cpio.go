// Package cpio writes archives in the "newc" format, the one that Linux unpacks as its initial file system
// (Documentation/driver-api/early-userspace/buffer-format.rst).
//
// Archives are the same for the same contents: times are zero, everything belongs to root, numbers count up.
package cpio

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

// Kinds of files, as in stat(2).
const (
	typeChar = 0o020000
	typeDir  = 0o040000
	typeFile = 0o100000
	typeMask = 0o170000
)

// maxName bounds a path, as the kernel does (PATH_MAX with its terminator).
const maxName = 4095

// trailer is the name that ends an archive.
const trailer = "TRAILER!!!"

// ErrEntry says that something cannot be put into an archive.
var ErrEntry = errors.New("cpio: entry cannot be stored")

// Writer writes one archive. After an error it only repeats that error.
type Writer struct {
	out    io.Writer
	inode  uint32
	closed bool
	err    error
}

// NewWriter returns a Writer that writes to out.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Dir adds a folder. Paths are relative to the root and separated by slashes; a folder comes before what is in it.
func (w *Writer) Dir(path string, perm uint32) error {
	return w.entry(path, typeDir|perm, 0, 0, nil)
}

// File adds a regular file.
func (w *Writer) File(path string, perm uint32, data []byte) error {
	return w.entry(path, typeFile|perm, 0, 0, data)
}

// Char adds a character device.
func (w *Writer) Char(path string, perm, major, minor uint32) error {
	return w.entry(path, typeChar|perm, major, minor, nil)
}

// Close writes the end of the archive. It does not close what the Writer writes to.
func (w *Writer) Close() error {
	if w.err == nil && !w.closed {
		w.closed = true
		w.put(trailer, 0, 0, 0, nil)
	}
	return w.err
}

func (w *Writer) entry(path string, mode, major, minor uint32, data []byte) error {
	switch {
	case w.err != nil:
	case w.closed:
		w.err = fmt.Errorf("%w: %q comes after the end", ErrEntry, path)
	case !sound(path):
		w.err = fmt.Errorf("%w: the path %q", ErrEntry, path)
	case mode&^(typeMask|0o7777) != 0:
		w.err = fmt.Errorf("%w: %q with mode %o", ErrEntry, path, mode)
	case uint64(len(data)) > math.MaxUint32:
		w.err = fmt.Errorf("%w: %q has %d bytes", ErrEntry, path, len(data))
	default:
		w.inode++
		w.put(path, mode, major, minor, data)
	}
	return w.err
}

// sound reports whether a path means the same to every reader.
func sound(path string) bool {
	if path == "" || len(path) > maxName || path == trailer || strings.ContainsRune(path, 0) {
		return false
	}
	for element := range strings.SplitSeq(path, "/") {
		if element == "" || element == "." || element == ".." {
			return false
		}
	}
	return true
}

// put writes one header with its name and data, each padded to four bytes.
func (w *Writer) put(name string, mode, major, minor uint32, data []byte) {
	links := uint32(1)
	if mode&typeMask == typeDir {
		links = 2
	}
	header := "070701"
	for _, field := range []uint32{
		w.inode, mode, 0, 0, links, 0, uint32(len(data)), 0, 0, major, minor, uint32(len(name) + 1), 0,
	} {
		header += fmt.Sprintf("%08X", field)
	}
	w.write(header + name + "\x00" + padding(len(header)+len(name)+1))
	if w.err == nil {
		_, w.err = w.out.Write(data)
	}
	w.write(padding(len(data)))
}

func (w *Writer) write(s string) {
	if w.err == nil {
		_, w.err = io.WriteString(w.out, s)
	}
}

func padding(n int) string { return "\x00\x00\x00"[:(4-n%4)%4] }
