// Command build makes the image that people flash: partition table, boot files, the read-only root with its hashes, empty slots for
// the next release, and the file systems for audit and data. `make image` runs it; image/README.md says what is in it.
//
// Everything that goes in is fixed: Debian's packages by the locks beside this file, time by one constant, identifiers by a seed.
// So two builds of one commit are the same bytes, which `make verify-repro` tries. The tools are locked packages too, unpacked into
// the user's cache; neither they nor what they make touch the machine. Nothing of the image is run while it is made: no package's
// script, no emulator.
//
// It must be run as root, since the root's files belong to many users.
//
// The exit code is 0 if the image was made, 1 if it was not, and 3 after wrong usage.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	flags.SetOutput(stderr)
	out := flags.String("out", "bin/image", "put what is made into this `folder`")
	quick := flags.Bool("quick", false, "leave out the compressed image")
	relock := flags.Bool("lock", false, "write new locks from what the machine's mirror has now, and do nothing else")
	verify := flags.Bool("verify", false, "build a second time, in another place and without anything but the packages, and compare")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		return 3
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	began := time.Now()
	say := func(line string) { fmt.Fprintf(stderr, "image: %5.1f s  %s\n", time.Since(began).Seconds(), line) }
	var err error
	switch {
	case *relock:
		err = lockAll(ctx, "image/build", say)
	case *verify:
		err = verifyReproducible(ctx, *out, say, stdout)
	default:
		err = makeImage(ctx, *out, *quick, say, stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, "image:", err)
		return 1
	}
	return 0
}

// makeImage builds the image into out.
func makeImage(ctx context.Context, out string, quick bool, say func(string), stdout io.Writer) error {
	if err := rootOnly(); err != nil {
		return err
	}
	cache, err := cacheDir()
	if err != nil {
		return err
	}
	t, err := unpackTools(ctx, cache, filepath.Join(cache, "debs"), say)
	if err != nil {
		return err
	}
	b := &build{tools: t, store: filepath.Join(cache, "debs"), say: say}
	defer b.clean()
	if err := b.all(ctx); err != nil {
		return err
	}
	return b.deliver(ctx, out, quick, stdout)
}

// rootOnly fails for everybody but root.
func rootOnly() error {
	if os.Geteuid() != 0 {
		return errors.New("the root's files belong to many users: run this as root")
	}
	return nil
}

// cacheDir is where packages and unpacked tools stay.
func cacheDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%w; set XDG_CACHE_HOME", err)
	}
	dir := filepath.Join(cache, "assent", "image")
	return dir, os.MkdirAll(dir, 0o755)
}
