package main

import (
	"bufio"
	"bytes"
	"fmt"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"assent.home.arpa/appliance/audit/story"
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

// pngScale is how many pixels a dot of the panel gets in a file.
const pngScale = 4

// pictures says where the panel's pages are shown.
type pictures struct {
	always bool
	dir    string
}

func (p *pictures) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&p.always, "picture", false, "draw what the panel showed, terminal or not (it takes 128 columns)")
	cmd.Flags().StringVar(&p.dir, "png", "", "write what the panel showed as PNG files into this directory")
}

// draw draws the pages with half blocks: two rows of the panel in a row of text.
func (p *pictures) draw(out io.Writer, pages *story.Pages) {
	if f, ok := out.(*os.File); !p.always && (!ok || !term.IsTerminal(int(f.Fd()))) {
		return
	}
	w := bufio.NewWriter(out)
	defer w.Flush()
	edge := strings.Repeat("─", device.Width)
	for i, page := range pages.Frames {
		f, ok := frame(page)
		if !ok {
			continue
		}
		fmt.Fprintf(w, "┌%s┐ page %d of %d\n", edge, i+1, pages.Count)
		for y := 0; y < device.Height; y += 2 {
			w.WriteString("│")
			for x := range device.Width {
				w.WriteString(halves(f.At(x, y), f.At(x, y+1)))
			}
			w.WriteString("│\n")
		}
		fmt.Fprintf(w, "└%s┘\n", edge)
	}
}

func halves(upper, lower bool) string {
	switch {
	case upper && lower:
		return "█"
	case upper:
		return "▀"
	case lower:
		return "▄"
	}
	return " "
}

func frame(page []byte) (f device.Frame, ok bool) {
	return f, len(page) == copy(f[:], page) && len(page) == len(f)
}

// write writes the story's pages as files, named after it. It overwrites nothing.
func (p *pictures) write(s *story.Story) error {
	if p.dir == "" {
		return nil
	}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	n := 0
	for _, step := range s.Steps {
		if step.Pages == nil {
			continue
		}
		for _, page := range step.Pages.Frames {
			f, ok := frame(page)
			if !ok {
				continue
			}
			n++
			if err := writePNG(filepath.Join(p.dir, fmt.Sprintf("%s-page-%d.png", strings.TrimPrefix(s.ID, "#"), n)), f); err != nil {
				return err
			}
		}
	}
	return nil
}

func writePNG(path string, f device.Frame) error {
	var b bytes.Buffer
	if err := png.Encode(&b, screen.Image(f, pngScale)); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if _, err := file.Write(b.Bytes()); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}
