package rootlist

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// capabilities is the attribute with which a file gives whoever starts it some of root's rights (capabilities(7)).
const capabilities = "security.capability"

// special are the bits with which a file gives whoever starts it the rights of its owner or its group.
const special = fs.ModeSetuid | fs.ModeSetgid

// Plain takes away from everything in a tree what gives whoever starts it other rights than they have.
func Plain(root string) error {
	return filepath.WalkDir(root, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.Type() == fs.ModeSymlink {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if info.Mode()&special != 0 {
			if err := os.Chmod(file, info.Mode()&^special); err != nil {
				return err
			}
		}
		if err := unix.Lremovexattr(file, capabilities); err != nil && !absent(err) {
			return fmt.Errorf("%s: %w", file, err)
		}
		return nil
	})
}

// Rights returns what in a tree gives whoever starts it other rights than they have, or could be changed by everybody.
func Rights(root string) (found []Problem, err error) {
	err = filepath.WalkDir(root, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.Type() == fs.ModeSymlink {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		problem := func(why string) { found = append(found, Problem{name, why}) }
		switch mode := info.Mode(); {
		case mode&special != 0:
			problem("gives whoever starts it the rights of its owner or group")
		case mode.Perm()&0o002 != 0 && mode&fs.ModeSticky == 0:
			problem("can be changed by everybody")
		}
		if _, err := unix.Lgetxattr(file, capabilities, nil); err == nil {
			problem("gives whoever starts it some of root's rights")
		} else if !absent(err) {
			return fmt.Errorf("%s: %w", file, err)
		}
		return nil
	})
	return found, err
}

// absent reports whether an error says that there is no such attribute, or that there can be none here.
func absent(err error) bool { return errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP) }
