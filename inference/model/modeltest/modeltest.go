// Package modeltest makes small GGUF files and the sources that serve them, for tests.
package modeltest

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assent.home.arpa/inference/model"
)

// GGUF returns a well-formed file of one tensor with the given number of float32 elements, and text values as metadata,
// in pairs of key and value.
func GGUF(elements int, texts ...string) []byte {
	var b bytes.Buffer
	le := func(v any) {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			panic("modeltest: " + err.Error())
		}
	}
	str := func(s string) {
		le(uint64(len(s)))
		b.WriteString(s)
	}
	b.WriteString("GGUF")
	le(uint32(3))
	le(uint64(1))
	le(uint64(len(texts)/2 + 2))
	for i := 0; i+1 < len(texts); i += 2 {
		str(texts[i])
		le(uint32(8))
		str(texts[i+1])
	}
	str("test.context_length")
	le(uint32(4))
	le(uint32(2048))
	str("tokenizer.ggml.tokens")
	le(uint32(9))
	le(uint32(8))
	le(uint64(2))
	str("a")
	str("b")
	str("weights")
	le(uint32(1))
	le(uint64(elements))
	le(uint32(0))
	le(uint64(0))
	for b.Len()%32 != 0 {
		b.WriteByte(0)
	}
	for i := range elements {
		le(float32(i))
	}
	return b.Bytes()
}

// Digest returns the SHA-256 of b in hex.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Index is a package index with a pip that serves from it. Remove a wheel to take it off the net, overwrite it to
// corrupt it.
type Index struct {
	Dir string   // holds <requirement>.whl
	Pip []string // for model.Store
}

// NewIndex makes an index without wheels.
func NewIndex(t testing.TB) *Index {
	t.Helper()
	dir := t.TempDir()
	script := filepath.Join(dir, "pip")
	content := fmt.Sprintf(`while [ $# -gt 1 ]; do
	[ "$1" = --dest ] && dest=$2
	shift
done
echo "$1" >>'%[1]s/log'
if [ ! -e '%[1]s'/"$1.whl" ]; then
	echo "WARNING: retrying" >&2
	echo "ERROR: No matching distribution found for $1" >&2
	exit 1
fi
cp '%[1]s'/"$1.whl" "$dest/"
`, dir)
	if err := os.WriteFile(script, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return &Index{Dir: dir, Pip: []string{"/bin/sh", script}}
}

// Asked returns the requirements that pip was asked for, in order.
func (x *Index) Asked(t testing.TB) []string {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(x.Dir, "log"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Fields(string(log))
}

// Wheel returns where the index keeps the wheel of a requirement.
func (x *Index) Wheel(requirement string) string { return filepath.Join(x.Dir, requirement+".whl") }

// Publish cuts file into n parts, puts each into a wheel, and returns the manifest entry.
func (x *Index) Publish(t testing.TB, id string, file []byte, n int) model.Model {
	t.Helper()
	m := model.Model{
		ID: id, Title: id, Licence: "MIT", Dialect: "chatml-hermes", Context: 2048, Default: true,
		Size: int64(len(file)), SHA256: Digest(file),
	}
	for i := range n {
		part := file[i*len(file)/n : (i+1)*len(file)/n]
		p := model.Part{Wheel: fmt.Sprintf("%s-part%d==1.0", id, i+1), Member: "data/part.bin", Size: int64(len(part))}
		var wheel bytes.Buffer
		z := zip.NewWriter(&wheel)
		w, err := z.Create(p.Member)
		if err == nil {
			_, err = w.Write(part)
		}
		if err == nil {
			err = z.Close()
		}
		if err == nil {
			err = os.WriteFile(x.Wheel(p.Wheel), wheel.Bytes(), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		p.SHA256 = Digest(wheel.Bytes())
		m.Parts = append(m.Parts, p)
	}
	return m
}
