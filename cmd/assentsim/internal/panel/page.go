package panel

import (
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"assent.home.arpa/device"
)

//go:embed page
var assets embed.FS

// keepAlive is how often an idle stream is written to, so that a page that went away is noticed.
const keepAlive = 5 * time.Second

// Page serves the panel to a browser on this machine. Whoever can reach it can press the buttons, so every request needs
// the key that is in the address which assentsim prints, and a Host of loopback.
type Page struct {
	glass   *Glass
	slot    Slot
	key     string
	viewers atomic.Int32
}

// Slot is where a simulated stick goes in.
type Slot interface {
	// Insert returns where the stick is kept on this machine.
	Insert() (image string, err error)
	Pull()
}

// NewPage makes a page with a fresh key.
func NewPage(g *Glass, s Slot) *Page { return &Page{glass: g, slot: s, key: rand.Text()} }

// Address is what to open, given where the page is served.
func (p *Page) Address(listen net.Addr) string { return fmt.Sprintf("http://%s/#%s", listen, p.key) }

// Handler returns the page's routes.
func (p *Page) Handler() http.Handler {
	root, err := fs.Sub(assets, "page")
	if err != nil {
		panic("panel: internal error: " + err.Error())
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(root))
	mux.HandleFunc("GET /view", p.keyed(p.view))
	mux.HandleFunc("POST /edge", p.keyed(p.edge))
	mux.HandleFunc("POST /stick", p.keyed(p.stick))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		ip := net.ParseIP(host)
		if err != nil || (host != "localhost" && (ip == nil || !ip.IsLoopback())) {
			http.Error(w, "the panel is only for this machine", http.StatusForbidden)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	})
}

func (p *Page) keyed(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.URL.Query().Get("key")), []byte(p.key)) != 1 {
			http.Error(w, "open the address that assentsim printed, with its key", http.StatusForbidden)
			return
		}
		next(w, r)
	}
}

// view streams what the panel shows, as server-sent events.
func (p *Page) view(w http.ResponseWriter, r *http.Request) {
	if p.viewers.Add(1) > 8 {
		p.viewers.Add(-1)
		http.Error(w, "too many pages are open", http.StatusTooManyRequests)
		return
	}
	defer func() {
		if p.viewers.Add(-1) == 0 {
			p.glass.ReleaseAll() // a page that closes takes its fingers with it
		}
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	changes, stop := p.glass.Watch()
	defer stop()
	beat := time.NewTicker(keepAlive)
	defer beat.Stop()
	out := http.NewResponseController(w)
	for {
		v := p.glass.View()
		data, err := json.Marshal(map[string]any{"frame": base64.StdEncoding.EncodeToString(v.Frame[:]), "contrast": v.Contrast, "signal": v.Signal, "lost": v.Lost})
		if err != nil {
			return
		}
		if _, err := fmt.Fprintf(w, "data: %s\n\n", data); err != nil || out.Flush() != nil {
			return
		}
		select {
		case <-changes:
		case <-beat.C:
		case <-r.Context().Done():
			return
		}
	}
}

func (p *Page) edge(w http.ResponseWriter, r *http.Request) {
	var e struct {
		Button device.Button `json:"button"`
		Edge   device.Edge   `json:"edge"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, 256)).Decode(&e); err != nil || (e.Edge != device.Press && e.Edge != device.Release) {
		http.Error(w, "not an edge", http.StatusBadRequest)
		return
	}
	p.glass.Move(e.Button, e.Edge)
	w.WriteHeader(http.StatusNoContent)
}

// stick puts the simulated stick in, or pulls it out, and says where it is kept.
func (p *Page) stick(w http.ResponseWriter, r *http.Request) {
	var move struct {
		In bool `json:"in"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, 64)).Decode(&move); err != nil {
		http.Error(w, "say whether it goes in", http.StatusBadRequest)
		return
	}
	if !move.In {
		p.slot.Pull()
		w.WriteHeader(http.StatusNoContent)
		return
	}
	image, err := p.slot.Insert()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprint(w, image)
}
