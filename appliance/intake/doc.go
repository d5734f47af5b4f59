// Package intake takes in what people put on a card before the box's first start: the settings (assent.toml on the boot
// partition) and a model (in the import area of the data partition, see package image/card).
//
// Both run once at each start, as root, before the roles that need them. Both may lose power at any instant and then begin
// again: what was in force stays in force until what follows it is durable. What cannot be taken is said in a Problem, a text for
// the people at the box, and is never a reason not to start.
package intake
