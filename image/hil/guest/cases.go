package main

import (
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"assent.home.arpa/image/emulator/first"
	"assent.home.arpa/image/hil/report"
)

// atOnce is how many rooms are at work at a time. Most of what they do is to wait.
const atOnce = 6

// sample is a case: what hands and faults do to one box.
type sample struct {
	name  string
	part  string        // display controller; empty: ssd1306
	first func(r *room) // happens after the box took its lines and before its panel starts; may be nil
	do    func(r *room)
}

// cases are all cases, those that take longest first.
func cases() []sample {
	return slices.Concat(timeCases(), pressCases(), faultCases())
}

// runCases runs cases, several at a time, reports each, and returns how many there were.
func runCases(c *first.Console, all []sample) int {
	ports := make(chan int, atOnce)
	for port := range atOnce {
		ports <- port
	}
	var group errgroup.Group
	for _, s := range all {
		port := <-ports
		group.Go(func() error {
			defer func() { ports <- port }()
			return c.Put(report.Line{Case: runCase(c, s, port)})
		})
	}
	if err := group.Wait(); err != nil {
		c.Say("a case could not be reported: " + err.Error())
	}
	return len(all)
}

// runCase runs one case in a room of its own.
func runCase(c *first.Console, s sample, port int) *report.Case {
	r := &room{name: s.name, console: c}
	began := time.Now()
	done := make(chan struct{})
	go func() { // a case that is over before its end leaves by runtime.Goexit
		defer close(done)
		defer r.leave()
		part := s.part
		if part == "" {
			part = "ssd1306"
		}
		r.must(r.furnish(port, part))
		r.must(r.open(part))
		if s.first != nil {
			s.first(r)
		}
		r.must(r.start())
		s.do(r)
	}()
	<-done
	return &report.Case{
		Name: s.name, Outcome: r.outcome, Receipts: r.receipts, Problems: r.problems, Millis: time.Since(began).Milliseconds(),
	}
}
