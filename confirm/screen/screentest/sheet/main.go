// Sheet draws every screen of the panel, with its name, on one PNG for people to look at:
//
//	sheet [-scale N] FILE
package main

import (
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"os"

	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/confirm/screen/font"
	"assent.home.arpa/confirm/screen/screentest"
	"assent.home.arpa/device"
)

func main() { os.Exit(run(os.Args[1:], os.Stderr)) }

// across is how many screens stand beside each other, and gap the pixels around each.
const (
	across = 5
	gap    = 12
)

func run(args []string, stderr io.Writer) int {
	flags := flag.NewFlagSet("sheet", flag.ContinueOnError)
	flags.SetOutput(stderr)
	scale := flags.Int("scale", 2, "pixels of the picture for each of the panel's, 1 to 8")
	if err := flags.Parse(args); err != nil {
		return 3
	}
	if flags.NArg() != 1 || *scale < 1 || *scale > 8 {
		fmt.Fprintln(stderr, "usage: sheet [-scale N] FILE")
		return 3
	}
	if err := write(flags.Arg(0), *scale); err != nil {
		fmt.Fprintln(stderr, "sheet:", err)
		return 1
	}
	return 0
}

func write(file string, scale int) error {
	screens, err := screentest.Gallery()
	if err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(png.Encode(f, sheet(screens, scale)), f.Close())
}

// sheet puts the screens in rows, each with its name above it.
func sheet(screens []screentest.Screen, scale int) image.Image {
	w, h := device.Width*scale+gap, device.Height*scale+font.Height+gap
	rows := (len(screens) + across - 1) / across
	m := image.NewRGBA(image.Rect(0, 0, across*w+gap, rows*h+gap))
	draw.Draw(m, m.Bounds(), image.White, image.Point{}, draw.Src)
	for i, s := range screens {
		x, y := gap+i%across*w, gap+i/across*h
		title(m, s.Name, x, y)
		shot := screen.Image(s.Frame, scale)
		draw.Draw(m, shot.Bounds().Add(image.Pt(x, y+font.Height)), shot, image.Point{}, draw.Src)
	}
	return m
}

// title writes a name in the panel's own font.
func title(m *image.RGBA, name string, x, y int) {
	for i, r := range name {
		g, _ := font.Lookup(r)
		for dy, row := range g.Rows {
			for dx := range 8 {
				if row>>(15-dx)&1 == 1 {
					m.Set(x+i*8+dx, y+dy, color.Black)
				}
			}
		}
	}
}
