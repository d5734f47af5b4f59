package policy

import (
	"assent.home.arpa/appliance/ipc"
	"assent.home.arpa/capabilities"
)

// NeedsPress reports whether a call of this kind waits for a press at the box. Only what is listed here does not;
// everything that is unknown, unset or new does.
func NeedsPress(s capabilities.Spec) bool {
	readOnly := s.Effect == capabilities.Read
	staysHome := s.Network == capabilities.NetworkNone || s.Network == capabilities.NetworkFeed
	noWayOut := s.Class == capabilities.ClassNone || s.Class == capabilities.ClassFiles || s.Class == capabilities.ClassLocal
	return !(readOnly && staysHome && noWayOut)
}

// May reports whether somebody of this role may propose such a call at all. A role that is unknown or unset may not.
func May(role ipc.Role, s capabilities.Spec) bool {
	switch role {
	case ipc.RoleOwner, ipc.RoleAdult:
		return true
	case ipc.RoleGuest:
		return !NeedsPress(s) && s.Privacy == capabilities.PrivacyBox
	}
	return false
}
