package story

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
)

// CSV writes stories as a table for spreadsheets (RFC 4180, with a header line). It is a view and no evidence.
type CSV struct {
	w     *csv.Writer
	begun bool
}

// NewCSV returns a CSV that writes to w.
func NewCSV(w io.Writer) *CSV {
	c := &CSV{w: csv.NewWriter(w)}
	c.w.UseCRLF = true
	return c
}

// Write adds one story.
func (c *CSV) Write(s Story) error {
	if err := c.header(); err != nil {
		return err
	}
	phone := ""
	if s.Phone > 0 {
		phone = strconv.FormatUint(uint64(s.Phone), 10)
	}
	row := []string{
		s.When.Text, string(s.When.Clock), string(s.Kind), string(s.Outcome), s.Headline, s.Said, s.Code, s.Capability, phone,
		s.Destination, s.ID, number(s.First), number(s.Last), number(s.Seal),
	}
	for i := range row {
		row[i] = cell(row[i])
	}
	return c.w.Write(row)
}

// Flush writes what is buffered, and the header if there was no story.
func (c *CSV) Flush() error {
	if err := c.header(); err != nil {
		return err
	}
	c.w.Flush()
	return c.w.Error()
}

func (c *CSV) header() error {
	if c.begun {
		return nil
	}
	c.begun = true
	return c.w.Write([]string{
		"when", "clock", "kind", "outcome", "headline", "said", "code", "capability", "phone", "destination", "id", "first record",
		"last record", "seal",
	})
}

// cell makes a text inert in a spreadsheet: a program that opens the file must not take it for a formula, however many
// spaces stand before it, or however wide its first character is written. No control character is left in it.
func cell(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return !visible(r) }) >= 0 {
		s = escape(s)
	}
	if first := []rune(strings.TrimLeft(s, " ")); len(first) > 0 && strings.ContainsRune("=+-@＝＋－＠", first[0]) {
		return "'" + s
	}
	return s
}
