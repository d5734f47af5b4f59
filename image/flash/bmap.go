package flash

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Bounds of a block map.
const (
	maxBmap      = 4 << 20
	maxBlockSize = 1 << 20
)

// Range is a run of bytes of an image that hold something, with their SHA-256.
type Range struct {
	Start, End int64 // End is the first byte behind it
	SHA256     [sha256.Size]byte
}

// parseBmap reads a block map as bmaptool makes it, version 2.0 with SHA-256. Its own checksum is checked. The ranges are
// ascending and within size, which it also returns.
func parseBmap(b []byte) (ranges []Range, size int64, err error) {
	if len(b) > maxBmap {
		return nil, 0, fmt.Errorf("it is over the bound of %d bytes", maxBmap)
	}
	var m struct {
		XMLName      xml.Name `xml:"bmap"`
		Version      string   `xml:"version,attr"`
		ImageSize    string   `xml:"ImageSize"`
		BlockSize    string   `xml:"BlockSize"`
		BlocksCount  string   `xml:"BlocksCount"`
		ChecksumType string   `xml:"ChecksumType"`
		FileChecksum string   `xml:"BmapFileChecksum"`
		Ranges       []struct {
			Sum  string `xml:"chksum,attr"`
			Text string `xml:",chardata"`
		} `xml:"BlockMap>Range"`
	}
	d := xml.NewDecoder(bytes.NewReader(b))
	if err := d.Decode(&m); err != nil {
		return nil, 0, err
	}
	if len(bytes.TrimSpace(b[d.InputOffset():])) > 0 {
		return nil, 0, errors.New("something follows it")
	}
	if !strings.HasPrefix(m.Version, "2.") || strings.TrimSpace(m.ChecksumType) != "sha256" {
		return nil, 0, fmt.Errorf("it is of version %q with checksums of type %q; version 2 with sha256 is known", m.Version, strings.TrimSpace(m.ChecksumType))
	}
	// The file's checksum is taken with zeros in its own place.
	own := strings.TrimSpace(m.FileChecksum)
	zeroed := bytes.Replace(b, []byte(own), bytes.Repeat([]byte{'0'}, len(own)), 1)
	if sum := sha256.Sum256(zeroed); hex.EncodeToString(sum[:]) != own {
		return nil, 0, errors.New("its own checksum is wrong")
	}
	var count, block int64
	for text, n := range map[string]*int64{m.ImageSize: &size, m.BlockSize: &block, m.BlocksCount: &count} {
		if *n, err = strconv.ParseInt(strings.TrimSpace(text), 10, 64); err != nil {
			return nil, 0, err
		}
	}
	if block < 512 || block > maxBlockSize || block%512 != 0 || size <= 0 || count != (size+block-1)/block {
		return nil, 0, errors.New("its sizes contradict each other")
	}
	at := int64(0)
	for _, r := range m.Ranges {
		first, last, two := strings.Cut(strings.TrimSpace(r.Text), "-")
		from, err := strconv.ParseInt(strings.TrimSpace(first), 10, 64)
		to := from
		if err == nil && two {
			to, err = strconv.ParseInt(strings.TrimSpace(last), 10, 64)
		}
		sum, hexErr := hex.DecodeString(r.Sum)
		if err != nil || hexErr != nil || len(sum) != sha256.Size || from < at || to < from || to >= count {
			return nil, 0, fmt.Errorf("the range %q cannot be", strings.TrimSpace(r.Text))
		}
		at = to + 1
		ranges = append(ranges, Range{from * block, min(at*block, size), [sha256.Size]byte(sum)})
	}
	return ranges, size, nil
}
