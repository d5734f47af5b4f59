package view

import (
	"errors"
	"iter"
	"testing/fstest"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/story"
)

// WriteStories makes the page about stories that no log holds.
func WriteStories(create Create, stories iter.Seq[story.Story], o Options) error {
	if err := static(create); err != nil {
		return err
	}
	d := newData(create)
	for s := range stories {
		if err := d.add(s); err != nil {
			return errors.Join(err, d.close())
		}
	}
	return errors.Join(d.about(fstest.MapFS{}, audit.Report{Status: audit.Intact}, o), d.close())
}
