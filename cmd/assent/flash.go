package main

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"assent.home.arpa/appliance/config"
	"assent.home.arpa/appliance/phone"
	"assent.home.arpa/image/card"
	"assent.home.arpa/image/flash"
	"assent.home.arpa/inference/model"
)

// flashFlags are what the command may be told.
type flashFlags struct {
	config, model, sha256, yes string
	file                       bool
}

// flashed is the JSON form of a card that was written.
type flashed struct {
	flash.Result
	Image   string `json:"image"`
	Checked bool   `json:"image_checked"` // a checksum beside it vouches for it
	Disk    string `json:"disk"`
	Config  string `json:"config,omitempty"`
	Model   string `json:"model,omitempty"`
	SHA256  string `json:"model_sha256,omitempty"`
}

func (a *app) newFlashCmd() *cobra.Command { return a.flashCmd(flash.HostMachine()) }

func (a *app) flashCmd(m flash.Machine) *cobra.Command {
	var f flashFlags
	cmd := &cobra.Command{
		Use:   "flash [IMAGE DISK]",
		Short: "Write an image of the box to a card; without arguments, list the disks",
		Long: "Write an image of the box (.img or .img.xz) to a card, and read it back. Without arguments, list this computer's disks.\n\n" +
			flash.Rule + "\n\n" +
			"A checksum beside the image (IMAGE.sha256, SHA256SUMS) is checked before anything is written, and so is xz's own. With a\n" +
			"block map beside it (.bmap) only what the image holds is written. Everything on the disk is lost: its name has to be typed.\n\n" +
			"With --config, the box finds its settings on the card; they are checked first. With --model, it finds a model, which it\n" +
			"copies into its place at its first start: a file, or the ID of one that was pulled (see: assent model list).\n\n" +
			"Exit status: 0 the card is good; 1 it is not, or the image, the settings or the model are bad; 2 nothing was written, because\n" +
			"something could not be read or nobody said yes; 3 wrong usage, or a disk that is not written to.",
		Example: "  assent flash\n  sudo assent flash assent-arm64.img.xz sdb --config assent.toml --model qwen2.5-1.5b.gguf",
		Args:    cobra.MaximumNArgs(2),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) != 1 {
				return []string{"img", "xz"}, cobra.ShellCompDirectiveFilterFileExt
			}
			if f.file {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return a.diskNames(m), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.listDisks(m)
			}
			if len(args) == 1 {
				return &exitError{exitWrongCall, errors.New("which disk? assent flash lists them")}
			}
			return a.flash(cmd, m, args[0], args[1], f)
		},
	}
	cmd.Flags().StringVar(&f.config, "config", "", "settings to put on the card, `assent.toml`")
	cmd.Flags().StringVar(&f.model, "model", "", "model to put on the card, a `FILE` or an ID")
	cmd.Flags().StringVar(&f.sha256, "sha256", "", "the model's checksum, in `HEX`")
	cmd.Flags().StringVar(&f.yes, "yes", "", "`NAME` of the disk, instead of being asked to type it")
	cmd.Flags().BoolVar(&f.file, "file", false, "DISK is a regular file that stands for one")
	return cmd
}

func (a *app) diskNames(m flash.Machine) []string {
	disks, err := m.Disks()
	if err != nil {
		return nil
	}
	var names []string
	for _, d := range disks {
		if d.Problem == "" {
			names = append(names, d.Name+"\t"+d.Title())
		}
	}
	return names
}

