//go:build !race

package fat_test

// often is explained beside the other one.
const often = 8
