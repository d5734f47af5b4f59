package main

import "github.com/spf13/cobra"

func (a *app) newAuditVerifyCmd() *cobra.Command {
	var flags auditFlags
	cmd := &cobra.Command{
		Use:   "verify PATH",
		Short: "Check that a log is whole and was not altered",
		Long: "Check that the log in the directory PATH is whole and was not altered. PATH is the log itself, a copy that was exported,\n" +
			"or the state directory of a box or of the simulator.\n\n" +
			"Exit status: 0 intact, 1 altered, 2 incomplete (torn, cut short, rolled back or withheld) or unreadable.\n" +
			"A copy that says itself that literal texts were left out is intact without them, and the verdict says so.\n" +
			"A log that was rolled back to an earlier state looks intact from inside: compare the head with what the box's panel\n" +
			"shows after “log”, give --head a code that it showed before, or give --anchor what a phone or an export kept; and\n" +
			"compare the root key with the one noted when the box was set up.",
		Example: "  assent audit verify /media/me/STICK/AUDIT-1f2e3d4c-5120/log\n  assent audit verify DIR --head 8PMZ6TD9 --anchor assent-anchor.txt",
		Args:    takes("PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := flags.options()
			if err != nil {
				return err
			}
			r, err := verifyDir(cmd.Context(), args[0], o)
			if err != nil {
				return err
			}
			if a.json {
				a.printJSON(verdictOf(r))
			} else {
				a.printReport(r)
			}
			return reportError(r)
		},
	}
	flags.register(cmd)
	return cmd
}
