package panel_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/appliance/config"
	"assent.home.arpa/cmd/assentsim/internal/panel"
	"assent.home.arpa/confirm/screen/screentest"
	"assent.home.arpa/device"
)

// parts is the display that a box comes with.
func parts() config.Panel { return config.Default().Panel }

func connect(t *testing.T) (*panel.Glass, *panel.Device, *clocktest.Clock) {
	t.Helper()
	return connectTo(t, parts())
}

func connectTo(t *testing.T, p config.Panel) (*panel.Glass, *panel.Device, *clocktest.Clock) {
	t.Helper()
	c := clocktest.New()
	g := panel.NewGlass(c, p)
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "p"))
	if err != nil {
		t.Fatal(err)
	}
	go g.Serve(l)
	d, err := panel.Dial(l.Addr().String(), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close(); l.Close() })
	return g, d, c
}

func TestWhatIsDrawnIsWhatTheGlassShows(t *testing.T) {
	g, d, _ := connect(t)
	var f device.Frame
	f.Set(5, 60, true)
	if err := errors.Join(d.Draw(&f), d.Show(device.Alarm)); err != nil {
		t.Fatal(err)
	}
	if v := g.View(); v.Frame != f || v.Contrast != 127 || v.Signal != device.Alarm || v.Lost {
		t.Fatalf("the glass shows %+v", v)
	}
	text := panel.Text(g.View())
	if lines := strings.Split(text, "\n"); lines[30] != strings.Repeat(" ", 5)+"▀"+strings.Repeat(" ", 122) || !strings.Contains(text, "ALARM") {
		t.Fatalf("the terminal shows %q", lines[30])
	}
	if err := d.Dim(true); err != nil {
		t.Fatal(err)
	}
	if v := g.View(); v.Contrast >= 127/2 || v.Frame != f {
		t.Fatalf("dim, the glass shows %+v", v)
	}
}

// TestEveryScreenComesThroughTheRealDriver draws all screens one after the other, so that most are partial updates of the one
// before, on each display that the box may have, either way up.
func TestEveryScreenComesThroughTheRealDriver(t *testing.T) {
	screens, err := screentest.Gallery()
	if err != nil {
		t.Fatal(err)
	}
	for _, display := range []string{"ssd1306", "sh1106"} {
		for _, rotate := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, rotated %v", display, rotate), func(t *testing.T) {
				p := parts()
				p.Display, p.Rotate = display, rotate
				g, d, _ := connectTo(t, p)
				if g.View().Frame != (device.Frame{}) {
					t.Fatal("the glass shows something before the driver has begun")
				}
				for _, s := range screens {
					if err := d.Draw(&s.Frame); err != nil {
						t.Fatalf("%s: %v", s.Name, err)
					}
					if g.View().Frame != s.Frame {
						t.Fatalf("%s is something else on the glass", s.Name)
					}
				}
			})
		}
	}
}

// TestModuleMountedTheOtherWay is what the configuration's rotate is for: without it the picture stands on its head.
func TestModuleMountedTheOtherWay(t *testing.T) {
	mounted, told := parts(), parts()
	mounted.Rotate = true
	g := panel.NewGlass(clocktest.New(), mounted)
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "p"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go g.Serve(l)
	d, err := panel.Dial(l.Addr().String(), told)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var f device.Frame
	f.Set(5, 60, true)
	if err := d.Draw(&f); err != nil {
		t.Fatal(err)
	}
	if v := g.View(); !v.Frame.At(device.Width-1-5, device.Height-1-60) {
		t.Fatal("the picture is upright")
	}
}

func TestWrongControllerIsNoPanel(t *testing.T) {
	p := parts()
	p.Display = "hdmi"
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "p"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := panel.Dial(l.Addr().String(), p); err == nil || !strings.Contains(err.Error(), "ssd1306 or sh1106") {
		t.Fatalf("got %v", err)
	}
}

