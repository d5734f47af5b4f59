package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/chromedp/chromedp"
)

// shoot keeps a picture of the phone page as a phone shows it that is not paired.
func shoot(ctx context.Context, address, dir string) error {
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && browser == "" {
			browser = path
		}
	}
	if browser == "" {
		return errors.New("there is no browser")
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	ctx, cancel = chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(browser), chromedp.NoSandbox, chromedp.IgnoreCertErrors, chromedp.WindowSize(412, 892))...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	const settled = 5 * time.Second // with its box, which is emulated
	if _, err := chromedp.Run(ctx, chromedp.Navigate(address)); err != nil {
		return err
	}
	if _, err := chromedp.Run(ctx, chromedp.Sleep(settled)); err != nil {
		return err
	}
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "phone-page.png"), png, 0o644)
}
