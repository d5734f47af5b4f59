package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"assent.home.arpa/appliance/phone"
)

func (a *app) newAuditCableCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "cable",
		Short: "Have the paired box offer its record over a USB cable",
		Long: "Have the paired box offer its record over the USB cable (Raspberry Pi 4 and 400), as a small disk that can only be read. Only\n" +
			"the owner may ask, and only somebody at the box can say yes: hold both of its buttons for 3 seconds, read, and hold both once\n" +
			"more. Nothing is on the cable before, and nothing after the disk was ejected, after ten minutes, or after a panic at the box.\n" +
			"The box does not know whether anybody kept a copy, so it never counts this as one.",
		Example: "  assent audit cable\n  assent audit verify /media/me/ASSENT/AUDIT-*",
		Args:    takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			who, file, client, err := a.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer client.Close()
			offer, err := client.Cable(cmd.Context(), who)
			if saved := who.Save(file); saved != nil { // the counter is used up, whatever the box said
				return errors.Join(err, saved)
			}
			var refused *phone.RefusedError
			if errors.As(err, &refused) {
				return bad(errors.New(refused.Reason.Message))
			}
			if err != nil {
				return err
			}
			if a.json {
				a.printJSON(offer)
				return nil
			}
			fmt.Fprintf(a.out, "the box offers it for %d minutes: hold both of its buttons for 3 seconds, read, and hold both once more\n", offer.Seconds/60)
			fmt.Fprintln(a.out, "a disk called ASSENT then appears at the other end of the cable; eject it when you are done")
			return nil
		},
	}
}
