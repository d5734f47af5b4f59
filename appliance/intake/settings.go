package intake

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"assent.home.arpa/appliance/config"
)

// Names in the directory of settings.
const (
	lastGood = "assent.toml"
	seenFile = "dropped.sha256" // of the drop that lastGood was taken from, or that lastGood has replaced since
	askTime  = "network-time"   // where it is, the owner chose that the box asks the network for the time
)

// Source says where the settings in force come from.
type Source int

// Sources. Do not reorder.
const (
	FromDefaults Source = iota + 1
	FromLastGood
	FromDrop
)

func (s Source) String() string {
	switch s {
	case FromDefaults:
		return "the defaults"
	case FromLastGood:
		return "the last good settings"
	case FromDrop:
		return "assent.toml on the card"
	}
	return "nowhere"
}

// Settings are what is in force at this start.
type Settings struct {
	Config  config.Config
	Source  Source
	Problem string // for people; empty where there is none
}

// Drop is the file on the boot partition.
type Drop struct {
	Content []byte // nil: there is none
	Err     error  // why it cannot be read
}

// ReadDrop reads the file that people put on the boot partition. Neither a missing file nor a missing partition is an error.
func ReadDrop(path string) Drop {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return Drop{}
	}
	if err != nil {
		return Drop{Err: err}
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return Drop{Err: errors.Join(errors.New("it is not a file"), err)}
	}
	b, err := io.ReadAll(io.LimitReader(f, config.MaxBytes+1))
	if err != nil {
		return Drop{Err: err}
	}
	return Drop{Content: append([]byte{}, b...)}
}

// TakeSettings decides which settings are in force: a drop that is valid and was not taken before, or else the last good ones,
// or else base, which is also what holds where either says nothing: the defaults of this machine. A drop that is taken becomes
// the last good settings in store. One that was taken before is not taken again while the last good settings can be read: they
// may have been changed since, at the box.
func TakeSettings(base config.Config, drop Drop, store Dir) Settings {
	good, goodErr := readConfig(base, store)
	problem := ""
	if drop.Err != nil {
		problem = fmt.Sprintf("assent.toml on the card cannot be read: %s.", plain(drop.Err))
	}
	digest := sha256.Sum256(drop.Content)
	if drop.Content != nil && (goodErr != nil || !seen(store, digest)) {
		c, err := over(base, drop.Content)
		if err == nil {
			return Settings{Config: c, Source: FromDrop, Problem: keep(store, drop.Content, digest)}
		}
		problem = fmt.Sprintf("assent.toml on the card is not valid: %s.", plain(err))
	}
	switch {
	case goodErr == nil:
		return Settings{Config: good, Source: FromLastGood, Problem: consequence(problem, FromLastGood)}
	case !errors.Is(goodErr, fs.ErrNotExist) && problem == "":
		problem = fmt.Sprintf("the last good settings cannot be used: %s.", plain(goodErr))
	}
	return Settings{Config: base, Source: FromDefaults, Problem: consequence(problem, FromDefaults)}
}

// consequence says with a problem what the box does about it.
func consequence(problem string, s Source) string {
	if problem == "" {
		return ""
	}
	return problem + " In force: " + s.String() + "."
}

func readConfig(base config.Config, store Dir) (config.Config, error) {
	b, err := readFile(store, lastGood, config.MaxBytes)
	if err != nil {
		return config.Config{}, err
	}
	return over(base, b)
}

// over reads settings as those of a box.
func over(base config.Config, b []byte) (config.Config, error) {
	c, err := base.With(b)
	if err != nil {
		return config.Config{}, err
	}
	return c, c.OnBox()
}

func seen(store Dir, digest [sha256.Size]byte) bool {
	b, err := readFile(store, seenFile, 2*sha256.Size)
	return err == nil && string(b) == hex.EncodeToString(digest[:])
}

// keep makes a drop the last good settings. Power may fail between the two files: then the drop is taken once more at the next
// start, with the same effect.
func keep(store Dir, content []byte, digest [sha256.Size]byte) (problem string) {
	write := func(name string, b []byte) error {
		return replace(store, name, func(f File) error {
			_, err := f.WriteAt(b, 0)
			return err
		})
	}
	err := write(lastGood, content)
	if err == nil {
		err = write(seenFile, []byte(hex.EncodeToString(digest[:])))
	}
	if err != nil {
		return fmt.Sprintf("assent.toml on the card is in force, but the box could not keep it: %s. Leave it on the card.", plain(err))
	}
	return ""
}

// Publish puts the settings in force into the directory where all roles read them, and beside them a file for the unit that asks
// for the time, if it may: to start a program that reads the settings would take a slow box seconds.
func (s Settings) Publish(d Dir) error {
	if err := d.Remove(askTime); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	write := func(name string, content []byte) error {
		return replace(d, name, func(f File) error {
			_, err := f.WriteAt(content, 0)
			return err
		})
	}
	if err := write(lastGood, s.Config.Encode()); err != nil || !s.Config.Box.NetworkTime {
		return err
	}
	return write(askTime, []byte("the owner chose box.network_time\n"))
}
