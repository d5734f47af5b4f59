package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"
)

func (a *app) newAuditServeCmd() *cobra.Command {
	var flags auditFlags
	var listen string
	var open bool
	cmd := &cobra.Command{
		Use:   "serve PATH",
		Short: "Read a log in a browser on this computer",
		Long: "Check the log in the directory PATH and serve a page about it to browsers on this computer alone, until interrupted.\n" +
			"Reloading the page checks again where the log has changed. Whoever has the printed address can read the log.\n\n" +
			"Exit status: that of assent audit verify for the last check.",
		Example: "  assent audit serve DIR --open",
		Args:    takes("PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := flags.options()
			if err != nil {
				return err
			}
			if err := loopback(listen); err != nil {
				return &exitError{exitWrongCall, err}
			}
			log, err := openLog(args[0])
			if err != nil {
				return err
			}
			v, err := newViewer(log, o)
			if err != nil {
				return err
			}
			defer v.close()
			steps := a.newSteps()
			v.progress = steps.update
			report, err := v.refresh(cmd.Context())
			steps.done()
			if err != nil {
				return err
			}
			return a.serve(cmd.Context(), v, report, listen, open)
		},
	}
	flags.register(cmd)
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "address to listen at; only this computer's own are accepted")
	cmd.Flags().BoolVar(&open, "open", false, "open the page in the browser")
	return cmd
}

// loopback refuses addresses that other machines could reach.
func loopback(listen string) error {
	addr, err := netip.ParseAddrPort(listen)
	if err != nil || !addr.Addr().IsLoopback() || addr.Addr().Zone() != "" {
		return fmt.Errorf("--listen %q: give an address of this computer alone with a port, as in 127.0.0.1:8080 or [::1]:0", listen)
	}
	return nil
}

func (a *app) serve(ctx context.Context, v *viewer, report finding, listen string, open bool) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	url := fmt.Sprintf("http://%s/%s/", l.Addr(), v.secret)
	if a.json {
		a.printJSON(map[string]any{"url": url, "log": verdictOf(report)})
	} else {
		fmt.Fprintf(a.out, "%s\n", url)
		a.printReport(report)
		fmt.Fprintln(a.err, "assent: open that address in a browser on this computer; ^C ends it")
	}
	if open {
		if err := browse(url); err != nil {
			fmt.Fprintf(a.err, "assent: the browser does not open (%v); open the address yourself\n", err)
		}
	}
	server := &http.Server{
		Handler: v.handler(l.Addr().String()), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10, BaseContext: func(net.Listener) context.Context { return ctx },
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	err = server.Close()
	<-ended
	return errors.Join(err, reportError(v.latest()))
}

// browse hands the address to the desktop.
func browse(url string) error {
	cmd := exec.Command("xdg-open", url)
	cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
	if err := cmd.Start(); err != nil {
		return err
	}
	go cmd.Wait() // so that no zombie stays; what the desktop makes of it is the desktop's
	return nil
}

// newSecret is a part of an address that cannot be guessed: other users of this computer can reach loopback too.
func newSecret() string { return rand.Text() }

// workspace makes a directory for the files of the page.
func workspace() (*os.Root, error) {
	dir, err := os.MkdirTemp("", "assent-view-")
	if err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}
