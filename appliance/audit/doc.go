// Package audit writes, recovers and verifies the box's one log: everything that was proposed, decided, approved, done,
// refused or lost.
package audit
