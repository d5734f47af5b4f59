package policy

import "assent.home.arpa/capabilities"

// Role is what a person is in this household. The zero value may do nothing.
type Role uint8

// The roles. Do not renumber: the numbers are in the audit and, as ipc.Role, on the sockets.
const (
	Guest Role = 1
	Adult Role = 2
	Owner Role = 3
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
func May(role Role, s capabilities.Spec) bool {
	switch role {
	case Owner, Adult:
		return true
	case Guest:
		return !NeedsPress(s) && s.Privacy == capabilities.PrivacyBox
	}
	return false
}
