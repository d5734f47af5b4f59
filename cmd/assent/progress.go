package main

import (
	"fmt"
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"assent.home.arpa/inference/model"
)

// progress shows a download: a bar where somebody watches, a line for each tenth where a log does.
type progress struct {
	out    io.Writer
	title  string
	bar    *progressbar.ProgressBar
	isTerm bool
	tenth  int64
}

func newProgress(out io.Writer, title string) *progress {
	f, ok := out.(*os.File)
	return &progress{out: out, title: title, isTerm: ok && term.IsTerminal(int(f.Fd())), tenth: -1}
}

func (p *progress) update(at model.Progress) {
	if p.isTerm {
		if p.bar == nil {
			total := at.Total
			if total == 0 {
				total = -1
			}
			p.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(p.out), progressbar.OptionShowBytes(true),
				progressbar.OptionSetDescription(p.title), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100e6))
		}
		// A bar that cannot be drawn is no reason to stop a download.
		_ = p.bar.Set64(at.Done)
		return
	}
	if at.Total == 0 {
		return
	}
	if tenth := at.Done * 10 / at.Total; tenth != p.tenth {
		p.tenth = tenth
		fmt.Fprintf(p.out, "%s: %d of %d MB\n", p.title, at.Done>>20, at.Total>>20)
	}
}

func (p *progress) done() {
	if p != nil && p.bar != nil {
		_ = p.bar.Finish()
	}
}
