// SPDX-License-Identifier: Apache-2.0

// What the runtime itself says of addresses of its own program: reads addresses, one a line, as decimal
// distances from where main.main begins, and prints "DISTANCE NAME FILE LINE" for each function that one is
// in, innermost first.
package main

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"sort"
	"strconv"
	_ "unsafe"
)

// The functions that the last address of a stack is in, as addresses for runtime.CallersFrames().
//
//go:linkname expand runtime/pprof.runtime_expandFinalInlineFrame
func expand(stack []uintptr) []uintptr

type shape interface{ area() int }
type square struct{ side int }
type room struct{ square }

func (s square) area() int     { return times(s.side, s.side) }
func times(a, b int) int       { return plus(a*b, 0) }
func plus(a, b int) int        { return a + b }
func largest(all []shape) int  { return top(all).area() }
func top(all []shape) shape    { return sorted(all)[0] }
func generic[T any](all []T) T { return all[len(all)/2] }
func sorted(all []shape) []shape {
	sort.Slice(all, func(i, j int) bool { return all[i].area() > all[j].area() })
	return all
}

func answer(out *bufio.Writer, distance int) {
	address := uintptr(int(reflect.ValueOf(main).Pointer()) + distance)
	frames := runtime.CallersFrames(expand([]uintptr{address + 1}))
	for {
		frame, more := frames.Next()
		fmt.Fprintf(out, "%d\t%s\t%s\t%d\n", distance, frame.Function, frame.File, frame.Line)
		if !more {
			return
		}
	}
}

func main() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		distance, err := strconv.Atoi(in.Text())
		if err != nil {
			fmt.Fprintln(os.Stderr, err, largest([]shape{square{1}, room{square{generic([]int{1})}}}))
			os.Exit(1)
		}
		answer(out, distance)
	}
}
