package emulator_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assent.home.arpa/image/emulator"
)

// impostor puts a program in the emulator's place.
func impostor(t *testing.T, script string) emulator.Machine {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, emulator.Program), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return emulator.Machine{Log: filepath.Join(dir, "log")}
}

func TestAFailureShowsTheLastLines(t *testing.T) {
	m := impostor(t, `i=0; while [ $i -lt 100 ]; do echo "line $i"; i=$((i+1)); done; exit 1`)
	n := 0
	m.Line = func(string) { n++ }
	r, err := emulator.Start(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Wait(t.Context(), time.Minute)
	if n != 100 || err == nil || strings.Contains(err.Error(), "line 74\n") || !strings.Contains(err.Error(), "line 75\n") || !strings.HasSuffix(err.Error(), "line 99") {
		t.Errorf("%d lines, %v", n, err)
	}
}

func TestAKilledMachineIsOver(t *testing.T) {
	m := impostor(t, "echo up; exec sleep 60")
	up := make(chan string, 1)
	m.Line = func(l string) { up <- l }
	r, err := emulator.Start(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	<-up
	r.Kill()
	r.Kill()
	select {
	case <-r.Done():
	default:
		t.Error("it runs on")
	}
	if r.Last() != "up" {
		t.Errorf("the last words were %q", r.Last())
	}
}

// TestAMonitorPicksItsAnswersOut of greetings and events.
func TestAMonitorPicksItsAnswersOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "qmp")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	asked := make(chan string, 8)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		fmt.Fprintln(c, `{"QMP": {"version": {}}}`)
		lines := bufio.NewScanner(c)
		for lines.Scan() {
			asked <- lines.Text()
			switch {
			case strings.Contains(lines.Text(), "device_add"):
				fmt.Fprintln(c, `{"event": "RTC_CHANGE"}`)
				fmt.Fprintln(c, `{"return": {}}`)
			case strings.Contains(lines.Text(), "qmp_capabilities"):
				fmt.Fprintln(c, `{"return": {}}`)
			case strings.Contains(lines.Text(), "quit"):
				return
			default:
				fmt.Fprintln(c, `{"error": {"class": "GenericError", "desc": "no such thing"}}`)
			}
		}
	}()
	m, err := emulator.Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	<-asked
	if err := m.Do("device_add", map[string]string{"driver": "usb-kbd"}); err != nil {
		t.Error(err)
	}
	if got := <-asked; got != `{"execute":"device_add","arguments":{"driver":"usb-kbd"}}` {
		t.Errorf("it asked %s", got)
	}
	if err := m.Do("device_del", nil); err == nil || !strings.Contains(err.Error(), "device_del: no such thing") {
		t.Errorf("a refusal: %v", err)
	}
	if err := m.Do("quit", nil); !errors.Is(err, net.ErrClosed) {
		t.Errorf("hung up: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := emulator.Dial(ctx, path+"-not"); err == nil {
		t.Error("reached a monitor that there is not")
	}
}
