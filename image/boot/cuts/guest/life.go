package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"assent.home.arpa/appliance/audit"
	"assent.home.arpa/appliance/audit/audittest"
	"assent.home.arpa/appliance/clock/clocktest"
	"assent.home.arpa/capabilities"
)

// known is what somebody outside knows of a log at one moment.
type known struct {
	head    audit.Head         // the newest seal that was acknowledged
	intents []audit.Seq        // executed on the word of these
	settled map[audit.Seq]bool // and of these the outcome was acknowledged
}

// life is a log that is used, and what its user was told at each moment.
type life struct {
	dir   string
	clock *clocktest.Clock
	mark  func(string) error
	log   *audit.Log
	n     byte
	under []audit.Intent
	blobs []audit.Seq
	now   known
	told  []known // by the number of the mark
	err   error
}

// live uses a log in dir as a busy household does for some days, and marks each moment at which somebody was told something.
func live(dir string, mark func(string) error) ([]known, error) {
	l := &life{dir: dir, clock: clocktest.New(), mark: mark}
	l.open()
	for range 3 {
		for range 4 {
			l.begin(audittest.Automatic(l.next()))
			l.finish()
			l.refuse()
			l.begin(audittest.Required(l.clock, l.next())) // two at a time
			l.begin(audittest.Automatic(l.next()))
			l.finish()
			l.finish()
			l.blob(3000)
		}
		for range 5 { // until the segment is full, some days long
			l.blob(audit.MaxBlob)
		}
		l.clock.Advance(25 * time.Hour) // another epoch
		l.begin(audittest.Automatic(l.next()))
		l.redact()
		l.close()
		l.open() // with a call under way
	}
	for range 6 { // beyond the quota, but for what somebody at the box gives up
		l.barrier(audit.Entry{Payload: audit.Export{Last: l.head().Seq, OK: true}})
		l.prune()
		for range 7 {
			l.blob(audit.MaxBlob)
		}
	}
	l.prune()
	l.begin(audittest.Automatic(l.next()))
	l.finish()
	l.close()
	return l.told, l.err
}

func (l *life) next() byte {
	l.n++
	return l.n
}

func (l *life) head() audit.Head {
	if l.err != nil {
		return audit.Head{}
	}
	return l.log.Head()
}

func (l *life) options() audit.Options {
	o := audittest.Options(l.clock, nil)
	o.Dir, o.Quota = l.dir, quota
	return o
}

// do runs a step where none has failed. Then its user was told, and says so.
func (l *life) do(step func() error) {
	if l.err != nil {
		return
	}
	if l.err = step(); l.err != nil {
		return
	}
	if h := l.log.Head(); h.Seq > l.now.head.Seq {
		l.now.head = h
	}
	at := known{l.now.head, append([]audit.Seq(nil), l.now.intents...), map[audit.Seq]bool{}}
	for seq := range l.now.settled {
		at.settled[seq] = true
	}
	l.told = append(l.told, at)
	l.err = l.mark(fmt.Sprint(len(l.told) - 1))
}

func (l *life) open() {
	if l.err != nil {
		return
	}
	l.do(func() (err error) {
		l.log, err = audit.Open(context.Background(), l.options())
		return err
	})
}

func (l *life) close() {
	if l.log == nil {
		return
	}
	if err := l.log.Close(); err != nil && l.err == nil {
		l.err = err
	}
	l.under = nil
}

func (l *life) barrier(e audit.Entry) (seqs []audit.Seq) {
	l.do(func() (err error) {
		seqs, err = l.log.Barrier(context.Background(), e)
		return err
	})
	return seqs
}

func (l *life) blob(size int) {
	e, _ := audit.BlobOf(audit.BlobRaw, [16]byte{}, bytes.Repeat([]byte{l.next()}, size))
	l.blobs = append(l.blobs, l.barrier(e)...)
}

// begin lets a call run: from here on its effect is in the world.
func (l *life) begin(c audittest.Call) {
	l.do(func() error {
		i, err := l.log.Intend(context.Background(), c.Entries(), c.Intent, c.Inv)
		if err == nil {
			l.now.intents = append(l.now.intents, i.Seq())
			l.under = append(l.under, i)
		}
		return err
	})
}

func (l *life) finish() {
	l.do(func() error {
		i := l.under[0]
		l.under = l.under[1:]
		_, err := l.log.Effect(context.Background(), i, audit.EffectRecord{Status: capabilities.Done})
		if err == nil {
			if l.now.settled == nil {
				l.now.settled = map[audit.Seq]bool{}
			}
			l.now.settled[i.Seq()] = true
		}
		return err
	})
}

// refuse appends what nobody waits for.
func (l *life) refuse() {
	c := audittest.Automatic(l.next())
	l.do(func() error {
		return l.log.Append(context.Background(),
			audit.Entry{Inv: c.Inv, Payload: c.Proposal},
			audit.Entry{Inv: c.Inv, Payload: audit.Decision{Stage: capabilities.StageResolve, Verdict: audit.Refuse, Status: capabilities.Rejected, Code: capabilities.CodeUnknownCapability}})
	})
}

// prune gives up all but the last two segments, which stay.
func (l *life) prune() {
	if l.err != nil || l.log.Room().Last < l.log.Room().First+2 {
		return
	}
	approved := l.barrier(audit.Entry{Payload: audit.Admin{Action: audit.AdminPrune, Outcome: audit.Approved, By: audit.ByBox}})
	l.do(func() error { return l.log.Prune(context.Background(), l.log.Room().Last-2, approved[0]) })
}

// redact removes the texts of all blobs so far.
func (l *life) redact() {
	seqs := l.blobs
	l.blobs = nil
	l.do(func() error {
		_, err := l.log.Redact(context.Background(), audit.RedactOptions{Seqs: seqs, By: audit.ByBox, Reason: "asked for"})
		return err
	})
}
