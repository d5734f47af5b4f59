//go:build race

package fat_test

// often is how often a stick is pulled out while every memory access is checked for races, which takes many times as long and
// finds nothing in a test of one goroutine. make test runs this package without that check too.
const often = 80
