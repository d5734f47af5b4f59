package courier_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/appliance/courier"
	"assent.home.arpa/appliance/courier/loopback"
	"assent.home.arpa/appliance/grant"
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
)

// rig is a courier with a guard at one side and workers at the other.
type rig struct {
	t         *testing.T
	clock     clock.Clock
	hand      *clocktest.Clock // the same, where a test moves it
	key       ed25519.PrivateKey
	socket    string
	guard     *ipc.Client
	challenge [32]byte
	resolver  *resolver
	options   courier.Options
}

// start runs a courier. Workers of every class behave as work says.
func start(t *testing.T, work func(job), change func(*courier.Options)) *rig {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	keyFile := filepath.Join(dir, "grant.pub")
	if err := os.WriteFile(keyFile, public, 0o644); err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, hand: clocktest.New(), key: private, socket: filepath.Join(dir, "courier.sock"), resolver: &resolver{}}
	l, err := ipc.Listen(r.socket)
	if err != nil {
		t.Fatal(err)
	}
	r.options = courier.Options{
		Guard: l, GuardUID: uint32(os.Getuid()), GrantKeyFile: keyFile, Clock: r.hand, BootID: [16]byte{1, 2, 3},
		Addresses: loopback.Policy{House: courier.NewHousePolicy()}, Resolver: r.resolver, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	if work != nil {
		socket := workers(t, work)
		r.options.Workers = map[capabilities.Class]string{
			capabilities.ClassNone: socket, capabilities.ClassFiles: socket, capabilities.ClassLocal: socket, capabilities.ClassNet: socket,
		}
	}
	if change != nil {
		change(&r.options)
	}
	r.clock = r.options.Clock
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- courier.Run(ctx, r.options) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the courier ended with %v", err)
		}
	})
	r.guard, r.challenge = r.connect()
	return r
}

// connect opens another connection as the guard.
func (r *rig) connect() (*ipc.Client, [32]byte) {
	r.t.Helper()
	conn, err := net.Dial("unix", r.socket)
	if err != nil {
		r.t.Fatal(err)
	}
	challenges := make(chan [32]byte, 1)
	client := ipc.NewClient(ipc.NewConn(conn), func(m ipc.Message) {
		if c, ok := m.(*ipc.Challenge); ok {
			challenges <- c.Nonce
		}
	})
	r.t.Cleanup(func() { client.Close() })
	select {
	case c := <-challenges:
		return client, c
	case <-client.Done():
		r.t.Fatal("the courier hung up")
	}
	return nil, [32]byte{}
}

// claims is a call that the guard would allow: to the machine itself, by an approval.
func (r *rig) claims(change func(*grant.Claims)) grant.Claims {
	args := []byte(`{"query":"tea"}`)
	c := grant.Claims{
		Capability: "web.search", Version: 1, Revision: "echo/1", Class: capabilities.ClassNet, Args: args, ArgsDigest: sha256.Sum256(args),
		Request: &capabilities.Request{Scheme: "http", Host: "127.0.0.1", Port: 9, Address: capabilities.AddressLoopback, Bytes: []byte("GET / HTTP/1.1\r\n\r\n")},
		Receipt: [32]byte{9}, Intent: 7, Challenge: r.challenge, BootID: r.options.BootID, Deadline: r.clock.Boot() + 30*time.Second, Body: 1000,
	}
	rand.Read(c.Inv[:])
	if change != nil {
		change(&c)
	}
	return c
}

// automatic turns a call into one that needs no approval and sends nothing.
func automatic(c *grant.Claims) {
	c.Capability, c.Class, c.Request, c.Receipt = "system.health", capabilities.ClassNone, nil, [32]byte{}
}

func (r *rig) sign(c grant.Claims) []byte {
	r.t.Helper()
	b, err := grant.Sign(r.key, c)
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

// execute spends a grant and waits for the answer.
func (r *rig) execute(signed []byte) (*ipc.Result, *ipc.Error) {
	r.t.Helper()
	m, err := r.guard.Call(r.t.Context(), &ipc.Execute{Grant: signed}, nil)
	var refused *ipc.Error
	if errors.As(err, &refused) {
		return nil, refused
	}
	result, ok := m.(*ipc.Result)
	if err != nil || !ok {
		r.t.Fatalf("answer %v, %v", m, err)
	}
	return result, nil
}

// later spends a grant without waiting.
func (r *rig) later(signed []byte) <-chan *ipc.Result {
	done := make(chan *ipc.Result, 1)
	go func() {
		m, _ := r.guard.Call(context.Background(), &ipc.Execute{Grant: signed}, nil)
		result, _ := m.(*ipc.Result)
		done <- result
	}()
	return done
}

// job is what a worker got.
type job struct {
	claims grant.Claims
	secret []byte
	out    net.Conn // nil without a descriptor
	conn   *net.UnixConn
	id     uint64
}

func (j job) reply(m ipc.Message) { ipc.NewConn(j.conn).Send(j.id, m) }

// stopped waits until the courier closes its half of the connection.
func (j job) stopped() { j.conn.Read(make([]byte, 1)) }

// workers listens as systemd would and gives each job to work, in a goroutine.
func workers(t *testing.T, work func(job)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "worker.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.AcceptUnix()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				id, m, file, err := ipc.NewConn(conn).ReceiveFile()
				if err != nil {
					return
				}
				j := job{conn: conn, id: id}
				if file != nil {
					j.out, _ = net.FileConn(file)
					file.Close()
					defer j.out.Close()
				}
				sent := m.(*ipc.Job)
				j.secret = sent.Secret
				if j.claims, err = grant.Decode(sent.Claims); err != nil {
					t.Errorf("the worker got %v", err)
				}
				work(j)
			}()
		}
	}()
	return path
}

// done answers every job well.
func done(j job) {
	j.reply(&ipc.JobResult{Status: capabilities.Done, Sent: j.out != nil, Body: []byte("{}")})
}

// resolver answers as a test says and counts.
type resolver struct {
	addrs []string
	err   error
	asked atomic.Int32
}

func (r *resolver) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	r.asked.Add(1)
	if host != "example.org." {
		return nil, errors.New("no such name")
	}
	var out []netip.Addr
	for _, a := range r.addrs {
		out = append(out, netip.MustParseAddr(a))
	}
	return out, r.err
}

// listen is somewhere to connect to on this machine. Connections wait in the channel.
func listen(t *testing.T, multipath bool) (port uint16, accepted <-chan *net.TCPConn) {
	t.Helper()
	var lc net.ListenConfig
	lc.SetMultipathTCP(multipath)
	l, err := lc.Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	conns := make(chan *net.TCPConn, 16)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns <- c.(*net.TCPConn)
		}
	}()
	return uint16(l.Addr().(*net.TCPAddr).Port), conns
}

func to(port uint16) func(*grant.Claims) { return func(c *grant.Claims) { c.Request.Port = port } }
