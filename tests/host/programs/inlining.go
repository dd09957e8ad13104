// SPDX-License-Identifier: Apache-2.0

// main.burn <- main.middle <- main.outer <- main.main, nearly all; only the last is a function of its own,
// the compiler puts the others into it.
package main

import (
	"os"
	"strconv"
	"time"
)

var sink uint64

func burn(x, i uint64) uint64 {
	for j := uint64(0); j < 1000; j++ {
		x = x*31 + i + j
	}
	return x
}

func middle(x, i uint64) uint64 {
	return burn(x, i) + 1
}

func outer(x, i uint64) uint64 {
	return middle(x, i) + 1
}

func main() {
	seconds := 1.0
	if len(os.Args) > 1 {
		seconds, _ = strconv.ParseFloat(os.Args[1], 64)
	}
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	for time.Now().Before(end) {
		for i := uint64(0); i < 100; i++ {
			sink = outer(sink, i)
		}
	}
}
