package screen

import (
	"image"
	"image/color"

	"assent.home.arpa/device"
)

// Image is the frame as a picture for people and tools, each pixel scale×scale large, lit on dark like the panel.
func Image(f device.Frame, scale int) image.Image {
	scale = max(scale, 1)
	palette := color.Palette{color.RGBA{R: 0x10, G: 0x10, B: 0x10, A: 0xFF}, color.RGBA{R: 0xD8, G: 0xF0, B: 0xFF, A: 0xFF}}
	m := image.NewPaletted(image.Rect(0, 0, device.Width*scale, device.Height*scale), palette)
	for y := range device.Height * scale {
		for x := range device.Width * scale {
			if f.At(x/scale, y/scale) {
				m.SetColorIndex(x, y, 1)
			}
		}
	}
	return m
}
