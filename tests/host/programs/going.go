// SPDX-License-Identifier: Apache-2.0

// Goroutines that burn (main.burnLeaf <- main.middle <- main.outer <- main.worker), grow their
// stacks (main.deep), make garbage (main.allocate) and sort through an interface.
package main

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"sync"
	"time"
)

//go:noinline
func burnLeaf(turns int) (x uint64) {
	for i := 0; i < turns; i++ {
		x = x*31 + uint64(i)
	}
	return x
}

//go:noinline
func middle() uint64 { return burnLeaf(300000) + 1 }

//go:noinline
func outer() uint64 { return middle() + 1 }

//go:noinline
func deep(n int) uint64 {
	var room [128]uint64
	if n == 0 {
		return burnLeaf(100000)
	}
	room[n%128] = deep(n-1) + 1
	return room[n%128]
}

//go:noinline
func allocate() int {
	m := make(map[string][]byte)
	for i := 0; i < 500; i++ {
		m[fmt.Sprint("key-", i)] = make([]byte, 256)
	}
	return len(m)
}

//go:noinline
func sorted(seed int) int {
	values := make([]int, 2000)
	for i := range values {
		values[i] = (i*7919 + seed) % 10007
	}
	sort.Slice(values, func(i, j int) bool { return values[i] < values[j] })
	return values[0]
}

func worker(end time.Time, wait *sync.WaitGroup) {
	defer wait.Done()
	for i := 0; time.Now().Before(end); i++ {
		outer()
		done := make(chan uint64)
		go func() { done <- deep(50) }()
		<-done
		allocate()
		sorted(i)
	}
}

func main() {
	seconds := 1.0
	if len(os.Args) > 1 {
		seconds, _ = strconv.ParseFloat(os.Args[1], 64)
	}
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	var wait sync.WaitGroup
	for i := 0; i < 2; i++ {
		wait.Add(1)
		go worker(end, &wait)
	}
	wait.Wait()
}
