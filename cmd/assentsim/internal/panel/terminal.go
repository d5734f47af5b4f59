package panel

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"assent.home.arpa/device"
)

// Help says which keys work the panel in a terminal.
const Help = "a tap approve · A hold approve · d deny · b hold both (pair) · P panic · q quit"

// Terminal draws the panel in a terminal, two rows of pixels a line, and turns keys into fingers: terminals report no key
// release, so a capital letter stands for a hold. keys must be in raw mode. It returns when ctx ends or q is typed.
func Terminal(ctx context.Context, g *Glass, keys io.Reader, out io.Writer) error {
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	go func() {
		defer quit()
		work(ctx, g, keys)
	}()
	changes, stop := g.Watch()
	defer stop()
	if _, err := io.WriteString(out, "\x1b[?25l\x1b[2J"); err != nil {
		return err
	}
	defer io.WriteString(out, "\x1b[?25h\r\n")
	for {
		if _, err := io.WriteString(out, "\x1b[H"+strings.ReplaceAll(Text(g.View()), "\n", "\r\n")+Help+"\x1b[K\r\n"); err != nil {
			return err
		}
		select {
		case <-changes:
		case <-ctx.Done():
			return nil
		}
	}
}

func work(ctx context.Context, g *Glass, keys io.Reader) {
	key := make([]byte, 1)
	for ctx.Err() == nil {
		if _, err := keys.Read(key); err != nil {
			return
		}
		switch key[0] {
		case 'a':
			g.Tap(device.Approve)
		case 'A':
			g.Hold(1700*time.Millisecond, device.Approve)
		case 'd':
			g.Tap(device.Deny)
		case 'b':
			g.Hold(3300*time.Millisecond, device.Approve, device.Deny)
		case 'P':
			g.Hold(5300*time.Millisecond, device.Deny)
		case 'q', 3: // 3: control-C in raw mode
			return
		}
	}
}

// Text draws the panel with block characters, 128 columns by 32 lines and a line of state.
func Text(v View) string {
	blocks := [...]string{" ", "▀", "▄", "█"}
	var s strings.Builder
	for y := 0; y < device.Height; y += 2 {
		for x := range device.Width {
			i := 0
			if v.Frame.At(x, y) {
				i |= 1
			}
			if v.Frame.At(x, y+1) {
				i |= 2
			}
			s.WriteString(blocks[i])
		}
		s.WriteByte('\n')
	}
	lamps := [...]string{"", "waiting", "holding", "ALARM"}
	lamp := ""
	if int(v.Signal) < len(lamps) {
		lamp = lamps[v.Signal]
	}
	if v.Lost {
		lamp = "the guard is not running"
	}
	fmt.Fprintf(&s, "lamp: %-24s\n", lamp)
	return s.String()
}
