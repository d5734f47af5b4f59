package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"assent.home.arpa/image/cpio"
)

// initrds packs the first process, as it is shipped and as it is tested, with the modules that it loads.
func (b *build) initrds(ctx context.Context) error {
	for _, i := range []struct{ program, modules, out string }{
		{"init", "boot-modules", "initrd"},
		{"init-test", "test-modules", "initrd-test"},
	} {
		var archive bytes.Buffer
		if err := pack(&archive, b.path(i.program), b.path(i.modules)); err != nil {
			return err
		}
		if err := os.WriteFile(b.path(i.out), archive.Bytes(), 0o644); err != nil {
			return err
		}
		if err := b.tool(ctx, "zstd", "-q", "-19", "--rm", "/build/"+i.out); err != nil {
			return err
		}
	}
	return nil
}

// pack writes the archive that the kernel unpacks before anything else.
func pack(out *bytes.Buffer, program, modules string) error {
	w := cpio.NewWriter(out)
	var errs []error
	for _, dir := range []string{"dev", "proc", "sys", "run", "root", "modules"} {
		errs = append(errs, w.Dir(dir, 0o755))
	}
	errs = append(errs, w.Char("dev/console", 0o600, 5, 1))
	add := func(name, file string, perm uint32) {
		data, err := os.ReadFile(file)
		errs = append(errs, err, w.File(name, perm, data))
	}
	add("init", program, 0o755)
	files, err := filepath.Glob(filepath.Join(modules, "*.ko"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no modules in %s: %w", modules, err)
	}
	for _, file := range files {
		add("modules/"+filepath.Base(file), file, 0o644)
	}
	return errors.Join(append(errs, w.Close())...)
}
