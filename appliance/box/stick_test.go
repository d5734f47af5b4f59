package box_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/box"
	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/guard"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/stick/sticktest"
	"assent.home.arpa/confirm"
	"assent.home.arpa/device"
	"assent.home.arpa/device/devicetest"
)

// exporterOf names, to a copy of the test's own program, the image that it is to export to.
const exporterOf = "ASSENT_TEST_EXPORTER_OF"

func beExporter(dir, image string) error {
	me := uint32(os.Getuid())
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	return box.Stick(ctx, configIn(dir), image, box.Peers{Guard: me}, slog.New(slog.NewTextHandler(os.Stderr, nil)))
}

// brisk are the panel's rules for a test that lives through them.
func brisk() confirm.Timings {
	t := confirm.DefaultTimings()
	t.AdminHold, t.PageMin, t.PerCodePoint, t.Result = 150*time.Millisecond, 5*time.Millisecond, time.Millisecond, 50*time.Millisecond
	return t
}

// D4: the whole way, with the exporter in a process of its own: a file system in an image, a press, and a copy that verifies.
func TestAnExporterOfItsOwnWritesTheRecord(t *testing.T) {
	for _, c := range []struct {
		event string
		size  int64
		kind  int
	}{{"FAT32", 40 << 20, 32}, {"FAT16", 6 << 20, 16}, {"FAT12", 3 << 20, 12}} {
		t.Run(c.event, func(t *testing.T) {
			t.Parallel()
			a := pairedBox(t)
			image := filepath.Join(t.TempDir(), "stick.img")
			disk := sticktest.Partitioned(0x0c, sticktest.Format(t, c.size, "HOLIDAY"))
			if err := os.WriteFile(image, disk, 0o600); err != nil {
				t.Fatal(err)
			}
			hold := a.guarded(t)
			a.exporter(t, image)
			copied := a.await(t, image, c.kind, hold)
			report, err := audit.Verify(t.Context(), copied, audit.VerifyOptions{AllSeals: true})
			if err != nil || report.Status != audit.Intact {
				t.Fatalf("%v, %v", report.Problem, err)
			}
			for line := range strings.Lines(string(copied["SHA256SUMS"].Data)) {
				sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
				if f := copied[name]; f == nil || fmt.Sprintf("%x", sha256.Sum256(f.Data)) != sum {
					t.Errorf("%s is not what its sum says", name)
				}
			}
			if report.Kinds[audit.KindAdmin] < 1 {
				t.Error("the copy does not hold the press that allowed it")
			}
		})
	}
}

// guarded runs a guard, and returns what holds both buttons.
func (a *around) guarded(t *testing.T) (hold func()) {
	t.Helper()
	clk, me := clock.System(), uint32(os.Getuid())
	reg, err := box.Registry(a.config)
	if err != nil {
		t.Fatal(err)
	}
	gateway, err := ipc.Listen(a.sockets.Guard)
	if err != nil {
		t.Fatal(err)
	}
	slot, err := ipc.Listen(a.sockets.Export)
	if err != nil {
		t.Fatal(err)
	}
	buttons := devicetest.NewButtons(clk)
	ctx, stop := context.WithCancel(context.Background())
	done, ready := make(chan error, 1), make(chan struct{})
	go func() {
		done <- guard.Run(ctx, guard.Options{
			Config: a.config, Clock: clk, BootID: [16]byte{1}, Display: devicetest.NewPanel(clk), Buttons: buttons, Timings: brisk(), Registry: reg,
			Gateway: gateway, GatewayUID: me, Courier: a.sockets.Courier, CourierUID: me, Exporter: slot, ExporterUID: me,
			GrantKeyFile: a.sockets.GrantKey, StateDir: box.StateDir(a.config, "guard"), Log: slog.New(slog.DiscardHandler), Ready: func() { close(ready) },
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	<-ready
	return func() {
		for _, b := range []device.Button{device.Approve, device.Deny} {
			buttons.Press(b)
		}
		time.Sleep(400 * time.Millisecond) // a finger takes its time
		for _, b := range []device.Button{device.Approve, device.Deny} {
			buttons.Release(b)
		}
		time.Sleep(300 * time.Millisecond) // and somebody reads what the panel says
	}
}

// exporter starts one.
func (a *around) exporter(t *testing.T, image string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), exporterOf+"="+image, guardIn+"="+filepath.Dir(a.config.Paths.State))
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGKILL)
		cmd.Wait()
	})
}

// await holds both buttons, as somebody does who reads what the panel says, until the record says that it was copied, and
// returns the copy.
func (a *around) await(t *testing.T, image string, kind int, hold func()) fstest.MapFS {
	t.Helper()
	const enough = 60 // times that somebody tries
	for copied, tries := false, 0; !copied; tries++ {
		if tries == enough {
			t.Fatal("no copy was made")
		}
		hold()
		_, err := audit.Verify(t.Context(), a.audit(), audit.VerifyOptions{Visit: func(e audit.Entered) error {
			if x, ok := e.Payload.(*audit.Export); ok {
				if copied = true; !x.OK {
					t.Fatalf("%+v", x)
				}
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	disk, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	table := disk[sticktest.PartitionStart+512*int(disk[sticktest.PartitionStart+14]):]
	if kind == 32 && table[7]&0x08 == 0 || kind == 16 && table[3]&0x80 == 0 {
		t.Error("the volume was not left in order")
	}
	found := fstest.MapFS{}
	for name, content := range sticktest.Files(t, kind, disk[sticktest.PartitionStart:]) {
		if dir, rest, ok := strings.Cut(name, "/"); ok && strings.HasPrefix(dir, "AUDIT-") && dir != "AUDIT-unfinished" {
			found[rest] = &fstest.MapFile{Data: content}
		}
	}
	return found
}
