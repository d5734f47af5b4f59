package flash

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ulikunitz/xz"
	"github.com/ulikunitz/xz/lzma"

	"assent.home.arpa/image/card"
)

const (
	mib = 1 << 20
	// headBytes is the part of an image that is written last: the table, and what lies between it and the first partition.
	headBytes = mib
	// chunk is how much is written, and read back, at once.
	chunk = 4 * mib
	// maxDictionary bounds the memory that decompressing takes; xz -9 makes this much.
	maxDictionary = 64 * mib
	maxSums       = 1 * mib
)

// ImageError says that an image is damaged, or none.
type ImageError struct{ Path, Why string }

func (e *ImageError) Error() string { return fmt.Sprintf("%q is no good image: %s", e.Path, e.Why) }

// Image is an image of a card, whole as far as its checksums tell.
type Image struct {
	Path    string
	Size    int64 // of the card's content
	Table   *card.Table
	Ranges  []Range // what has to be written, from the block map; nil: everything
	Checked bool    // a checksum beside it vouches for all of it

	head       []byte
	sum        []byte // SHA-256 of the file as it was checked; nil where nothing but the head was read
	compressed bool
}

// OpenImage looks at an image, compressed with xz or not, before anything is written: its checksum, if there is one beside it
// (PATH.sha256, or SHA256SUMS), or else the checks within xz; its block map, if there is one; and that it is an image of
// Assent. The error is an *ImageError, or the context's, or that of opening it. progress may be nil.
func OpenImage(ctx context.Context, path string, progress func(done, total int64)) (*Image, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &ImageError{path, "it is not a file"}
	}
	im := &Image{Path: path}
	bad := func(format string, args ...any) error { return &ImageError{path, fmt.Sprintf(format, args...)} }
	magic := make([]byte, 6)
	if _, err := io.ReadFull(f, magic); err != nil {
		return nil, bad("it has %d bytes", info.Size())
	}
	if im.compressed = string(magic) == "\xfd7zXZ\x00"; im.compressed {
		if err := boundedDictionary(f); err != nil {
			return nil, bad("%v", err)
		}
	}
	if err := im.verify(ctx, f, info.Size(), progress); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, bad("%v", err)
	}
	if err := im.readHead(); err != nil {
		return nil, bad("%v", err)
	}
	if !im.compressed && info.Size() != im.Size {
		return nil, bad("it has %d bytes, its partition table is for %d", info.Size(), im.Size)
	}
	if err := im.readBmap(); err != nil {
		return nil, bad("its block map: %v", err)
	}
	return im, nil
}

// boundedDictionary looks at the first block's header (xz file format 1.2.1, section 3.1): what it says of memory is taken on
// trust by what decompresses. xz writes the same in every block of a file.
func boundedDictionary(f io.ReaderAt) error {
	b := make([]byte, 64)
	if n, err := f.ReadAt(b, 12); err != nil && n < 16 {
		return errors.New("it ends within its header")
	}
	at := 2
	for _, present := range []byte{0x40, 0x80} { // sizes, as numbers of seven bits a byte
		if b[1]&present == 0 {
			continue
		}
		for n := 0; b[at]&0x80 != 0 && n < 9; n++ {
			at++
		}
		at++
	}
	const lzma2 = 0x21
	if b[at] != lzma2 || b[at+1] != 1 {
		return errors.New("it is compressed with filters that are not known here")
	}
	if size, err := lzma.DecodeDictCap(b[at+2]); err != nil || size > maxDictionary {
		return fmt.Errorf("decompressing it would take more than %d MiB of memory", maxDictionary>>20)
	}
	return nil
}

// verify reads the whole image where that tells something: against a checksum, or through xz, which has its own.
func (im *Image) verify(ctx context.Context, f *os.File, size int64, progress func(done, total int64)) error {
	sums, err := sumsBeside(im.Path)
	if err != nil {
		return err
	}
	all := sha256.New()
	counted := io.TeeReader(&counter{ctx: ctx, r: io.NewSectionReader(f, 0, size), total: size, progress: progress}, all)
	want, vouched := sums[filepath.Base(im.Path)]
	switch {
	case vouched:
		if err := sameSum(counted, want); err != nil {
			return err
		}
		im.Checked = true
	case im.compressed:
		r, err := xz.NewReader(bufio.NewReaderSize(counted, mib))
		if err != nil {
			return damaged(err)
		}
		if want, im.Checked = sums[strings.TrimSuffix(filepath.Base(im.Path), ".xz")]; im.Checked {
			err = sameSum(r, want)
		} else {
			_, err = io.Copy(io.Discard, r)
		}
		if err != nil {
			return damaged(err)
		}
	default:
		return nil
	}
	im.sum = all.Sum(nil)
	return nil
}

// sumError says that content is not what a checksum is of.
type sumError struct{ got, want []byte }

