package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"
)

// shoot keeps a picture of the phone page as a phone shows it.
func shoot(ctx context.Context, address, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		browser, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		out, err := exec.CommandContext(ctx, browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--ignore-certificate-errors", "--hide-scrollbars",
			"--window-size=412,892", "--virtual-time-budget=8000", "--screenshot="+filepath.Join(dir, "phone-page.png"), address).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w: %.200s", name, err, out)
		}
		return nil
	}
	return errors.New("there is no browser")
}
