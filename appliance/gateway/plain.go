package gateway

import (
	"context"
	_ "embed"
	"errors"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"assent.home.arpa/appliance/web"
)

//go:embed plain.html
var plainPage string

// servePlain tells phones that were not told https where to go, until ctx ends. It is a page and not a redirect, since what
// comes next is a browser's warning. Nothing else is said without TLS: no certificate, no name of the household's.
func servePlain(ctx context.Context, l net.Listener, hosts []string, log *slog.Logger) error {
	page, err := template.New("plain").Parse(plainPage)
	if err != nil {
		panic("gateway: internal error: " + err.Error())
	}
	h := &http.Server{
		Handler:           plainHandler(page, hosts),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       10 * time.Second,
		MaxHeaderBytes:    8 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	defer context.AfterFunc(ctx, func() { h.Close() })()
	if err := h.Serve(limit(l)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func plainHandler(page *template.Template, hosts []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		web.Protect(w.Header())
		w.Header().Set("Cache-Control", "no-store")
		switch {
		case !namesBox(r, hosts):
			http.Error(w, notThisBox, http.StatusForbidden)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			http.Error(w, "this box speaks https only", http.StatusMethodNotAllowed)
		default:
			host := r.Host
			if h, _, err := net.SplitHostPort(host); err == nil {
				host = h
				if strings.Contains(h, ":") {
					host = "[" + h + "]"
				}
			}
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			page.Execute(w, "https://"+host+"/") // a phone that hangs up has no page
		}
	})
}
