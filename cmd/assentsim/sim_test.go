package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/finger"
	"assent.home.arpa/appliance/phone"
	"assent.home.arpa/appliance/wire"
)

// TestMain lets the test's own binary play the roles of the boxes that it starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "role" {
		os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// needEngine takes the engine that the tests were given; see the Makefile.
func needEngine(t *testing.T) {
	t.Helper()
	engine := os.Getenv("ASSENT_ENGINE")
	if engine == "" {
		t.Skip("ASSENT_ENGINE names no llama-server; make test sets it")
	}
	t.Setenv("ENGINE", engine)
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestDemoDoesTheMainJob(t *testing.T) {
	needEngine(t)
	state := t.TempDir()
	var out, errs bytes.Buffer
	if code := run([]string{"demo", "-scripted", "-search", "practice", "-listen", freePort(t), "-state", state}, nil, &out, &errs); code != 0 {
		t.Fatalf("exit %d\n%s\n%s", code, &out, &errs)
	}
	for _, want := range []string{
		"NOT A LANGUAGE MODEL",
		"practice site on this machine",
		"panel  | page 2 of 4: How tall is the Eiffel Tower\n",
		"panel  | page 4 of 4: goes to: 127.0.0.1\n",
		"finger | holds approve",
		"result | web.search v1: done",
		"cited  | [1] Eiffel Tower",
		"330 metres",
		"approved at the box; it is under way", "audit: intact",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the transcript lacks %q:\n%s", want, &out)
		}
	}
	// The same log, with one bit changed, is not ok.
	logs, err := filepath.Glob(filepath.Join(state, "guard", "audit", "*.cborseq"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("no audit: %v", err)
	}
	b, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	b[200] ^= 1
	if err := os.WriteFile(logs[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	report, err := audit.Verify(t.Context(), os.DirFS(filepath.Dir(logs[0])), audit.VerifyOptions{})
	if err != nil || report.Status != audit.Altered {
		t.Errorf("a changed audit: %v, %v", report.Status, err)
	}
}

func TestABusyPortIsSaidBeforeAnythingStarts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var out, errs bytes.Buffer
	code := run([]string{"run", "-scripted", "-search", "practice", "-listen", l.Addr().String(), "-state", t.TempDir()}, nil, &out, &errs)
	if code != 1 || !strings.Contains(errs.String(), "address already in use; choose another address") || strings.Contains(out.String(), "phone page") {
		t.Fatalf("exit %d\n%s\n%s", code, &out, &errs)
	}
}

func TestHelpIsNotAnError(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"--help"}, nil, &out, &errs); code != 0 || !strings.Contains(out.String(), "assentsim demo") {
		t.Fatalf("exit %d\n%s\n%s", code, &out, &errs)
	}
	if code := run([]string{"fly"}, nil, &out, &errs); code != 3 {
		t.Fatalf("exit %d for a command that does not exist", code)
	}
}

// household is a running box with a paired phone.
type household struct {
	*testing.T
	sim    *sim
	finger finger.Finger
	who    *phone.Identity
}

