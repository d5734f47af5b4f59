//go:build linux && testlayer

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Where ext4 has its label (the kernel's Documentation/filesystems/ext4/super.rst).
const (
	labelAt = 1024 + 0x78
	label   = "assent-layer"
)

const layer = "/run/assent-layer"

// lastThing starts what a test puts beside the image. The box's root is / by now.
func lastThing() error {
	device := layerDevice()
	if device == "" {
		fmt.Println("initrd: the test variant, without a layer")
		return nil
	}
	if err := os.MkdirAll(layer, 0o755); err != nil {
		return err
	}
	if err := mount(device, layer, "ext4", unix.MS_RDONLY, ""); err != nil {
		return err
	}
	order, err := os.ReadFile(filepath.Join(layer, "order"))
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(string(order)) {
		if err := load(filepath.Join(layer, name)); err != nil {
			return err
		}
	}
	agent, err := os.StartProcess(filepath.Join(layer, "agent"), []string{"@agent"}, &os.ProcAttr{
		Dir: "/", Env: []string{"PATH=/usr/sbin:/usr/bin"}, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		return err
	}
	fmt.Println("initrd: the test variant, with the layer of", device)
	return agent.Release()
}

// layerDevice returns the disk with the layer's label.
func layerDevice() string {
	names, err := filepath.Glob(blocks + "/*")
	if err != nil {
		return ""
	}
	for _, name := range names {
		device := "/dev/" + filepath.Base(name)
		if f, err := os.Open(device); err == nil {
			b := make([]byte, len(label)+1)
			_, err = f.ReadAt(b, labelAt)
			f.Close()
			if err == nil && string(b) == label+"\x00" {
				return device
			}
		}
	}
	return ""
}
