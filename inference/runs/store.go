package runs

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// Errors of a Store.
var (
	ErrNotFound = errors.New("runs: no such invocation")
	// ErrForgotten says that the payload was deleted. The digest is still there.
	ErrForgotten = errors.New("runs: the invocation's payload was deleted")
	// ErrAltered says that a stored payload does not have its digest.
	ErrAltered = errors.New("runs: the stored invocation was altered")
	ErrExists  = errors.New("runs: an invocation with this id is stored already")
)

// Retention bounds a Store; the oldest records go first, with their events.
type Retention struct {
	Invocations int   // at least 1
	Bytes       int64 // of payloads; at least MaxInvocation
}

// DefaultRetention is about a month of an ordinary household.
func DefaultRetention() Retention { return Retention{Invocations: 5000, Bytes: 64 << 20} }

// Store keeps invocations and events in one SQLite file. What Append has returned for survives a crash or a power cut at
// any later instant. Its methods may be called from several goroutines.
type Store struct {
	db   *sql.DB
	keep Retention
}

// schemaVersion is the file's user_version. Files of another version are refused, never converted silently.
const schemaVersion = 1

const schema = `
CREATE TABLE invocations (
	seq    INTEGER PRIMARY KEY AUTOINCREMENT,
	id     TEXT NOT NULL UNIQUE,
	run    TEXT NOT NULL,
	digest BLOB NOT NULL,
	body   BLOB
) STRICT;
CREATE INDEX invocations_run ON invocations (run, seq);
CREATE TABLE events (
	seq        INTEGER PRIMARY KEY AUTOINCREMENT,
	invocation INTEGER NOT NULL REFERENCES invocations (seq) ON DELETE CASCADE,
	call       TEXT NOT NULL,
	audit      TEXT NOT NULL,
	status     TEXT NOT NULL,
	code       TEXT NOT NULL,
	at         INTEGER NOT NULL
) STRICT;
CREATE INDEX events_invocation ON events (invocation, seq);
PRAGMA user_version = 1;
`

// Open opens the file at path, creating it readable by its owner alone.
func Open(ctx context.Context, path string, keep Retention) (*Store, error) {
	if keep.Invocations < 1 || keep.Bytes < MaxInvocation {
		return nil, fmt.Errorf("runs: retention must allow at least one invocation of %d bytes", MaxInvocation)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("runs: %w", err)
	}
	f, err := os.OpenFile(abs, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("runs: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("runs: %w", err)
	}
	// FULL makes each commit wait for the medium; secure_delete overwrites what is deleted.
	name := url.URL{Scheme: "file", Path: abs, RawQuery: url.Values{"_pragma": {
		"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)", "secure_delete(1)",
	}}.Encode()}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return nil, fmt.Errorf("runs: %w", err)
	}
	db.SetMaxOpenConns(1)
	s := &Store{db, keep}
	if err := s.prepare(ctx); err != nil {
		db.Close()
		return nil, err
	}
	return s, nil
}

// Close closes the file.
func (s *Store) Close() error { return s.db.Close() }

func (s *Store) prepare(ctx context.Context) error {
	return s.transact(ctx, func(tx *sql.Tx) error {
		var version int
		if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
			return err
		}
		switch version {
		case schemaVersion:
			return nil
		case 0:
			_, err := tx.ExecContext(ctx, schema)
			return err
		}
		return fmt.Errorf("the file has version %d and not %d; move it away to begin anew", version, schemaVersion)
	})
}

func (s *Store) transact(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("runs: %w", err)
	}
	defer tx.Rollback() // without effect after Commit
	if err := do(tx); err != nil {
		return fmt.Errorf("runs: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("runs: %w", err)
	}
	return nil
}

// Append stores r and returns its link, and deletes what Retention no longer allows. It fails with ErrInvalid and
// ErrExists.
func (s *Store) Append(ctx context.Context, r RunInvocation) (Link, error) {
	body, err := r.Canonical()
	if err != nil {
		return Link{}, err
	}
	link := Link{r.ID, sha256.Sum256(body)}
	err = s.transact(ctx, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, "INSERT INTO invocations (id, run, digest, body) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
			r.ID, r.Run, link.Digest[:], body)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return errors.Join(ErrExists, err)
		}
		return s.prune(ctx, tx)
	})
	if err != nil {
		return Link{}, err
	}
	return link, nil
}

