package main

import (
	"database/sql"

	_ "modernc.org/sqlite" // the driver
)

// sqlite is one table in a database that waits for the disk at each commit, as SQLite does with a write-ahead log and
// synchronous=FULL.
type sqlite struct {
	db     *sql.DB
	insert *sql.Stmt
}

func openSQLite(path string) (peer, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE TABLE batches (seq INTEGER PRIMARY KEY, content BLOB NOT NULL)"); err != nil {
		return nil, err
	}
	insert, err := db.Prepare("INSERT INTO batches (content) VALUES (?)")
	if err != nil {
		return nil, err
	}
	return &sqlite{db: db, insert: insert}, nil
}

func (s *sqlite) commit(batch []byte) error {
	_, err := s.insert.Exec(batch)
	return err
}

func (s *sqlite) Close() error { return s.db.Close() }
