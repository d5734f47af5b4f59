// Package boardtest holds parts that behave like those on the real board, down to the bytes: display controllers on an I2C
// bus that know the commands of their data sheets and no others, and a kernel with GPIO chips. Both fail when told to.
package boardtest
