package kernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"assent.home.arpa/image/debs"
	"assent.home.arpa/image/modules"
)

// unpack writes the image, the modules and their order into dir.
func unpack(ctx context.Context, files, names []string, dir string) error {
	packed := map[string][]byte{} // compressed, by name
	haveImage := false
	for _, deb := range files {
		err := debs.Members(ctx, deb, func(name string, r io.Reader) error {
			switch base := path.Base(name); {
			case base == imageFile:
				haveImage = true
				return save(filepath.Join(dir, imageFile), r)
			case strings.HasSuffix(base, ".ko.xz"):
				data, err := io.ReadAll(r)
				packed[modules.Name(base)] = data
				return err
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if !haveImage {
		return errors.New("kernel: the packages hold no image")
	}
	order, err := modules.Closure(names, func(name string) ([]byte, error) {
		if packed[name] == nil {
			return nil, nil
		}
		return modules.Unxz(ctx, packed[name])
	})
	if err != nil {
		return err
	}
	var list strings.Builder
	for _, m := range order {
		if err := os.WriteFile(filepath.Join(dir, m.Name+".ko"), m.Data, 0o644); err != nil {
			return err
		}
		fmt.Fprintln(&list, m.Name+".ko")
	}
	return os.WriteFile(filepath.Join(dir, orderFile), []byte(list.String()), 0o644)
}

func save(file string, r io.Reader) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}
