package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/term"

	"assent.home.arpa/cmd/assentsim/internal/panel"
)

func runBox(ctx context.Context, c console, args []string) error {
	f := newFlags("run", c)
	p := plan{errLog: c.err}
	f.StringVar(&p.state, "state", stateDir(), "`directory` for audit, pairings, conversations and logs")
	f.StringVar(&p.listen, "listen", "127.0.0.1:8480", "`address` of the phone page; off loopback it is served over https")
	f.StringVar(&p.panel, "panel", "127.0.0.1:8481", "loopback `address` of the drawn panel")
	f.StringVar(&p.model, "model", os.Getenv("MODEL"), "model id or `path` of a .gguf file (default: $MODEL, else the manifest's)")
	f.StringVar(&p.search, "search", "auto", "where searches go: auto, wikipedia, practice, or the `address` of a SearXNG")
	f.BoolVar(&p.recite, "scripted", false, "use the scripted test model")
	f.StringVar(&p.file, "config", "", "settings `file` to try, as for a box (large, dwell, slow, rotate, contrast, …); where phones connect, which model\nand where searches go are said by the other flags")
	terminal := f.Bool("terminal", false, "draw the panel in this terminal as well")
	if err := parse(f, args); err != nil {
		return err
	}
	if !isLoopback(p.panel) {
		return usageError(fmt.Sprintf("-panel %s: who reaches the drawn panel can press its buttons; use 127.0.0.1 or [::1]", p.panel))
	}
	if *terminal && !term.IsTerminal(int(c.in.Fd())) {
		return usageError("-terminal needs a terminal; without it the panel is drawn in a browser")
	}
	s, err := start(ctx, c.out, p)
	if err != nil {
		return err
	}
	defer s.stop()
	fmt.Fprintf(c.out, "\nphone page:  %s\npanel:       %s\n\n", s.address, s.panel)
	fmt.Fprintln(c.out, "Open both. To pair the phone page, hold both buttons of the panel for 3 seconds and type the code that it shows.")
	if s.model.scripted {
		fmt.Fprintln(c.out, "The model is a TEST SCRIPT, not a language model.")
	}
	if s.search.fixture != "" {
		fmt.Fprintln(c.out, s.search.fixture)
	}
	status, err := s.status(ctx)
	if err != nil {
		return err
	}
	tellRecord(c.out, auditDir(s), status)
	fmt.Fprintln(c.out, "Control-C ends it.")
	if *terminal {
		return onTerminal(ctx, c, s.glass)
	}
	<-ctx.Done()
	return nil
}

func onTerminal(ctx context.Context, c console, g *panel.Glass) error {
	fd := int(c.in.Fd())
	was, err := term.MakeRaw(fd)
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	defer term.Restore(fd, was)
	return panel.Terminal(ctx, g, c.in, c.out)
}

// stateDir is where a simulated box lives between runs (XDG base directory specification).
func stateDir() string {
	if d := os.Getenv("XDG_STATE_HOME"); d != "" {
		return filepath.Join(d, "assentsim")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return filepath.Join(os.TempDir(), "assentsim-state")
	}
	return filepath.Join(home, ".local", "state", "assentsim")
}

func auditDir(s *sim) string { return filepath.Join(s.config.Paths.State, "guard", "audit") }
