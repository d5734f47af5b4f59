//go:build !race

package confirm

// Thin is explained beside the other one.
const Thin = 1
