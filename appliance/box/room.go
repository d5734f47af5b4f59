package box

import (
	"os"
	"path/filepath"

	"assent.home.arpa/appliance/cage"
	"assent.home.arpa/appliance/config"
	"assent.home.arpa/capabilities"
)

// Room returns what is left to a role that cages itself, and whether it does: gateway, courier, and workers by class
// ("worker-none"). Guard and model have no socket of another network, and their units alone.
func Room(c config.Config, role string) (cage.Room, bool) {
	sockets := At(c.Paths.Runtime)
	switch role {
	case "gateway":
		return gatewayRoom(c, sockets), true
	case "courier":
		return courierRoom(sockets), true
	case "worker-none":
		return workerRoom(capabilities.ClassNone), true
	case "worker-net":
		return workerRoom(capabilities.ClassNet), true
	}
	return cage.Room{}, false
}

// gatewayRoom is what the gateway needs: its own files, the places where it meets guard and model, and the hour.
func gatewayRoom(c config.Config, s Sockets) cage.Room {
	return cage.Room{
		Read:    zones(),
		Write:   []string{StateDir(c, "gateway"), os.TempDir()}, // the database may sort there
		Sockets: []string{filepath.Dir(s.Guard), filepath.Dir(s.Model)},
	}
}

// zones is where the time of day is looked up.
func zones() []string { return []string{"/etc/localtime", "/usr/share/zoneinfo"} }

// courierRoom is what the courier needs: the guard's grant key, the workers' sockets, the network, and which servers know
// names. That file is replaced whenever the network says so.
func courierRoom(s Sockets) cage.Room {
	return cage.Room{
		Read:    append(zones(), filepath.Dir(s.GrantKey), "/etc/hosts", "/etc/nsswitch.conf", "/etc/resolv.conf", cage.Beside("/etc/resolv.conf")),
		Sockets: []string{filepath.Dir(s.WorkerNone), filepath.Dir(s.WorkerNet)},
		Dials:   true,
	}
}

// workerRoom is what a call needs: of class none, what the kernel says of the box; of class net, its one connection.
func workerRoom(class capabilities.Class) cage.Room {
	if class == capabilities.ClassNone {
		return cage.Room{Read: []string{"/proc", "/sys"}}
	}
	return cage.Room{}
}
