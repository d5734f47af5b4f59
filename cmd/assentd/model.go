package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"assent.home.arpa/appliance/box"
	"assent.home.arpa/inference/engine"
)

// llamaServer is the engine of the image.
const llamaServer = "/usr/bin/llama-server"

// modelRole becomes the engine, with the model that the settings name, else the newest. Without a model it ends well: the box
// has none yet, which the phone page says for as long as there is no socket.
func modelRole(_ context.Context, e env) error {
	if len(e.args) != 0 {
		return usageError("model takes nothing but -config")
	}
	dir := filepath.Join(e.config.Paths.State, "models")
	socket := box.At(e.config.Paths.Runtime).Model
	path, err := chooseModel(dir, e.config.Model.File)
	if err != nil {
		return errors.Join(err, dropSocket(socket))
	}
	if path == "" {
		e.log.Info("no model on this box yet; write one to its card with assent flash --model FILE", "folder", dir)
		return dropSocket(socket)
	}
	e.log.Info("starting the engine", "model", filepath.Base(path))
	return engine.Become(llamaServer, engine.Server{Model: path, Socket: socket, Context: e.config.Model.Context})
}

// chooseModel returns the file of that name in dir, or the newest there where the name is empty; and nothing where there is
// none. Hidden files are unfinished copies.
func chooseModel(dir, name string) (string, error) {
	if name != "" {
		path := filepath.Join(dir, name)
		info, err := os.Lstat(path)
		if err != nil {
			return "", fmt.Errorf("model.file: %w; choose one that is there, or leave it empty for the newest", err)
		}
		if !info.Mode().IsRegular() {
			return "", fmt.Errorf("model.file: %s is not a regular file", path)
		}
		return path, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("models: %w", err)
	}
	var newest fs.FileInfo
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() || strings.HasPrefix(info.Name(), ".") || filepath.Ext(info.Name()) != ".gguf" {
			continue
		}
		if newest == nil || cmp.Or(info.ModTime().Compare(newest.ModTime()), strings.Compare(info.Name(), newest.Name())) > 0 {
			newest = info
		}
	}
	if newest == nil {
		return "", nil
	}
	return filepath.Join(dir, newest.Name()), nil
}

// dropSocket removes what an engine left behind, which would look like one that is about to answer.
func dropSocket(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the socket of an earlier engine: %w", err)
	}
	return nil
}
