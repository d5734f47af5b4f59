package conversation

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/appliance/wire"
	"assent.home.arpa/inference"
	"assent.home.arpa/inference/runs"
)

// Store keeps conversations over restarts, entry by entry, so that a power cut costs what was being said and no more. It
// holds what people said: the file is readable by its owner alone, what is deleted is overwritten in it, and deleting the
// whole file loses conversations and nothing else.
type Store struct {
	db *sql.DB
}

// kept is the stored form of an entry. An outcome is stored once: its message is made from it.
type kept struct {
	Kind    inference.Kind `json:"kind"`
	Text    string         `json:"text,omitempty"`
	Tokens  []int32        `json:"tokens,omitempty"`
	Call    string         `json:"call,omitempty"`
	Prose   string         `json:"prose,omitempty"`
	Outcome *wire.Outcome  `json:"outcome,omitempty"`
}

// schemaVersion is the file's user_version. Files of another version are refused, never converted silently.
const schemaVersion = 1

const schema = `
CREATE TABLE talks (
	id      BLOB PRIMARY KEY,
	slot    INTEGER NOT NULL,
	used    INTEGER NOT NULL,
	context INTEGER NOT NULL
) STRICT;
CREATE TABLE entries (
	talk BLOB NOT NULL REFERENCES talks (id) ON DELETE CASCADE,
	n    INTEGER NOT NULL,
	turn TEXT NOT NULL,
	body TEXT NOT NULL,
	PRIMARY KEY (talk, n)
) STRICT;
CREATE TABLE runs (
	turn TEXT PRIMARY KEY,
	talk BLOB NOT NULL REFERENCES talks (id) ON DELETE CASCADE,
	body TEXT NOT NULL
) STRICT;
PRAGMA user_version = 1;
`

// OpenStore opens or makes the database.
func OpenStore(ctx context.Context, path string) (*Store, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("conversation: store: %w", err)
	}
	f, err := os.OpenFile(abs, os.O_RDWR|os.O_CREATE, 0o600) // SQLite would make it readable by everybody
	if err != nil {
		return nil, fmt.Errorf("conversation: store: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("conversation: store: %w", err)
	}
	// NORMAL may lose the last entries to a power cut, and never the file; what was executed is in the audit.
	name := url.URL{Scheme: "file", Path: abs, RawQuery: url.Values{"_pragma": {
		"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(NORMAL)", "foreign_keys(1)", "secure_delete(1)",
	}}.Encode()}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return nil, fmt.Errorf("conversation: store: %w", err)
	}
	db.SetMaxOpenConns(1)
	s := &Store{db: db}
	if err := s.prepare(ctx); err != nil {
		db.Close()
		return nil, fmt.Errorf("conversation: store %s: %w; move the file away to start without old conversations", path, err)
	}
	return s, nil
}

// Close closes the database.
func (s *Store) Close() error { return s.db.Close() }

func (s *Store) prepare(ctx context.Context) error {
	return s.transact(ctx, func(tx *sql.Tx) error {
		var version int
		if err := tx.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version); err != nil {
			return err
		}
		switch version {
		case schemaVersion:
			return nil
		case 0:
			_, err := tx.ExecContext(ctx, schema)
			return err
		}
		return fmt.Errorf("it has version %d and not %d", version, schemaVersion)
	})
}

