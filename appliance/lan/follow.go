package lan

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// settle is waited after a change: a card that comes up changes several times.
const settle = 200 * time.Millisecond

// Follow keeps the file at path true until ctx ends. first, which may be nil, is called once it is true for the first time.
func Follow(ctx context.Context, path string, log *slog.Logger, first func()) error {
	changes, err := subscribe()
	if err != nil {
		return err
	}
	defer changes.Close()
	defer context.AfterFunc(ctx, func() { changes.Close() })()
	var noted netip.Addr
	buf := make([]byte, 64<<10)
	for {
		all, err := interfaces()
		if err != nil {
			return err
		}
		a, ok := Choose(all)
		if err := write(path, a, ok); err != nil {
			return err
		}
		if a != noted {
			log.Info("the box's address changed", "has", ok)
			noted = a
		}
		if first != nil {
			first()
			first = nil
		}
		// What changed is asked anew, so that a message that was lost (ENOBUFS) or is not understood costs nothing.
		if _, err := changes.Read(buf); err != nil && !errors.Is(err, unix.ENOBUFS) {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("lan: netlink: %w", err)
		}
		select {
		case <-time.After(settle):
		case <-ctx.Done():
			return nil
		}
	}
}

// subscribe opens a socket on which the kernel tells of links and addresses (rtnetlink(7)).
func subscribe() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("lan: netlink: %w", err)
	}
	groups := uint32(unix.RTMGRP_LINK | unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV6_IFADDR)
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("lan: netlink: %w", err)
	}
	return os.NewFile(uintptr(fd), "netlink"), nil
}
