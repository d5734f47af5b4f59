package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// maxUnpinned bounds a download whose size nobody has checked: larger than any model that a box of this kind can run.
const maxUnpinned = 16 << 30

// fetchURL downloads m.URL into partial and goes on where an earlier download ended.
func (s *Store) fetchURL(ctx context.Context, m Model, partial string) error {
	out, err := os.OpenFile(partial, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	have := fileSize(partial)
	if m.Size > 0 && have >= m.Size {
		return nil // adopt looks at the checksum
	}
	resp, err := s.get(ctx, m.URL, have)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	total := m.Size
	switch resp.StatusCode {
	case http.StatusOK:
		have = 0
	case http.StatusPartialContent:
		if !strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", have)) {
			return fmt.Errorf("%w: %s answered with another range than was asked for", ErrUnreachable, m.URL)
		}
	case http.StatusRequestedRangeNotSatisfiable:
		return nil // all of it is here
	default:
		return fmt.Errorf("%w: %s answered %s", ErrUnreachable, m.URL, resp.Status)
	}
	if total == 0 && resp.ContentLength > 0 {
		total = have + resp.ContentLength
	}
	if err := out.Truncate(have); err != nil {
		return err
	}
	if _, err := out.Seek(have, io.SeekStart); err != nil {
		return err
	}
	limit := m.Size
	if limit == 0 {
		limit = maxUnpinned
	}
	body := &countingReader{r: io.LimitReader(resp.Body, limit-have+1), report: func(n int64) { s.report(have+n, total) }}
	n, err := copyContext(ctx, out, body)
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case body.failed != nil: // the network's fault, not the disk's
		return fmt.Errorf("%w: %s broke off after %d MB; run the same command again to go on: %w", ErrUnreachable, m.URL, (have+n)>>20, body.failed)
	case err != nil:
		return err
	case have+n > limit:
		return &DigestError{m.Title, fmt.Sprintf("%d bytes", limit), "more"}
	}
	if err := out.Sync(); err != nil {
		return err
	}
	return out.Close()
}

func (s *Store) get(ctx context.Context, url string, from int64) (*http.Response, error) {
	client := s.HTTP
	if client == nil {
		client = &http.Client{Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			TLSHandshakeTimeout:   20 * time.Second,
			ResponseHeaderTimeout: 60 * time.Second,
		}}
	}
	safe := *client
	safe.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if r.URL.Scheme != "https" || len(via) > 5 {
			return errors.New("a redirect led away from https, or too far")
		}
		return nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if from > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	resp, err := safe.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return resp, nil
}

// countingReader reports what passes, and remembers a failure of its source, to tell it from one of the sink.
type countingReader struct {
	r      io.Reader
	n      int64
	report func(int64)
	failed error
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	c.report(c.n)
	if err != nil && !errors.Is(err, io.EOF) {
		c.failed = err
	}
	return n, err
}