func (s *Store) transact(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // without effect after Commit
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// load returns a conversation, whosever it is, or nil.
func (s *Store) load(ctx context.Context, id ipc.ID) (*talk, error) {
	t := &talk{id: id}
	err := s.db.QueryRowContext(ctx, `SELECT slot, context FROM talks WHERE id = ?`, id[:]).Scan(&t.slot, &t.from)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("conversation: store: %w", err)
	}
	rows, err := s.db.QueryContext(ctx, `SELECT n, turn, body FROM entries WHERE talk = ? ORDER BY n`, id[:])
	if err != nil {
		return nil, fmt.Errorf("conversation: store: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var e entry
		var body []byte
		if err := rows.Scan(&e.n, &e.turn, &body); err != nil {
			return nil, fmt.Errorf("conversation: store: %w", err)
		}
		var k kept
		if err := json.Unmarshal(body, &k); err != nil {
			return nil, fmt.Errorf("conversation: store: entry %d: %w", e.n, err)
		}
		e.prose, e.outcome = k.Prose, k.Outcome
		e.message = inference.Message{Kind: k.Kind, Text: k.Text, Tokens: k.Tokens, Call: k.Call}
		if e.outcome != nil {
			e.message.Text = data(*e.outcome)
		}
		t.entries = append(t.entries, e)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("conversation: store: %w", err)
	}
	return t, nil
}

// append stores one entry, and with the first one the conversation. It fails where that belongs to another phone.
func (s *Store) append(ctx context.Context, slot uint32, id ipc.ID, e entry) error {
	k := kept{Kind: e.message.Kind, Tokens: e.message.Tokens, Call: e.message.Call, Prose: e.prose, Outcome: e.outcome}
	if e.outcome == nil {
		k.Text = e.message.Text
	}
	body, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("conversation: store: %w", err)
	}
	err = s.transact(ctx, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, `INSERT INTO talks (id, slot, used, context)
			VALUES (?, ?, (SELECT coalesce(max(used), 0) + 1 FROM talks), 0)
			ON CONFLICT (id) DO UPDATE SET used = excluded.used WHERE slot = excluded.slot`, id[:], slot)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n != 1 {
			return errors.Join(ErrNotFound, err)
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO entries (talk, n, turn, body) VALUES (?, ?, ?, ?)`, id[:], e.n, e.turn, string(body))
		return err
	})
	if err != nil {
		return fmt.Errorf("conversation: store: %w", err)
	}
	return nil
}

// settle ends a turn: entries before first are deleted, from is where the model's context begins, and the phone's
// conversations beyond its bound are deleted. It returns those.
func (s *Store) settle(ctx context.Context, id ipc.ID, first, from int64, run runs.Run) (gone []ipc.ID, err error) {
	body, err := json.Marshal(run)
	if err != nil {
		return nil, fmt.Errorf("conversation: store: %w", err)
	}
	err = s.transact(ctx, func(tx *sql.Tx) error {
		for _, step := range []struct {
			statement string
			args      []any
		}{
			{`UPDATE talks SET context = ? WHERE id = ?`, []any{from, id[:]}},
			{`DELETE FROM entries WHERE talk = ? AND n < ?`, []any{id[:], first}},
			{`INSERT INTO runs (turn, talk, body) VALUES (?, ?, ?)`, []any{run.ID, id[:], string(body)}},
			{`DELETE FROM runs WHERE talk = ? AND turn NOT IN (SELECT turn FROM entries WHERE talk = runs.talk)`, []any{id[:]}},
		} {
			if _, err := tx.ExecContext(ctx, step.statement, step.args...); err != nil {
				return err
			}
		}
		gone, err = s.crowdOut(ctx, tx, id)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("conversation: store: %w", err)
	}
	return gone, nil
}

func (s *Store) crowdOut(ctx context.Context, tx *sql.Tx, id ipc.ID) (gone []ipc.ID, err error) {
	rows, err := tx.QueryContext(ctx, `DELETE FROM talks WHERE id IN (
		SELECT id FROM talks WHERE slot = (SELECT slot FROM talks WHERE id = ?) ORDER BY used DESC LIMIT -1 OFFSET ?) RETURNING id`,
		id[:], maxConversations)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var b []byte
		if err := rows.Scan(&b); err != nil {
			return nil, err
		}
		if len(b) == len(ipc.ID{}) {
			gone = append(gone, ipc.ID(b))
		}
	}
	return gone, rows.Err()
}

// Run returns what a turn was made with: hashes, and the links to its model calls. It fails with ErrNotFound.
func (s *Store) Run(ctx context.Context, turn string) (runs.Run, error) {
	var body []byte
	err := s.db.QueryRowContext(ctx, `SELECT body FROM runs WHERE turn = ?`, turn).Scan(&body)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return runs.Run{}, ErrNotFound
	case err != nil:
		return runs.Run{}, fmt.Errorf("conversation: store: %w", err)
	}
	var r runs.Run
	if err := json.Unmarshal(body, &r); err != nil {
		return runs.Run{}, fmt.Errorf("conversation: store: turn %s: %w", turn, err)
	}
	return r, nil
}
