//go:build race

package confirm

// Thin is how much more sparsely sequences are tried when every memory access is checked for races, which takes many times as long
// and finds nothing in a machine of one goroutine. make test runs this package without that check too.
const Thin = 6
