package engine_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"assent.home.arpa/inference/engine"
	"assent.home.arpa/inference/scripted"
)

// TestRealEngineStartsOverAStaleSocket runs the engine that ASSENT_ENGINE names: it must be suitable, accept every argument,
// serve, end with its context, and start again although its socket is still there.
func TestRealEngineStartsOverAStaleSocket(t *testing.T) {
	path := os.Getenv("ASSENT_ENGINE")
	if path == "" {
		t.Skip("set ASSENT_ENGINE to a llama-server to run this test")
	}
	e, err := engine.Find(t.Context(), engine.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "engine")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := engine.Server{Model: filepath.Join(dir, "m.gguf"), Socket: filepath.Join(dir, "e.sock"), Context: 512, Threads: 1}
	f, err := os.Create(s.Model)
	if err != nil {
		t.Fatal(err)
	}
	if err := scripted.Write(f, scripted.Script{Name: "start", Replies: []string{"Hello there."}}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		ctx, stop := context.WithCancel(t.Context())
		cmd, err := e.Command(ctx, s)
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = t.Output()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		exited := make(chan error, 1)
		go func() { exited <- cmd.Wait() }()
		if err := healthy(t, s.Socket, exited); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		stop()
		<-exited
		if _, err := os.Lstat(s.Socket); err != nil && round == 0 {
			t.Logf("this engine removes its own socket: %v", err)
		}
	}
}

// healthy waits until the engine answers, or has ended.
func healthy(t *testing.T, socket string, exited <-chan error) error {
	t.Helper()
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		select {
		case err := <-exited:
			return err
		case <-t.Context().Done():
			return t.Context().Err()
		case <-poll.C:
			resp, err := client.Get("http://engine/health")
			if err != nil {
				continue
			}
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
	}
}
