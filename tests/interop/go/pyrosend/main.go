// SPDX-License-Identifier: Apache-2.0

// pyrosend is a program that Pyroscope's Go library profiles: it burns CPU, allocates and waits for a lock for
// some seconds, and uploads to the server it is told.
//
//	pyrosend http://127.0.0.1:4040 SECONDS
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/grafana/pyroscope-go"
)

var sink [][]byte

//go:noinline
func hotLoop(until time.Time) (n uint64) {
	for time.Now().Before(until) {
		for i := uint64(0); i < 1_000_000; i++ {
			n += i * i
		}
	}
	return n
}

//go:noinline
func allocateMuch() {
	for i := 0; i < 200; i++ {
		sink = append(sink, make([]byte, 64<<10))
	}
}

//go:noinline
func waitForLock(lock *sync.Mutex) {
	lock.Lock()
	time.Sleep(5 * time.Millisecond)
	lock.Unlock()
}

func main() {
	seconds, err := strconv.Atoi(os.Args[2])
	if err != nil {
		panic(err)
	}
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	profiler, err := pyroscope.Start(pyroscope.Config{
		ApplicationName: "pyrosend.app",
		ServerAddress:   os.Args[1],
		UploadRate:      2 * time.Second,
		Tags:            map[string]string{"region": "eu-1"},
		ProfileTypes: []pyroscope.ProfileType{
			pyroscope.ProfileCPU, pyroscope.ProfileAllocObjects, pyroscope.ProfileAllocSpace,
			pyroscope.ProfileInuseObjects, pyroscope.ProfileInuseSpace, pyroscope.ProfileGoroutines,
			pyroscope.ProfileMutexCount, pyroscope.ProfileMutexDuration, pyroscope.ProfileBlockCount,
			pyroscope.ProfileBlockDuration,
		},
	})
	if err != nil {
		panic(err)
	}
	var lock sync.Mutex
	until := time.Now().Add(time.Duration(seconds) * time.Second)
	for time.Now().Before(until) {
		var group sync.WaitGroup
		for i := 0; i < 4; i++ {
			group.Add(1)
			go func() { defer group.Done(); waitForLock(&lock) }()
		}
		allocateMuch()
		hotLoop(time.Now().Add(200 * time.Millisecond))
		group.Wait()
	}
	profiler.Flush(true)
	if err := profiler.Stop(); err != nil {
		panic(err)
	}
	fmt.Println("sent")
}