func TestEdgesCarryTheTimeOfTheFinger(t *testing.T) {
	g, d, c := connect(t)
	if err := d.Draw(new(device.Frame)); err != nil { // the panel is attached
		t.Fatal(err)
	}
	pressed := c.Mono()
	g.Move(device.Approve, device.Press)
	g.Move(device.Approve, device.Press) // already down: no edge
	c.Advance(time.Second)
	if down, err := d.Down(device.Approve); err != nil || !down {
		t.Fatalf("down: %v, %v", down, err)
	}
	g.Move(device.Approve, device.Release)
	want := []device.Event{
		{Button: device.Approve, Edge: device.Press, Seq: 1, Mono: pressed},
		{Button: device.Approve, Edge: device.Release, Seq: 2, Mono: pressed + time.Second},
	}
	for _, w := range want {
		if got := <-d.Events(); got != w {
			t.Fatalf("got %+v, want %+v", got, w)
		}
	}
	if _, err := d.Down(3); !errors.Is(err, device.ErrNoButton) {
		t.Fatalf("a third button: %v", err)
	}
}

func TestLostPanelIsABusError(t *testing.T) {
	g, d, _ := connect(t)
	if err := d.Draw(new(device.Frame)); err != nil {
		t.Fatal(err)
	}
	changes, stop := g.Watch()
	defer stop()
	d.Close()
	if err := d.Draw(new(device.Frame)); !errors.Is(err, device.ErrBus) {
		t.Fatalf("draw: %v", err)
	}
	if _, ok := <-d.Events(); ok || d.Err() == nil {
		t.Fatal("the button lines look alive")
	}
	for !g.View().Lost {
		<-changes
	}
}

func TestOnlyTheOpenerOfTheKeyedPageHasFingers(t *testing.T) {
	g, d, _ := connect(t)
	if err := d.Draw(new(device.Frame)); err != nil {
		t.Fatal(err)
	}
	p := panel.NewPage(g, slot{})
	srv := httptest.NewServer(p.Handler())
	defer srv.Close()
	_, key, _ := strings.Cut(p.Address(srv.Listener.Addr()), "#")
	post := func(key, host, body string) int {
		req, err := http.NewRequest("POST", srv.URL+"/edge?key="+key, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if host != "" {
			req.Host = host
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	const press = `{"button":1,"edge":1}`
	for _, tc := range []struct {
		name, key, host, body string
		want                  int
	}{
		{"no key", "", "", press, 403},
		{"wrong key", "AAAA", "", press, 403},
		{"another name (DNS rebinding)", key, "evil.example:80", press, 403},
		{"no edge", key, "", `{"button":1,"edge":3}`, 400},
		{"no json", key, "", "press", 400},
	} {
		if got := post(tc.key, tc.host, tc.body); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
	if down, err := d.Down(device.Approve); err != nil || down {
		t.Fatalf("a refused request pressed the button (%v)", err)
	}
	if got := post(key, "", press); got != http.StatusNoContent {
		t.Fatalf("the right request: %d", got)
	}
	if down, err := d.Down(device.Approve); err != nil || !down {
		t.Fatalf("nothing was pressed (%v)", err)
	}
}

func TestClosedPageLetsGoOfTheButtons(t *testing.T) {
	g, d, _ := connect(t)
	if err := d.Draw(new(device.Frame)); err != nil {
		t.Fatal(err)
	}
	p := panel.NewPage(g, slot{})
	srv := httptest.NewServer(p.Handler())
	defer srv.Close()
	_, key, _ := strings.Cut(p.Address(srv.Listener.Addr()), "#")
	resp, err := http.Get(srv.URL + "/view?key=" + key)
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || !strings.HasPrefix(line, "data: {") {
		t.Fatalf("%q, %v", line, err)
	}
	g.Move(device.Approve, device.Press)
	<-d.Events()
	resp.Body.Close()
	if ev := <-d.Events(); ev.Edge != device.Release {
		t.Fatalf("got %+v", ev)
	}
}

func TestTerminalKeysAreFingers(t *testing.T) {
	g, d, _ := connect(t)
	if err := d.Draw(new(device.Frame)); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := panel.Terminal(t.Context(), g, strings.NewReader("aq"), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []device.Edge{device.Press, device.Release} {
		if ev := <-d.Events(); ev.Button != device.Approve || ev.Edge != want {
			t.Fatalf("got %+v", ev)
		}
	}
	if !strings.Contains(out.String(), panel.Help) {
		t.Fatal("the terminal does not say which keys there are")
	}
}

// slot is one that takes no stick.
type slot struct{}

func (slot) Insert() (string, error) { return "/state/stick.img", nil }
func (slot) Pull()                   {}
