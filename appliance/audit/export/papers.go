package export

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/clock"
)

// redactedText is what RedactedMarker says.
const redactedText = `Literal texts were left out of this copy: what was asked for, what was sent, and what the screen showed.
Each was replaced by its SHA-256, so the rest can still be verified, and a text that somebody brings along can be
compared. Names that a model gave a capability, and short diagnoses, are not among the texts that can be left out.
`

// papers writes everything that explains the evidence.
func (c *copier) papers(r Report, seal []byte) error {
	documents := audit.Documents()
	for _, name := range []string{"FORMAT.md", "audit.cddl"} {
		b, err := fs.ReadFile(documents, name)
		if err != nil {
			return fmt.Errorf("export: %w", err)
		}
		if _, err := c.put(name, b); err != nil {
			return err
		}
	}
	if seal != nil {
		if _, err := c.put("seal.cose", seal); err != nil {
			return err
		}
	}
	if c.o.Redact {
		if _, err := c.put("log/"+RedactedMarker, []byte(redactedText)); err != nil {
			return err
		}
	}
	_, err := c.put("README.txt", []byte(c.readme(r)))
	return err
}

// readme tells a stranger, in a few lines, what this is and whom not to believe.
func (c *copier) readme(r Report) string {
	box := "an Assent box"
	if c.o.Name != "" {
		box = "the Assent box " + strconv.QuoteToGraphic(c.o.Name)
	}
	made := "The box's clock was not set when this copy was made."
	if wall, state := c.o.Clock.Wall(); state != clock.Unset {
		made = "This copy was made on " + wall.UTC().Format(time.DateTime) + " UTC."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "The record of %s: what its language model asked to do, what the box's own\n", box)
	fmt.Fprintf(&b, "screen showed, who pressed the button, what was sent, and what came of it. %s\n\n", made)
	b.WriteString("  log/         the evidence: every record, linked and signed, byte for byte\n")
	b.WriteString("  seal.cose    the newest signature; a copy kept elsewhere shows whether the log was ever cut back\n")
	b.WriteString("  view/        open view/index.html to read the log; the view is no evidence, it is only readable\n")
	b.WriteString("  FORMAT.md, audit.cddl   every byte of the log explained, for writing a verifier\n\n")
	fmt.Fprintf(&b, "When it was made, this copy was %s.\n", strings.ToUpper(r.Log.Status.String()))
	if p := r.Log.Problem; p != nil {
		fmt.Fprintf(&b, "  %s\n", p)
	}
	if r.Redacted {
		fmt.Fprintf(&b, "  %d literal texts were left out on purpose; see log/%s\n", r.Log.Withheld+r.Log.Redacted, RedactedMarker)
	}
	shown := "the box's screen shows after “log”"
	if c.o.ByBox {
		shown = "the box's screen showed once this copy was done"
	}
	fmt.Fprintf(&b, "  head %s (record %d): compare it with what %s\n", r.Log.Head.Code(), r.Log.Head.Seq, shown)
	fmt.Fprintf(&b, "  root %s: compare it with the key noted when the box was set up\n\n", r.Log.Root)
	word := "the word of the computer that made this copy"
	if c.o.ByBox {
		word = "the box's own word"
	}
	fmt.Fprintf(&b, "That is %s. To check it, use a program that did not come with this copy:\n", word)
	b.WriteString("  assent audit verify .                  from Assent\n")
	b.WriteString("  python3 assent_verify.py .             an independent verifier in one file, from Assent's source\n")
	b.WriteString("SHA256SUMS finds damage of the copy (sha256sum -c SHA256SUMS). It does not find forgery: the two above do.\n")
	return b.String()
}
