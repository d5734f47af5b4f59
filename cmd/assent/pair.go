package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"assent.home.arpa/appliance/phone"
	"assent.home.arpa/appliance/wire"
)

func (a *app) newPairCmd() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "pair ADDRESS CODE",
		Short: "Pair this computer with a box, as a phone",
		Long: "Pair this computer with a box, as a phone. Hold both buttons at the box for 3 seconds; it shows a code. Somebody at the box then has to\n" +
			"accept this computer by holding both buttons once more, if the box shows the same twelve digits as this command.",
		Example: "  assent pair https://assent.local 123456",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := identityFile()
			if err != nil {
				return err
			}
			var pin phone.Pin
			client, err := phone.Dial(cmd.Context(), args[0], pin.TLS())
			if err != nil {
				return err
			}
			defer client.Close()
			who, err := client.Pair(cmd.Context(), args[1], name, func(keyCode string) {
				fmt.Fprintf(a.err, "compare: the box must show %s and %q\n", keyCode, name)
				fmt.Fprintln(a.err, "if it does, hold both of its buttons for 3 seconds; if not, press deny: something between here and the box replaced this computer's key")
			})
			var refused *phone.RefusedError
			if errors.As(err, &refused) {
				return bad(err)
			}
			if err != nil {
				return err
			}
			who.Address, who.Pin = strings.TrimSuffix(args[0], "/"), pin
			if err := who.Save(file); err != nil {
				return err
			}
			welcome, err := client.Hello(cmd.Context(), who, "", 0)
			if err == nil { // else the first question keeps one
				a.keepAnchor(file, welcome)
			}
			if a.json {
				a.printJSON(map[string]any{
					"slot": who.Slot, "name": who.Name, "address": who.Address, "certificate": who.Pin.String(), "root": welcome.Root,
				})
				return nil
			}
			fmt.Fprintln(a.out, phone.Printable(fmt.Sprintf("paired with %s as %q", client.Box(), who.Name), false))
			if who.Pin.String() != "" {
				fmt.Fprintf(a.out, "the box's certificate: SHA-256 %s\n", who.Pin.String())
			}
			if welcome.Root != "" {
				fmt.Fprintln(a.out, "the key of the box's record: SHA-256", phone.Printable(welcome.Root, false))
				fmt.Fprintln(a.out, "note it; with it assent audit verify --root tells this box's record from any other")
			}
			return nil
		},
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "computer"
	}
	cmd.Flags().StringVar(&name, "name", host[:min(len(host), 24)], "what the box is to call this computer")
	return cmd
}

// identityFile is where this user's key lives (XDG base directory specification).
func identityFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("no folder for the key: %w; set XDG_CONFIG_HOME", err)
	}
	return filepath.Join(dir, "assent", "identity.json"), nil
}

// dial connects to the paired box as the computer that it knows. The file is where the identity is saved again after its counter was used.
func (a *app) dial(ctx context.Context) (who *phone.Identity, file string, client *phone.Client, err error) {
	if file, err = identityFile(); err != nil {
		return nil, "", nil, err
	}
	if who, err = phone.LoadIdentity(file); err != nil {
		return nil, "", nil, err
	}
	if client, err = phone.Dial(ctx, who.Address, who.Pin.TLS()); err != nil {
		return nil, "", nil, err
	}
	welcome, err := client.Hello(ctx, who, "", 0)
	if err != nil {
		client.Close()
		return nil, "", nil, err
	}
	a.keepAnchor(file, welcome)
	return who, file, client, nil
}

// keepAnchor keeps the newest seal of the box's record beside the identity, and says so where the record is no longer the
// one that it was. Nothing else that this command does depends on it.
func (a *app) keepAnchor(identity string, w wire.Welcome) {
	if err := phone.KeepAnchor(filepath.Join(filepath.Dir(identity), "anchor.txt"), w, time.Now()); err != nil {
		fmt.Fprintln(a.err, "assent: warning:", phone.Printable(err.Error(), false))
	}
}
