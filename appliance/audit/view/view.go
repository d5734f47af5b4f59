// Package view makes the page on which a person who is no programmer reads an audit log.
//
// The page is static: it opens from a stick, in any browser, without a network and without a program. It lists what
// happened by day, and opens each event to its whole story, with the panel's pictures as they were on the glass. It is not
// evidence, and says so: whoever made it could have written anything. What it says of the log's state is the statement of
// the box or of the computer that made the copy, or, where assent audit serve shows it, the finding of the computer that it is
// read on.
//
// # Files
//
//	index.html, *.js, style.css   the page; the same for every log
//	data/about.js                 the verdict, and how much there is
//	data/rows.js                  one line for each event: what the list shows and filters by
//	data/stories-0000.js …        the events in full, at most 500 in a file, each loaded when one of it is opened
//	events.csv, events.jsonl      the same for spreadsheets and programs, without pictures
//
// A page that was opened from a file may load scripts and nothing else, so data come as scripts: calls with string
// literals of ASCII, each of which is JSON. Nothing in a log can end such a literal, and the page sets what it says as text
// only; its content security policy would stop a mistake as well.
package view

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/story"
)

//go:embed page
var page embed.FS

// Statement says whose word the verdict on the page is.
type Statement string

// The statements.
const (
	ByBox          Statement = "box"  // the box's own, in a copy that it made
	ByCopier       Statement = "copy" // that of another computer, in a copy that it made
	ByThisComputer Statement = "here" // found by the computer on which the page is read, just now
)

// Options says what the page is about.
type Options struct {
	Name      string    // the box's own name; may be empty
	Statement Statement // whose word the verdict is
	Made      time.Time // zero where the clock was not set
	Redacted  bool      // literal texts were left out on purpose
	Verify    audit.VerifyOptions
}

// Create makes a file of the page, by its slash-separated name. Directories other than data are not used.
type Create func(name string) (io.WriteCloser, error)

// Write verifies a log and writes the page about it in one pass, with memory that does not grow with the log. Errors are
// audit.Verify's and those of the files; a log that is not intact is none.
func Write(ctx context.Context, log fs.FS, create Create, o Options) (audit.Report, error) {
	if err := static(create); err != nil {
		return audit.Report{}, err
	}
	d := newData(create)
	report, err := tell(ctx, log, d, o.Verify)
	if err == nil {
		err = d.about(log, report, o)
	}
	return report, errors.Join(err, d.close())
}

// tell has every story of the log told to d.
func tell(ctx context.Context, log fs.FS, d *data, verify audit.VerifyOptions) (audit.Report, error) {
	t := story.New(d.add)
	visit := verify.Visit
	verify.Visit = func(e audit.Entered) error {
		if visit != nil {
			if err := visit(e); err != nil {
				return err
			}
		}
		return t.Add(e)
	}
	report, err := audit.Verify(ctx, log, verify)
	if err != nil {
		return report, err
	}
	return report, t.Close()
}

// static writes the files that are the same for every log.
func static(create Create) error {
	entries, err := page.ReadDir("page")
	if err != nil {
		return fmt.Errorf("view: %w", err)
	}
	for _, e := range entries {
		b, err := page.ReadFile("page/" + e.Name())
		if err != nil {
			return fmt.Errorf("view: %w", err)
		}
		f, err := create(e.Name())
		if err != nil {
			return err
		}
		_, err = f.Write(b)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}