// prune deletes the oldest records beyond the retention. The newest is never among them, since it fits by itself.
func (s *Store) prune(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM invocations WHERE seq IN (
		SELECT seq FROM (
			SELECT seq, row_number() OVER newest AS n, sum(coalesce(length(body), 0)) OVER newest AS total
			FROM invocations WINDOW newest AS (ORDER BY seq DESC)
		) WHERE n > ? OR total > ?)`, s.keep.Invocations, s.keep.Bytes)
	return err
}

// AppendEvent stores e. It fails with ErrNotFound where its invocation is not there.
func (s *Store) AppendEvent(ctx context.Context, e ToolCallEvent) error {
	return s.transact(ctx, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, `INSERT INTO events (invocation, call, audit, status, code, at)
			SELECT seq, ?, ?, ?, ?, ? FROM invocations WHERE id = ?`, e.Call, e.Audit, e.Status, e.Code, e.At.UnixMilli(), e.Invocation)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return errors.Join(ErrNotFound, err)
		}
		return nil
	})
}

// Events returns the events of one invocation, in order.
func (s *Store) Events(ctx context.Context, invocation string) ([]ToolCallEvent, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT call, audit, status, code, at FROM events
		WHERE invocation = (SELECT seq FROM invocations WHERE id = ?) ORDER BY seq`, invocation)
	if err != nil {
		return nil, fmt.Errorf("runs: %w", err)
	}
	defer rows.Close()
	var out []ToolCallEvent
	for rows.Next() {
		e := ToolCallEvent{Invocation: invocation}
		var at int64
		if err := rows.Scan(&e.Call, &e.Audit, &e.Status, &e.Code, &at); err != nil {
			return nil, fmt.Errorf("runs: %w", err)
		}
		e.At = time.UnixMilli(at).UTC()
		out = append(out, e)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("runs: %w", err)
	}
	return out, nil
}

// Get returns one record, checked against its digest. It fails with ErrNotFound, ErrForgotten and ErrAltered.
func (s *Store) Get(ctx context.Context, id string) (RunInvocation, error) {
	var digest, body []byte
	err := s.db.QueryRowContext(ctx, "SELECT digest, body FROM invocations WHERE id = ?", id).Scan(&digest, &body)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return RunInvocation{}, ErrNotFound
	case err != nil:
		return RunInvocation{}, fmt.Errorf("runs: %w", err)
	case body == nil:
		return RunInvocation{}, ErrForgotten
	}
	if sum := sha256.Sum256(body); string(sum[:]) != string(digest) {
		return RunInvocation{}, ErrAltered
	}
	return Decode(body)
}

// List returns the links of a run's invocations, in order; also of those whose payload was deleted by Forget.
func (s *Store) List(ctx context.Context, run string) ([]Link, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT id, digest FROM invocations WHERE run = ? ORDER BY seq", run)
	if err != nil {
		return nil, fmt.Errorf("runs: %w", err)
	}
	defer rows.Close()
	var out []Link
	for rows.Next() {
		var l Link
		var digest []byte
		if err := rows.Scan(&l.Ref, &digest); err != nil {
			return nil, fmt.Errorf("runs: %w", err)
		}
		if len(digest) != len(l.Digest) {
			return nil, ErrAltered
		}
		copy(l.Digest[:], digest)
		out = append(out, l)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("runs: %w", err)
	}
	return out, nil
}

// Forget deletes a payload and keeps its digest. When it returns, the payload is in none of the store's files.
func (s *Store) Forget(ctx context.Context, id string) error {
	err := s.transact(ctx, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, "UPDATE invocations SET body = NULL WHERE id = ?", id)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return errors.Join(ErrNotFound, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	// The log ahead of the file still has the old pages.
	if _, err := s.db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return fmt.Errorf("runs: %w", err)
	}
	return nil
}
