//go:build !race

package audit_test

// thin is explained beside the other one.
const thin = 1
