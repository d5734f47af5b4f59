package model_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/inference/model"
	"assent.home.arpa/inference/model/modeltest"
)

func sample() []byte {
	return modeltest.GGUF(100, "general.architecture", "test", "general.name", "A Model", "general.license", "mit")
}

func TestHeaderTellsWhatTheFileIs(t *testing.T) {
	file := sample()
	h, err := model.ReadHeader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	want := model.Header{Architecture: "test", Name: "A Model", Licence: "mit", Context: 2048, Tensors: 1, MinSize: int64(len(file))}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Error(diff)
	}
}

func TestHeaderCutAnywhereIsNotAHeader(t *testing.T) {
	file := sample()
	h, err := model.ReadHeader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	end := int(h.MinSize) - 100*4 - 32 // the header ends within the last alignment step
	for n := range end {
		if _, err := model.ReadHeader(bytes.NewReader(file[:n])); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("after %d bytes: %v", n, err)
		}
	}
}

func TestHeaderThatLiesAboutItsSizesIsRefused(t *testing.T) {
	huge := binary.LittleEndian.AppendUint64(nil, 1<<62)
	for name, at := range map[string]int{"tensors": 8, "entries": 16, "key": 24} {
		file := sample()
		copy(file[at:], huge)
		if _, err := model.ReadHeader(bytes.NewReader(file)); err == nil {
			t.Errorf("%s: a count of 2^62 was believed", name)
		}
	}
	file := bytes.Replace(sample(), []byte("GGUF"), []byte("GGML"), 1)
	if _, err := model.ReadHeader(bytes.NewReader(file)); err == nil {
		t.Error("another format was taken for GGUF")
	}
}

func FuzzReadHeader(f *testing.F) {
	f.Add(sample())
	f.Add([]byte("GGUF\x03\x00\x00\x00"))
	f.Add([]byte("hello"))
	f.Fuzz(func(t *testing.T, file []byte) {
		h, err := model.ReadHeader(bytes.NewReader(file))
		if err != nil {
			if h != (model.Header{}) {
				t.Errorf("an error and a header: %+v", h)
			}
			return
		}
		if h.MinSize < 24 || h.Architecture == "" || h.Tensors < 0 {
			t.Errorf("%+v", h)
		}
	})
}
