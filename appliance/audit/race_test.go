//go:build race

package audit_test

// thin is how much more sparsely faults are tried when every memory access is checked for races, which takes many times as long
// and finds nothing in a test of one goroutine. make test runs this package without that check too.
const thin = 6
