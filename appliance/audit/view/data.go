package view

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"assent.home.arpa/appliance/audit/story"
)

// How much one file of stories holds at most: what a phone reads in one go.
const (
	maxStories = 500
	maxBytes   = 2 << 20
)

// data writes stories as they are told: each to the list, to a file of stories, and to the two files for machines.
type data struct {
	create  Create
	stories int
	rows    *output
	csv     *output
	table   *story.CSV // in csv
	lines   *output
	chunk   *output // open where the newest file of stories has room
	chunks  int     // begun
	inChunk int
	bytes   int
	err     error
}

func newData(create Create) *data {
	d := &data{create: create}
	for _, f := range []struct {
		to   **output
		name string
	}{{&d.rows, "data/rows.js"}, {&d.csv, "events.csv"}, {&d.lines, "events.jsonl"}} {
		if *f.to, d.err = d.open(f.name); d.err != nil {
			return d
		}
	}
	d.rows.print("assent.rows([\n")
	d.table = story.NewCSV(d.csv)
	return d
}

// row is what the list shows of a story and filters by, in an array, since names would be most of the file.
func row(s story.Story, chunk int) []any {
	return []any{
		s.ID, s.First, s.Kind, s.Outcome, s.When.Unix, s.When.Clock, s.When.Since, s.Headline, s.Capability, s.Phone, s.Destination,
		s.Seal != 0, chunk,
	}
}

func (d *data) add(s story.Story) error {
	if d.err != nil {
		return d.err
	}
	full, err := scriptLiteral(s)
	if err != nil {
		return err
	}
	if err := d.room(len(full)); err != nil {
		return err
	}
	short, err := scriptLiteral(row(s, d.chunks-1))
	if err != nil {
		return err
	}
	line, err := json.Marshal(withoutPictures(s))
	if err != nil {
		return fmt.Errorf("view: %w", err)
	}
	d.chunk.print(full, ",\n")
	d.rows.print(short, ",\n")
	d.lines.print(string(line), "\n")
	d.stories++
	d.inChunk++
	d.bytes += len(full)
	return errors.Join(d.chunk.err, d.rows.err, d.lines.err, d.table.Write(s))
}

// room has a file of stories open that takes n more bytes.
func (d *data) room(n int) error {
	if d.chunk != nil && (d.inChunk == maxStories || d.bytes+n > maxBytes && d.inChunk > 0) {
		if err := d.endChunk(); err != nil {
			return err
		}
	}
	if d.chunk != nil {
		return nil
	}
	var err error
	if d.chunk, err = d.open(fmt.Sprintf("data/stories-%04d.js", d.chunks)); err != nil {
		return err
	}
	d.chunk.print(fmt.Sprintf("assent.stories(%d,[\n", d.chunks))
	d.chunks++
	d.inChunk, d.bytes = 0, 0
	return nil
}

func (d *data) endChunk() error {
	d.chunk.print("]);\n")
	err := d.chunk.close()
	d.chunk = nil
	return err
}

// close ends all files, whatever became of them.
func (d *data) close() error {
	var errs []error
	if d.chunk != nil {
		errs = append(errs, d.endChunk())
	}
	if d.rows != nil {
		d.rows.print("]);\n")
	}
	if d.table != nil {
		errs = append(errs, d.table.Flush())
	}
	for _, f := range []*output{d.rows, d.csv, d.lines} {
		if f != nil {
			errs = append(errs, f.close())
		}
	}
	return errors.Join(errs...)
}

// withoutPictures leaves out what is of no use in a line of text.
func withoutPictures(s story.Story) story.Story {
	s.Steps = slices.Clone(s.Steps)
	for i, step := range s.Steps {
		if step.Pages != nil {
			pages := *step.Pages
			pages.Frames = nil
			s.Steps[i].Pages = &pages
		}
	}
	return s
}

// output is a file that remembers its first error, so that those who print need not ask each time.
type output struct {
	f   io.WriteCloser
	w   *bufio.Writer
	err error
}

func (d *data) open(name string) (*output, error) {
	f, err := d.create(name)
	if err != nil {
		return nil, err
	}
	return &output{f: f, w: bufio.NewWriterSize(f, 64<<10)}, nil
}

func (o *output) Write(b []byte) (int, error) {
	o.print(string(b))
	return len(b), o.err
}

func (o *output) print(parts ...string) {
	for _, s := range parts {
		if o.err == nil {
			_, o.err = o.w.WriteString(s)
		}
	}
}

func (o *output) close() error {
	if o.err == nil {
		o.err = o.w.Flush()
	}
	return errors.Join(o.err, o.f.Close())
}