func (a *app) listDisks(m flash.Machine) error {
	disks, err := m.Disks()
	if err != nil {
		return err
	}
	if a.json {
		a.printJSON(disks)
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "DISK\tSIZE\tMODEL\tSERIAL\tBUS\tCAN BE WRITTEN\t")
	for _, d := range disks {
		can := "yes"
		if d.Problem != "" {
			can = "no: " + d.Problem
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t\n", d.Name, gigabytes(d.Size), printable(d.Title()), printable(d.Serial), d.Bus, printable(can))
	}
	return w.Flush()
}

// printable is for what a disk or a file calls itself.
func printable(s string) string { return phone.Printable(s, false) }

func gigabytes(n int64) string { return fmt.Sprintf("%.1f GB", float64(n)/1e9) }

func (a *app) flash(cmd *cobra.Command, m flash.Machine, image, ref string, f flashFlags) error {
	ctx := cmd.Context()
	job := flash.Job{}
	// Everything that can be wrong is looked at before the person is asked, and before anything is written.
	disk, err := a.findDisk(m, ref, f.file)
	if err != nil {
		return usage(err)
	}
	if f.yes != "" && f.yes != disk.Name {
		return &exitError{exitWrongCall, fmt.Errorf("--yes says %s, the disk is %s; nothing was written", f.yes, disk.Name)}
	}
	if job.Settings, err = settings(f.config); err != nil {
		return err
	}
	if job.Model, err = a.chooseModel(cmd, f); err != nil {
		return err
	}
	reading := newProgress(a.err, "checking the image")
	job.Image, err = flash.OpenImage(ctx, image, func(done, total int64) { reading.update(model.Progress{Done: done, Total: total}) })
	reading.done()
	var damaged *flash.ImageError
	if errors.As(err, &damaged) {
		return bad(err)
	}
	if err != nil {
		return err
	}
	if !job.Image.Checked {
		fmt.Fprintln(a.err, "assent: no checksum beside the image vouches for it")
	}
	// From here on the disk is this process's alone, while the person thinks.
	if job.Target, err = open(disk, f.file); err != nil {
		return usage(err)
	}
	defer job.Target.Close()
	// The image took minutes to check, in which another card may have come into the reader.
	check := m.Still
	if f.file {
		check = func(d flash.Disk) error { return m.Attached(d.Path) }
	}
	if err := check(disk); err != nil {
		return usage(err)
	}
	if err := job.Check(); err != nil {
		return usage(fmt.Errorf("%s: %w", disk.Name, err))
	}
	if err := a.confirm(disk, f.yes); err != nil {
		return err
	}
	var bar *progress
	var stage flash.Stage
	job.Progress = func(s flash.Stage, done, total int64) {
		if s != stage {
			bar.done()
			bar, stage = newProgress(a.err, string(s)), s
		}
		bar.update(model.Progress{Done: done, Total: total})
	}
	result, err := job.Run(ctx)
	bar.done()
	if ctx.Err() != nil && err != nil {
		return bad(fmt.Errorf("interrupted; %s does not start a box: write it again", disk.Name))
	}
	if err != nil {
		return bad(fmt.Errorf("%s: %w", disk.Name, err))
	}
	return a.printFlashed(disk, job, result, f)
}

// usage marks a disk that is refused as wrong usage: the help says which are not.
func usage(err error) error {
	var refused *flash.RefusedError
	var small *card.SmallError
	if errors.As(err, &refused) || errors.As(err, &small) {
		return &exitError{exitWrongCall, err}
	}
	return err
}

func (a *app) findDisk(m flash.Machine, ref string, asFile bool) (flash.Disk, error) {
	info, err := os.Stat(ref)
	isFile := err == nil && info.Mode().IsRegular()
	switch {
	case asFile && err != nil:
		return flash.Disk{}, &flash.RefusedError{Disk: ref, Why: "there is no such file; make it first, as large as the card: truncate -s 8G FILE"}
	case asFile && !isFile:
		return flash.Disk{}, &flash.RefusedError{Disk: ref, Why: "it is not a file; leave out --file"}
	case asFile:
		return flash.Disk{Name: filepath.Base(ref), Path: ref, Size: info.Size(), Model: "a file"}, nil
	case isFile:
		return flash.Disk{}, &flash.RefusedError{Disk: ref, Why: "it is a file; if it is to stand for a disk, add --file"}
	}
	d, err := m.Find(ref)
	if err == nil && d.Problem != "" {
		err = &flash.RefusedError{Disk: d.Name, Why: d.Problem}
	}
	return d, err
}

func open(d flash.Disk, asFile bool) (flash.Target, error) {
	if asFile {
		return flash.OpenFile(d.Path)
	}
	return flash.OpenDisk(d)
}

// settings reads the file that goes onto the card, and judges it as the box will.
func settings(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, config.MaxBytes+1))
	if err != nil {
		return nil, err
	}
	if err := config.Check(b); err != nil {
		return nil, bad(fmt.Errorf("%s: %w", path, err))
	}
	return b, nil
}

