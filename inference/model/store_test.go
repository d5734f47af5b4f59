package model_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"assent.home.arpa/inference/model"
)

func TestFilesThatAreNoModels(t *testing.T) {
	s, _, _, file := published(t, 1)
	dir := t.TempDir()
	for name, tt := range map[string]struct {
		content []byte
		want    model.Problem
	}{
		"absent":      {nil, model.Missing},
		"a web page":  {[]byte("<!doctype html><title>log in</title>"), model.NotGGUF},
		"empty":       {[]byte{}, model.Truncated},
		"half header": {file[:60], model.Truncated},
		"half data":   {file[:len(file)-1], model.Truncated},
	} {
		path := filepath.Join(dir, name+".gguf")
		if tt.content != nil {
			if err := os.WriteFile(path, tt.content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		_, err := s.Resolve(path)
		var broken *model.FileError
		if !errors.As(err, &broken) || broken.Problem != tt.want {
			t.Errorf("%s: got %v, want problem %d", name, err, tt.want)
		}
	}
	if _, err := s.Resolve(dir + "/"); !errors.As(err, new(*model.FileError)) {
		t.Errorf("a folder: got %v", err)
	}
}

func TestResolveNamesWhatItDoesNotHave(t *testing.T) {
	s, _, _, _ := published(t, 1)
	var unknown *model.UnknownError
	if _, err := s.Resolve("qwen-900b"); !errors.As(err, &unknown) || len(unknown.Known) != 1 {
		t.Errorf("got %v", err)
	}
	var absent *model.NotPulledError
	if _, err := s.Resolve(""); !errors.As(err, &absent) || absent.ID != "small" {
		t.Errorf("got %v", err)
	}
}

func TestCheckKnowsAFileByItsBytes(t *testing.T) {
	s, _, m, file := published(t, 1)
	mine := filepath.Join(t.TempDir(), "mine.gguf")
	if err := os.WriteFile(mine, file, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := s.Check(t.Context(), mine)
	if err != nil || f.Model.ID != m.ID || f.SHA256 != m.SHA256 {
		t.Errorf("%+v, %v", f, err)
	}
	file[len(file)-1] ^= 1 // still a sound file, but one that nobody has named
	if err := os.WriteFile(mine, file, 0o644); err != nil {
		t.Fatal(err)
	}
	if f, err = s.Check(t.Context(), mine); err != nil || f.Model.ID != "" {
		t.Errorf("%+v, %v", f, err)
	}
}