func (e *sumError) Error() string {
	return fmt.Sprintf("its sha256 is %x, beside it stands %x; fetch it again", e.got, e.want)
}

// damaged says of what cannot be decompressed what to do about it.
func damaged(err error) error {
	var other *sumError
	if errors.As(err, &other) {
		return err
	}
	return fmt.Errorf("it is damaged, or was not fetched to its end; fetch it again (%w)", err)
}

func sameSum(r io.Reader, want [sha256.Size]byte) error {
	h := sha256.New()
	if _, err := io.CopyBuffer(struct{ io.Writer }{h}, struct{ io.Reader }{r}, make([]byte, mib)); err != nil {
		return err
	}
	if got := h.Sum(nil); !bytes.Equal(got, want[:]) {
		return &sumError{got, want[:]}
	}
	return nil
}

// sumsBeside reads the checksums that sha256sum left beside an image, by file name.
func sumsBeside(path string) (map[string][sha256.Size]byte, error) {
	sums := map[string][sha256.Size]byte{}
	base := strings.TrimSuffix(path, ".xz")
	for _, name := range []string{path + ".sha256", base + ".sha256", strings.TrimSuffix(base, ".img") + ".sha256", filepath.Join(filepath.Dir(path), "SHA256SUMS")} {
		b, err := readBounded(name, maxSums)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(b)) {
			digits, of, _ := strings.Cut(strings.TrimSpace(line), " ")
			sum, err := hex.DecodeString(digits)
			if err != nil || len(sum) != sha256.Size {
				return nil, fmt.Errorf("%s is not a list of checksums", filepath.Base(name))
			}
			of = filepath.Base(strings.TrimLeft(of, " *"))
			if of == "." { // the checksum alone, of the file that the name says
				of = strings.TrimSuffix(filepath.Base(name), ".sha256")
			}
			sums[of] = [sha256.Size]byte(sum)
		}
	}
	return sums, nil
}

func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%s is over the bound of %d bytes", filepath.Base(path), limit)
	}
	return b, err
}

func (im *Image) readHead() error {
	r, err := im.open()
	if err != nil {
		return err
	}
	defer r.Close()
	im.head = make([]byte, headBytes)
	if _, err := io.ReadFull(r, im.head); err != nil {
		return errors.New("it ends too early")
	}
	if im.Table, err = card.ReadTable(bytes.NewReader(im.head)); err != nil {
		return err
	}
	im.Size = im.Table.DiskSize()
	return im.Table.Check()
}

func (im *Image) readBmap() error {
	base := strings.TrimSuffix(im.Path, ".xz")
	for _, name := range []string{base + ".bmap", strings.TrimSuffix(base, ".img") + ".bmap"} {
		b, err := readBounded(name, maxBmap)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		ranges, size, err := parseBmap(b)
		if err != nil {
			return err
		}
		if size != im.Size {
			return fmt.Errorf("it is for an image of %d bytes, this one has %d", size, im.Size)
		}
		im.Ranges = ranges
		return nil
	}
	return nil
}

// source is the card's content, from its beginning.
type source struct {
	io.Reader
	f   *os.File
	raw io.Reader // the file as it is, whose bytes go into all
	all hash.Hash
}

func (s *source) Close() error { return s.f.Close() }

// open returns the card's content.
func (im *Image) open() (*source, error) {
	f, err := os.Open(im.Path)
	if err != nil {
		return nil, err
	}
	s := &source{f: f, all: sha256.New()}
	s.raw = io.TeeReader(f, s.all)
	s.Reader = s.raw
	if im.compressed {
		if s.Reader, err = xz.NewReader(bufio.NewReaderSize(s.raw, mib)); err != nil {
			f.Close()
			return nil, damaged(err)
		}
	}
	return s, nil
}

// same reads s to its end, where xz has a last check, and fails where the file is not the one that was checked.
func (im *Image) same(s *source) error {
	if _, err := io.Copy(io.Discard, s); err != nil {
		return fmt.Errorf("reading the image: %w", err)
	}
	if _, err := io.Copy(io.Discard, s.raw); err != nil {
		return fmt.Errorf("reading the image: %w", err)
	}
	if im.sum != nil && !bytes.Equal(s.all.Sum(nil), im.sum) {
		return im.changed()
	}
	return nil
}

// changed says that an image is another one than was looked at.
func (im *Image) changed() error {
	return &ImageError{im.Path, "it has changed since it was checked; let nothing write to it meanwhile"}
}

// counter tells how far reading is, and ends it with its context.
type counter struct {
	ctx         context.Context
	r           io.Reader
	done, total int64
	progress    func(done, total int64)
}

func (c *counter) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.r.Read(p)
	c.done += int64(n)
	if c.progress != nil {
		c.progress(c.done, c.total)
	}
	return n, err
}
