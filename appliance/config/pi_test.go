package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assent.home.arpa/appliance/config"
)

func TestThePanelOfEachPi(t *testing.T) {
	const (
		three = "GPIO17@3f200000.gpio GPIO27@3f200000.gpio GPIO22@3f200000.gpio GPIO23@3f200000.gpio 3f804000.i2c"
		four  = "GPIO17@fe200000.gpio GPIO27@fe200000.gpio GPIO22@fe200000.gpio GPIO23@fe200000.gpio fe804000.i2c"
		five  = "GPIO17@1f000d0000.pinctrl GPIO27@1f000d0000.pinctrl GPIO22@1f000d0000.pinctrl GPIO23@1f000d0000.pinctrl 1f00074000.i2c"
		other = "assent-approve assent-deny   "
	)
	for _, tc := range []struct{ name, compatible, want string }{
		{"Pi 3 B", "raspberrypi,3-model-b\x00brcm,bcm2837\x00", three},
		{"Pi 3 B+", "raspberrypi,3-model-b-plus\x00brcm,bcm2837\x00", three},
		{"Zero 2 W", "raspberrypi,model-zero-2-w\x00brcm,bcm2837\x00", three},
		{"Pi 4", "raspberrypi,4-model-b\x00brcm,bcm2711\x00", four},
		{"Pi 400", "raspberrypi,400\x00brcm,bcm2711\x00", four},
		{"Pi 5", "raspberrypi,5-model-b\x00brcm,bcm2712\x00", five},
		{"a board with a Pi's processor", "raspberrypi,5-compute-module\x00brcm,bcm2712\x00", other},
		{"an emulator", "linux,dummy-virt\x00", other},
		{"a name that only begins like one", "raspberrypi,4-model-bb\x00", other},
		{"a PC", "", other},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := config.On(tc.compatible)
			if err := c.Validate(); err != nil {
				t.Error(err)
			}
			p := c.Panel
			if got := p.Approve + " " + p.Deny + " " + p.Lamp + " " + p.Buzzer + " " + p.Bus; got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// What the owner's file says holds, and the rest stays as the board has it.
func TestTheOwnersFileComesBeforeTheBoard(t *testing.T) {
	c, err := config.On("raspberrypi,4-model-b\x00brcm,bcm2711\x00").With([]byte("[panel]\ndeny = \"\"\nlamp = \"GPIO5\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := config.On("raspberrypi,4-model-b\x00").Panel
	want.Deny, want.Lamp = "", "GPIO5"
	if diff := cmp.Diff(want, c.Panel); diff != "" {
		t.Error(diff)
	}
}

func TestAFileIsJudgedAsEachPiWill(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"nothing in it", "", ""},
		{"no panel in it", "[box]\nname = \"Kitchen\"\n", ""},
		{"a display on SPI that says no bus", "[panel]\ndata = \"GPIO24\"\n", "on a 3-model-b, where what the file leaves out is as the documents wire it: panel.data is for a display on SPI"},
		{"a button where the lamp is", "[panel]\napprove = \"GPIO22@fe200000.gpio\"\n", "on a 4-model-b, where what the file leaves out is as the documents wire it: panel.approve and panel.lamp"},
		{"that, with the lamp elsewhere", "[panel]\napprove = \"GPIO22\"\nlamp = \"GPIO17\"\n", ""},
		{"broken", "[panel]\nx = 1\n", "unknown key panel.x"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := config.Check([]byte(tc.text))
			if (err == nil) != (tc.want == "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
