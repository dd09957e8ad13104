// SPDX-License-Identifier: Apache-2.0

// Go that calls C that calls Go: main.work <- main.callC <- ... <- c_outer <- goBack <- burnInGo, and
// burn_in_c.
package main

/*
#include <stdint.h>
extern void goBack(void);
static __attribute__((noinline)) void burn_in_c(void)
{
    for (uint64_t i = 0; i < 300000; i++)
        __asm__ volatile("" : "+r"(i));
}
static __attribute__((noinline)) void c_outer(void)
{
    burn_in_c();
    goBack();
    __asm__ volatile("" ::: "memory");
}
*/
import "C"

import (
	"os"
	"strconv"
	"time"
)

//go:noinline
func burnInGo(turns int) (x uint64) {
	for i := 0; i < turns; i++ {
		x = x*31 + uint64(i)
	}
	return x
}

//export goBack
func goBack() { burnInGo(300000) }

//go:noinline
func callC() { C.c_outer() }

func main() {
	seconds := 1.0
	if len(os.Args) > 1 {
		seconds, _ = strconv.ParseFloat(os.Args[1], 64)
	}
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	for time.Now().Before(end) {
		callC()
	}
}
