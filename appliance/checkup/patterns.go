package checkup

import (
	"assent.home.arpa/confirm/screen"
	"assent.home.arpa/device"
)

// pattern is a picture with what to look for.
type pattern struct {
	frame           device.Frame
	question, wrong string
}

func patterns() []pattern {
	return []pattern{
		{
			fill(func(int, int) bool { return true }), "is every pixel lit?",
			"dark pixels can hide part of a text; replace the display",
		},
		{
			fill(func(x, y int) bool { return (x+y)%2 == 0 }), "is it an even grey, without lines?",
			"check the supply; a module with another controller needs another panel.display",
		},
		{
			orientation(), "is there a whole frame at the four edges, and can you read TOP?",
			"upside down: change panel.rotate; shifted by two columns or with noise at an edge: change panel.display",
		},
		{
			screen.DrawNotice("READ ME", "small: 0O 1lI B8", "rn m, . : ;"), "can you read all three rows from where you will stand?",
			"see panel.large, panel.contrast and panel.slow in the configuration",
		},
	}
}

func fill(lit func(x, y int) bool) device.Frame {
	var f device.Frame
	for y := range device.Height {
		for x := range device.Width {
			f.Set(x, y, lit(x, y))
		}
	}
	return f
}

// orientation is a frame of one pixel at the very edges, around a word that stands on its head if the picture does.
func orientation() device.Frame {
	f := screen.DrawNotice("TOP")
	for x := range device.Width {
		f.Set(x, 0, true)
		f.Set(x, device.Height-1, true)
	}
	for y := range device.Height {
		f.Set(0, y, true)
		f.Set(device.Width-1, y, true)
	}
	return f
}