// chooseModel finds and reads the model, and says what is known of its checksum.
func (a *app) chooseModel(cmd *cobra.Command, f flashFlags) (*flash.ModelFile, error) {
	if f.model == "" {
		if f.sha256 != "" {
			return nil, &exitError{exitWrongCall, errors.New("--sha256 is of a model; which? add --model")}
		}
		return nil, nil
	}
	if want, err := hex.DecodeString(f.sha256); err != nil || f.sha256 != "" && len(want) != 32 {
		return nil, &exitError{exitWrongCall, errors.New("--sha256 takes 64 hexadecimal digits")}
	}
	store, err := model.Open()
	if err != nil {
		return nil, err
	}
	file, err := store.Check(cmd.Context(), f.model)
	var unknown *model.UnknownError
	var broken *model.FileError
	switch {
	case errors.As(err, &unknown):
		return nil, &exitError{exitWrongCall, err}
	case errors.As(err, &broken):
		return nil, bad(err)
	case err != nil:
		return nil, err
	case f.sha256 != "" && !strings.EqualFold(f.sha256, file.SHA256):
		return nil, bad(fmt.Errorf("%q is not the model: its sha256 is %s", file.Path, file.SHA256))
	case f.sha256 == "" && file.Model.ID == "":
		fmt.Fprintf(a.err, "assent: nobody vouches for the model %q; its sha256 is %s\n", file.Path, file.SHA256)
	}
	info, err := os.Stat(file.Path)
	if err != nil {
		return nil, err
	}
	m := &flash.ModelFile{Path: file.Path, Name: card.ModelName(file.Path), Length: info.Size()}
	if file.Model.ID != "" {
		m.Name = card.ModelName(file.Model.ID)
	}
	if _, err := hex.Decode(m.SHA256[:], []byte(file.SHA256)); err != nil {
		return nil, err
	}
	return m, nil
}

// confirm has the person type the disk's name.
func (a *app) confirm(d flash.Disk, yes string) error {
	if yes != "" { // it names this disk
		return nil
	}
	fmt.Fprintf(a.err, "%s  %s  %s  %s\neverything on it will be lost. type its name to go on: ", d.Name, gigabytes(d.Size), printable(d.Title()), d.Bus)
	line, err := bufio.NewReader(io.LimitReader(a.in, 256)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(line) != d.Name {
		return fmt.Errorf("that is not %s; nothing was written", d.Name)
	}
	return nil
}

func (a *app) printFlashed(d flash.Disk, job flash.Job, r flash.Result, f flashFlags) error {
	line := flashed{Result: r, Image: job.Image.Path, Checked: job.Image.Checked, Disk: d.Name, Config: f.config}
	if job.Model != nil {
		line.Model, line.SHA256 = job.Model.Name, hex.EncodeToString(job.Model.SHA256[:])
	}
	if a.json {
		a.printJSON(line)
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "disk\t%s\twritten, read back, and good\n", d.Name)
	fmt.Fprintf(w, "image\t%s\t%d MB\n", printable(filepath.Base(line.Image)), job.Image.Size>>20)
	if f.config != "" {
		fmt.Fprintf(w, "settings\t%s\tthe box takes them at its first start\n", printable(filepath.Base(f.config)))
	}
	if job.Model != nil {
		fmt.Fprintf(w, "model\t%s\t%d MB, sha256 %s; the box copies it at its first start\n", line.Model, job.Model.Length>>20, line.SHA256)
	}
	return w.Flush()
}
