package courier_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/courier"
	"assent.home.arpa/appliance/grant"
	"assent.home.arpa/appliance/worker"
	"assent.home.arpa/appliance/worker/spawn"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/health"
	"assent.home.arpa/capabilities/websearch"
	"assent.home.arpa/capabilities/websearch/websearchtest"
)

// workerClass makes this test's own program a worker, so that workers are real processes.
const workerClass = "ASSENT_TEST_WORKER_CLASS"

func TestMain(m *testing.M) {
	var class capabilities.Class
	if _, err := fmt.Sscan(os.Getenv(workerClass), &class); err != nil {
		os.Exit(m.Run())
	}
	if err := runWorker(class); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runWorker(class capabilities.Class) error {
	conn, err := net.FileConn(os.Stdin)
	if err != nil {
		return err
	}
	o := worker.Options{
		Class: class, CourierUID: uint32(os.Getuid()), Clock: clock.System(), Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Handlers: []capabilities.Handler{websearch.MediaWikiHandler(time.Now)},
	}
	if class == capabilities.ClassNone {
		o.Handlers = []capabilities.Handler{health.Handler{Root: os.DirFS("/"), State: "/"}}
		o.Read = []string{"/proc", "/sys"}
	}
	return worker.Run(context.Background(), conn.(*net.UnixConn), o)
}

// startBox runs a courier with worker processes, on the kernel's clock.
func startBox(t *testing.T, environment ...string) *rig {
	t.Helper()
	sockets := map[capabilities.Class]string{}
	for _, class := range []capabilities.Class{capabilities.ClassNone, capabilities.ClassNet} {
		path := filepath.Join(t.TempDir(), class.String())
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		sockets[class] = path
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() {
			ended <- spawn.Serve(ctx, l, func(ctx context.Context) *exec.Cmd {
				cmd := exec.CommandContext(ctx, "/proc/self/exe")
				cmd.Env = append(os.Environ(), append(environment, fmt.Sprintf("%s=%d", workerClass, class))...)
				cmd.Stderr = t.Output()
				return cmd
			})
		}()
		t.Cleanup(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
	return start(t, nil, func(o *courier.Options) { o.Workers, o.Clock = sockets, clock.System() })
}

// search plans a call as the guard would and returns its claims.
func (r *rig) search(base, query string) grant.Claims {
	r.t.Helper()
	adapter, err := websearch.MediaWiki(base+"/w/api.php", "Wikipedia")
	if err != nil {
		r.t.Fatal(err)
	}
	raw, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		r.t.Fatal(err)
	}
	p, err := adapter.Plan(raw)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.claims(func(c *grant.Claims) {
		c.Revision, c.Args, c.ArgsDigest, c.Request, c.Body = adapter.Spec().Revision, p.Args, sha256.Sum256(p.Args), p.Request, adapter.Spec().Bounds.Body
	})
}

// W1, W6 and A29, through all processes: the approved search is asked for, word for word, and cited.
func TestSearchThroughTheBox(t *testing.T) {
	site := websearchtest.New()
	plain, secure := httptest.NewServer(site), httptest.NewTLSServer(site)
	defer plain.Close()
	defer secure.Close()
	roots := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o644); err != nil {
		t.Fatal(err)
	}
	r := startBox(t, "SSL_CERT_FILE="+roots, "SSL_CERT_DIR="+t.TempDir())
	for event, base := range map[string]string{"in the clear": plain.URL, "over TLS": secure.URL} {
		query := "how tall is the Eiffel tower, " + event + "?"
		claims := r.search(base, query)
		result, refused := r.execute(r.sign(claims))
		if refused != nil {
			t.Errorf("%s: %v", event, refused)
			continue
		}
		var body struct {
			Citations []struct{ Title, URL, Content string }
		}
		if err := json.Unmarshal(result.Body, &body); err != nil || len(body.Citations) == 0 || body.Citations[0].URL != base+"/wiki/Eiffel_Tower" {
			t.Errorf("%s: %+v: %s", event, result, result.Body)
			continue
		}
		e := result.Envelope
		if result.Status != capabilities.Done || !result.Sent || result.Inv != claims.Inv || result.Duration <= 0 {
			t.Errorf("%s: %+v", event, result)
		}
		if e.RequestDigest != claims.Request.Digest() || e.BodyDigest != sha256.Sum256(result.Body) || e.HTTPStatus != 200 || int(e.Items) != len(body.Citations) || e.Retrieved == 0 || e.AnswerDigest == [32]byte{} {
			t.Errorf("%s: envelope %+v", event, e)
		}
		if asked := site.Searches(); asked[len(asked)-1] != query {
			t.Errorf("%s: the engine was asked %q", event, asked[len(asked)-1])
		}
	}
}

func TestStrangersCertificateIsRefused(t *testing.T) {
	site := websearchtest.New()
	secure := httptest.NewTLSServer(site)
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	defer secure.Close()
	none := t.TempDir()
	r := startBox(t, "SSL_CERT_FILE="+filepath.Join(none, "nothing"), "SSL_CERT_DIR="+none)
	result, refused := r.execute(r.sign(r.search(secure.URL, "tea")))
	if refused != nil || result.Status != capabilities.Failed || result.Code != capabilities.CodeUnreachable || result.Sent {
		t.Errorf("%+v, %v", result, refused)
	}
	if asked := site.Searches(); len(asked) > 0 {
		t.Errorf("it was asked %q", asked)
	}
}

func TestHealthThroughTheBox(t *testing.T) {
	r := startBox(t)
	result, refused := r.execute(r.sign(r.claims(func(c *grant.Claims) {
		automatic(c)
		c.Revision, c.Args, c.ArgsDigest = health.Revision, []byte("{}"), sha256.Sum256([]byte("{}"))
	})))
	if refused != nil {
		t.Fatal(refused)
	}
	var body map[string]any
	if err := json.Unmarshal(result.Body, &body); err != nil || result.Status != capabilities.Done || result.Sent {
		t.Fatalf("%+v, %v", result, err)
	}
	for _, k := range []string{"uptime_seconds", "load_1_min", "memory_available_mib", "disk_free_mib"} {
		if _, ok := body[k]; !ok {
			t.Errorf("%s is missing: the sandbox is too tight", k)
		}
	}
}

// C22: a search without an answer has failed, since it has no effect that could be in doubt. The worker says so before the
// courier loses patience, which would be unknown.
func TestSearchWithoutAnAnswerFails(t *testing.T) {
	site := websearchtest.New()
	site.Set(websearchtest.Silent)
	server := httptest.NewServer(site)
	defer server.Close()
	r := startBox(t)
	late := r.search(server.URL, "tea")
	late.Deadline = r.clock.Boot() + 2*time.Second
	result, refused := r.execute(r.sign(late))
	if refused != nil || result.Status != capabilities.Failed || result.Code != capabilities.CodeTimeout || !result.Sent {
		t.Errorf("late: %+v, %v", result, refused)
	}
}
