package box

import (
	"context"
	"log/slog"
	"net"
	"os"
	"time"

	"assent.home.arpa/appliance/cage"
	"assent.home.arpa/appliance/clock"
	"assent.home.arpa/appliance/config"
	"assent.home.arpa/appliance/courier"
	"assent.home.arpa/appliance/worker"
	"assent.home.arpa/capabilities"
	"assent.home.arpa/capabilities/health"
	"assent.home.arpa/capabilities/websearch"
)

// Courier runs the courier of a box. addresses says where connections may lead: courier.NewHousePolicy on a box. It confines
// the whole process, for ever.
func Courier(ctx context.Context, c config.Config, l net.Listener, peers Peers, addresses courier.AddressPolicy, log *slog.Logger, life Life) error {
	boot, err := BootID()
	if err != nil {
		return err
	}
	sockets := At(c.Paths.Runtime)
	if err := cage.Enter(log, courierRoom(sockets)); err != nil {
		return err
	}
	return courier.Run(ctx, courier.Options{
		Guard: l, GuardUID: peers.Guard, GrantKeyFile: sockets.GrantKey, Clock: clock.System(), BootID: boot,
		Workers: sockets.Workers(), Addresses: addresses, Resolver: &net.Resolver{PreferGo: true}, Log: log,
		Ready: life.Ready, Watchdog: life.Watchdog,
	})
}

// Worker makes one call on conn, in a process that has no other business.
func Worker(ctx context.Context, c config.Config, class capabilities.Class, conn *net.UnixConn, peers Peers, log *slog.Logger) error {
	o := worker.Options{
		Class: class, CourierUID: peers.Courier, Clock: clock.System(), Log: log,
		Handlers: []capabilities.Handler{
			health.Handler{Root: os.DirFS("/"), State: c.Paths.State},
			websearch.MediaWikiHandler(date),
			websearch.SearXNGHandler(date),
		},
	}
	room := workerRoom(class)
	o.Read, o.Write = room.Read, room.Write
	return worker.Run(ctx, conn, o)
}

// date is the wall clock, or the zero time where nobody ever set it.
func date() time.Time {
	now, state := clock.System().Wall()
	if state == clock.Unset {
		return time.Time{}
	}
	return now
}
