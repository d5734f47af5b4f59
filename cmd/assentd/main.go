// Assentd is the box's service. It plays one role a process, as systemd starts it:
//
//	assentd gateway        serves the phone page and its websocket
//	assentd guard          owns panel, keys, audit and pairings
//	assentd courier        opens the connections that grants name
//	assentd worker CLASS   makes one call, on the connection it has as standard input
//	assentd stick DEVICE   writes the record onto one stick, as the guard says
//	assentd gadget-setup   describes to the kernel the read-only disk that the box can be over a cable
//	assentd cable          shows the record over the cable, as the guard says
//	assentd usb-authorise DIR  lets a new USB device in, if it is storage or a hub
//	assentd settings [DROP] puts the settings in force: those in DROP if they are new and valid, else the last good ones
//	assentd import         takes a model that came with the card, and the rest of the card
//	assentd model          becomes the engine, with one of the box's models
//	assentd address        notes where on the LAN phones reach the box
//	assentd expand         gives the data partition the rest of the card
//	assentd good           tells the boot loader that this start was a good one
//	assentd panel-test     walks whoever has wired the box through its display, buttons and lamp
//	assentd check-config   prints the effective configuration
//	assentd version
//
// Every role takes -config FILE. Sockets come from systemd where it passes them (LISTEN_FDNAMES guard, export, courier, phones, plain),
// and are made where the configuration says otherwise. Exit status: 0 ended as told, 1 failed, 2 could not tell
// (panel-test, where the guard runs or nobody answers; stick, where the box itself uses it; gadget-setup and cable, where the board
// has no port for it), 3 wrong usage.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"

	"assent.home.arpa/appliance/config"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

const usage = `usage: assentd ROLE [-config FILE]

what systemd starts on a box:
  gateway            serves the phone page
  guard              owns panel, keys, record and pairings
  courier            opens the connections that were approved
  worker CLASS       makes one call
  stick DEVICE       writes the record onto one stick
  gadget-setup       describes the disk that the box can be over a cable
  cable              shows the record over a cable
  usb-authorise DIR  lets a new USB device in, if it is storage or a hub
  settings [DROP]    puts the settings in force
  import             takes a model that came with the card
  model              becomes the engine
  address            notes where phones reach the box
  expand             gives the data partition the rest of the card
  good               tells the boot loader that this start was a good one

for people:
  panel-test         tries display, buttons and lamp, and asks what you see
  check-config FILE  judges settings as a box does and prints all of them; with -explain, also what each is and may be
  version            says which program this is

-config FILE is the settings; without it /etc/assent/assent.toml, and where that does not exist what this machine has by itself.
`

// role is what a subcommand is made of.
type role func(ctx context.Context, e env) error

// env is what every role starts with.
type env struct {
	config config.Config
	args   []string
	stdin  *os.File
	out    io.Writer
	log    *slog.Logger

	explain bool // check-config's
}

func run(args []string, stdin *os.File, stdout, stderr io.Writer) int {
	roles := map[string]role{"gateway": gatewayRole, "guard": guardRole, "courier": courierRole, "worker": workerRole, "stick": stickRole, "gadget-setup": gadgetSetUp, "cable": cableRole, "usb-authorise": usbAuthorise, "settings": settingsRole, "import": importRole, "model": modelRole, "address": addressRole, "expand": expandRole, "good": goodRole, "panel-test": panelTest, "check-config": checkConfig, "version": version}
	if len(args) > 0 && slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]) {
		fmt.Fprint(stdout, usage)
		return 0
	}
	if len(args) == 0 || roles[args[0]] == nil {
		fmt.Fprint(stderr, usage)
		return 3
	}
	flags := flag.NewFlagSet("assentd "+args[0], flag.ContinueOnError)
	flags.SetOutput(stderr)
	file := flags.String("config", "/etc/assent/assent.toml", "settings `file`; without this flag that file, and where it does not exist what this machine has by itself")
	explain := new(bool)
	if args[0] == "check-config" {
		explain = flags.Bool("explain", false, "say of each setting what it is, what it may be, and what it is by default")
	}
	err := flags.Parse(args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 3
	}
	explicit := false
	flags.Visit(func(f *flag.Flag) { explicit = explicit || f.Name == "config" })
	rest := flags.Args()
	if args[0] == "check-config" && !explicit && len(rest) == 1 {
		*file, explicit, rest = rest[0], true, nil
	}
	cfg, err := load(*file, explicit)
	if err != nil {
		fmt.Fprintln(stderr, "assentd:", err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(stderr, nil)).With("role", args[0])
	err = roles[args[0]](ctx, env{config: cfg, args: rest, stdin: stdin, out: stdout, log: log, explain: *explain})
	var wrong usageError
	if errors.As(err, &wrong) {
		fmt.Fprintf(stderr, "assentd: %v\n%s", err, usage)
		return 3
	}
	if err != nil {
		fmt.Fprintln(stderr, "assentd:", err)
		var unclear unclearError
		if errors.As(err, &unclear) {
			return 2
		}
		return 1
	}
	return 0
}

// unclearError says that nothing is known to be wrong, nor to be right.
type unclearError string

func (e unclearError) Error() string { return string(e) }

type usageError string

func (e usageError) Error() string { return string(e) }

func load(file string, explicit bool) (config.Config, error) {
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) && !explicit {
		return config.On(machine()), nil
	}
	return config.On(machine()).WithFile(file)
}

func checkConfig(_ context.Context, e env) error {
	if len(e.args) > 0 {
		return usageError("check-config takes one file, and -explain before it")
	}
	if err := e.config.OnBox(); err != nil {
		return err
	}
	text := e.config.Encode()
	if e.explain {
		text = e.config.Explain(config.On(machine()))
	}
	_, err := e.out.Write(text)
	return err
}

func version(_ context.Context, e env) error {
	_, err := fmt.Fprintln(e.out, "assentd", build())
	return err
}

// build names this program as the Go toolchain knows it.
func build() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version + " " + info.GoVersion
	}
	return "unknown"
}
