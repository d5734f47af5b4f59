package debs

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// maxMember bounds one file of a package: a kernel has 50 MB.
const maxMember = 256 << 20

// Members calls take with the name and the contents of each regular file of a package.
func Members(ctx context.Context, deb string, take func(name string, r io.Reader) error) error {
	cmd := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", deb)
	cmd.WaitDelay = 5 * time.Second
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("debs: %w", err)
	}
	err = eachFile(pipe, take)
	if err == nil {
		_, err = io.Copy(io.Discard, pipe) // the padding after the end
	} else {
		err = errors.Join(err, cmd.Process.Kill())
	}
	if wait := cmd.Wait(); err == nil && wait != nil {
		err = fmt.Errorf("debs: dpkg-deb: %w", wait)
	}
	return err
}

func eachFile(r io.Reader, take func(name string, r io.Reader) error) error {
	files := tar.NewReader(r)
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("debs: package: %w", err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if h.Size > maxMember {
			return fmt.Errorf("debs: package: %s has %d bytes", h.Name, h.Size)
		}
		if err := take(h.Name, files); err != nil {
			return err
		}
	}
}
