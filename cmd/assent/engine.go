package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"assent.home.arpa/inference/engine"
)

func (a *app) newEngineCmd() *cobra.Command {
	return group("engine", "The program that runs models", a.newEnginePathCmd())
}

func (a *app) newEnginePathCmd() *cobra.Command {
	var noInstall bool
	cmd := &cobra.Command{
		Use:   "path",
		Short: "Print the path of a suitable llama-server, fetching one if need be",
		Long: "Print the path of a suitable llama-server: $ENGINE if it is set, else one fetched earlier, else the one that is installed,\n" +
			"else Debian's, fetched from the mirror that this machine's apt uses and unpacked into the cache.",
		Example: "  assent engine path\n  ENGINE=/opt/llama/llama-server assent engine path",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			e, err := engine.Find(cmd.Context(), engine.Options{
				Path:      os.Getenv("ENGINE"),
				NoInstall: noInstall,
				Progress:  func(line string) { fmt.Fprintln(a.err, line) },
			})
			var unsuitable *engine.UnsuitableError
			var missing *engine.NotFoundError
			switch {
			case errors.As(err, &missing), errors.As(err, &unsuitable):
				return bad(err)
			case err != nil:
				return err
			}
			if a.json {
				a.printJSON(map[string]string{"path": e.Path, "version": e.Version, "origin": e.Origin.String()})
			} else {
				fmt.Fprintln(a.out, e.Path)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&noInstall, "no-install", false, "fail instead of fetching an engine")
	return cmd
}
