package ipc

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// ErrClosed says that the peer is gone. What was asked may or may not have happened.
var ErrClosed = errors.New("ipc: connection closed")

// maxInFlight bounds the questions that one peer may have open, and the notices of it that wait.
const maxInFlight = 64

// Client asks questions over a Conn and hands out the answers.
type Client struct {
	conn   *Conn
	notice func(Message)
	done   chan struct{}

	mu    sync.Mutex
	next  uint64
	calls map[uint64]chan Message
	err   error
}

// NewClient starts to read conn; notices (messages with id 0) go to notice, one at a time, in order.
func NewClient(conn *Conn, notice func(Message)) *Client {
	c := &Client{conn: conn, notice: notice, done: make(chan struct{}), calls: map[uint64]chan Message{}}
	go c.read()
	return c
}

func (c *Client) read() {
	defer close(c.done)
	defer c.conn.Close()
	for {
		id, m, err := c.conn.Receive()
		if err != nil {
			c.mu.Lock()
			c.err = fmt.Errorf("%w: %v", ErrClosed, err)
			c.mu.Unlock()
			return
		}
		if id == 0 {
			c.notice(m)
			continue
		}
		c.mu.Lock()
		ch := c.calls[id]
		c.mu.Unlock()
		if ch == nil {
			continue // the caller has given up
		}
		select {
		case ch <- m:
		default: // a peer that answers more often than the contract allows loses the rest
		}
	}
}

// Done is closed when the peer is gone.
func (c *Client) Done() <-chan struct{} { return c.done }

// Close ends the connection; open calls fail with ErrClosed.
func (c *Client) Close() error { return c.conn.Close() }

// Tell sends a message that has no answer.
func (c *Client) Tell(m Message) error { return c.conn.Send(0, m) }

// Call sends m and waits for its answer. Pending messages on the way are passed to interim, which may be nil. An *Error
// from the peer is returned as the error.
func (c *Client) Call(ctx context.Context, m Message, interim func(*Pending)) (Message, error) {
	ch := make(chan Message, 8)
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return nil, c.err
	}
	if len(c.calls) >= maxInFlight {
		c.mu.Unlock()
		return nil, fmt.Errorf("ipc: %d questions are open already", maxInFlight)
	}
	c.next++
	id := c.next
	c.calls[id] = ch
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.calls, id)
		c.mu.Unlock()
	}()
	if err := c.conn.Send(id, m); err != nil {
		return nil, err
	}
	for {
		select {
		case a := <-ch:
			switch a := a.(type) {
			case *Pending:
				if interim != nil {
					interim(a)
				}
			case *Error:
				return nil, a
			default:
				return a, nil
			}
		case <-c.done:
			c.mu.Lock()
			defer c.mu.Unlock()
			return nil, c.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Handler deals with one message. It may call reply several times where the contract has interim answers. The context ends
// when the peer is gone.
type Handler func(ctx context.Context, m Message, reply func(Message) error)

// Serve reads messages from conn until the peer goes or breaks the grammar, and returns when all of them are dealt with.
// Questions run in a goroutine each, messages with id 0 one after the other in their order. A peer is not read faster than
// it is dealt with: beyond maxInFlight of either sort it waits, and so does the news that it is gone. It is not cut off,
// since what floods may be many behind it, of which few mean harm.
func Serve(ctx context.Context, conn *Conn, handle Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	var open sync.WaitGroup
	defer open.Wait()
	defer cancel()
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	deal := func(id uint64, m Message) {
		handle(ctx, m, func(a Message) error { return conn.Send(id, a) })
	}
	notices := make(chan Message, maxInFlight)
	defer close(notices)
	open.Go(func() {
		for m := range notices {
			deal(0, m)
		}
	})
	slots := make(chan struct{}, maxInFlight)
	for {
		id, m, err := conn.Receive()
		if err != nil {
			return err
		}
		if id == 0 {
			select {
			case notices <- m:
			case <-ctx.Done():
				return ctx.Err()
			}
			continue
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		open.Go(func() {
			defer func() { <-slots }()
			deal(id, m)
		})
	}
}