func startHousehold(t *testing.T) *household {
	needEngine(t)
	s, err := start(t.Context(), io.Discard, plan{
		state: t.TempDir(), listen: freePort(t), panel: "127.0.0.1:0", search: "practice", recite: true, errLog: io.Discard,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
	h := &household{T: t, sim: s, finger: finger.Finger{Panel: hands{s.glass}}}
	d := demo{sim: s, out: io.Discard, finger: h.finger}
	if h.who, err = d.pair(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *household) connect() *phone.Client {
	h.Helper()
	var client *phone.Client
	err := poll(h.within(20*time.Second), func() bool {
		c, err := phone.Dial(h.Context(), h.sim.address, nil)
		if err != nil {
			return false
		}
		if _, err := c.Hello(h.Context(), h.who, "", 0); err != nil {
			c.Close()
			return false
		}
		client = c
		return true
	})
	if err != nil {
		h.Fatal("the phone cannot get back to the box")
	}
	h.Cleanup(func() { client.Close() })
	return client
}

func (h *household) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(h.Context(), d)
	h.Cleanup(cancel)
	return ctx
}

// until reads frames until one of the type arrives. A turn that ends first is the answer as well.
func (h *household) until(c *phone.Client, types ...wire.Type) (phone.Frame, error) {
	ctx := h.within(60 * time.Second)
	for {
		f, err := c.Next(ctx)
		if err != nil {
			return f, err
		}
		for _, t := range types {
			if f.Type == t {
				return f, nil
			}
		}
	}
}

// mainJob asks, approves at the panel and demands a cited answer.
func (h *household) mainJob() {
	h.Helper()
	c := h.connect()
	var turnError string
	err := poll(h.within(60*time.Second), func() bool {
		if _, err := c.Ask(h.who, phone.NewConversation(), "How tall is the Eiffel Tower?"); err != nil {
			turnError = err.Error()
			return true
		}
		f, err := h.until(c, wire.TypePending, wire.TypeTurnEnd, wire.TypeError)
		if err != nil {
			turnError = err.Error()
			return true
		}
		turnError = string(f.Data)
		if f.Type != wire.TypePending {
			time.Sleep(200 * time.Millisecond)
			return false // a part of the box is still starting, which the phone is told
		}
		turnError = ""
		var p wire.Pending
		if err := f.Decode(&p); err != nil {
			turnError = err.Error()
			return true
		}
		if _, err := h.finger.Approve(h.Context(), p.Pages); err != nil {
			turnError = err.Error()
			return true
		}
		f, err = h.until(c, wire.TypeResult)
		if err != nil || !bytes.Contains(f.Data, []byte("330 metres")) {
			turnError = fmt.Sprintf("%s, %v", f.Data, err)
			return true
		}
		_, err = h.until(c, wire.TypeTurnEnd)
		if err != nil {
			turnError = err.Error()
		}
		return true
	})
	if err != nil || turnError != "" {
		h.Fatalf("the main job: %v, %s", err, turnError)
	}
}

func TestKillingAnyRoleLeavesTheOthersAndHeals(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	h := startHousehold(t)
	roles := []string{"model", "courier", "guard", "gateway"}
	for _, victim := range roles {
		t.Run(victim, func(t *testing.T) {
			h := &household{T: t, sim: h.sim, finger: h.finger, who: h.who}
			before := map[string]int{}
			for _, r := range roles {
				pid, ok := h.sim.set.PID(r)
				if !ok {
					t.Fatalf("%s is not running", r)
				}
				before[r] = pid
			}
			c := h.connect()
			conversation := phone.NewConversation()
			if _, err := c.Ask(h.who, conversation, "How tall is the Eiffel Tower?"); err != nil {
				t.Fatal(err)
			}
			f, err := h.until(c, wire.TypePending, wire.TypeTurnEnd)
			if err != nil || f.Type != wire.TypePending {
				t.Fatalf("%s %s, %v", f.Type, f.Data, err)
			}
			var card wire.Pending
			if err := f.Decode(&card); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(before[victim], syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			h.told(c, victim, hex.EncodeToString(conversation[:]), card.Invocation)
			if err := poll(h.within(20*time.Second), func() bool { pid, ok := h.sim.set.PID(victim); return ok && pid != before[victim] }); err != nil {
				t.Fatalf("%s was not started again", victim)
			}
			for _, r := range roles {
				if pid, ok := h.sim.set.PID(r); r != victim && (!ok || pid != before[r]) {
					t.Errorf("%s died with %s", r, victim)
				}
			}
			h.mainJob()
		})
	}
}

// told checks what the phone hears when a role dies while a request waits at the panel, and ends the turn.
func (h *household) told(c *phone.Client, victim, conversation, card string) {
	h.Helper()
	switch victim {
	case "gateway":
		if _, err := h.until(c, wire.TypeTurnEnd); err == nil {
			h.Error("the connection outlived the gateway")
		}
	case "guard":
		f, err := h.until(c, wire.TypeResult)
		var r wire.Result
		if err == nil {
			err = f.Decode(&r)
		}
		if err != nil || r.Outcome.Status != "unknown" || r.Outcome.Code == "" || r.Outcome.Message == "" || r.Outcome.Invocation != card {
			h.Errorf("the phone heard %+v, %v", r.Outcome, err)
		}
		f, err = h.until(c, wire.TypeTurnEnd)
		if err != nil {
			h.Error(err)
		}
		h.typed(f)
	default: // nothing is lost: the request still waits, and can be taken back
		if _, err := c.Send(wire.TypeCancel, wire.Cancel{Conversation: conversation}); err != nil {
			h.Error(err)
		}
		f, err := h.until(c, wire.TypeTurnEnd)
		if err != nil {
			h.Error(err)
		}
		h.typed(f)
	}
}

func (h *household) typed(f phone.Frame) {
	h.Helper()
	var end wire.TurnEnd
	if err := json.Unmarshal(f.Data, &end); err != nil || end.Reason == "" {
		h.Errorf("%s", f.Data)
	}
}
