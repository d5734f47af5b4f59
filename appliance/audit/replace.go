package audit

import "fmt"

// replaceTemp is a file that is to take another's place and is not finished.
const replaceTemp = "replace.tmp"

// replaceFile puts a file in place, whole or not at all: whenever power fails, name is what it was or what it becomes. An
// error that wraps ErrFull means that nothing changed and no room is taken; after any other, nobody can say which it is.
func replaceFile(d Disk, name string, content []byte) error {
	err := removeFile(d, replaceTemp)
	if err == nil {
		err = fillTemp(d, content)
	}
	if full(err) {
		if err := removeFile(d, replaceTemp); err != nil {
			return err
		}
		return fmt.Errorf("%w: %w: %w", ErrUnavailable, ErrFull, err)
	}
	if err != nil {
		return err
	}
	if err := d.Rename(replaceTemp, name); err != nil {
		return err
	}
	return d.Sync()
}

// fillTemp makes the content durable, but not its name: that comes with the name that it is renamed to.
func fillTemp(d Disk, content []byte) error {
	f, err := d.Create(replaceTemp)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, 0)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
