package main

import (
	"encoding/binary"

	"go.etcd.io/bbolt"
)

// bolt is one bucket of a key-value store; its transactions sync twice.
type bolt struct{ *bbolt.DB }

func openBolt(path string) (peer, error) {
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket([]byte("batches"))
		return err
	})
	return bolt{db}, err
}

func (b bolt) commit(batch []byte) error {
	return b.Update(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket([]byte("batches"))
		n, err := bucket.NextSequence()
		if err != nil {
			return err
		}
		return bucket.Put(binary.BigEndian.AppendUint64(nil, n), batch)
	})
}
