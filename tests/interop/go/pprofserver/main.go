// SPDX-License-Identifier: Apache-2.0

// A program that serves its profiles and allocates on demand, counting every byte.
package main

import (
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"runtime"
	"strconv"
	"sync"
)

var kept [][]byte

//go:noinline
func allocate(n int) {
	for i := 0; i < n; i++ {
		kept = append(kept, make([]byte, 1024))
	}
	kept = nil
}

// Work that a CPU profile sees and that a mutex is fought for.
func burn(lock *sync.Mutex) {
	x := 1.0
	for {
		lock.Lock()
		for i := 0; i < 1e6; i++ {
			x = x*1.0000001 + 1/x
		}
		lock.Unlock()
	}
}

func init() {
	runtime.MemProfileRate = 1
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
}

func main() {
	var lock sync.Mutex
	go burn(&lock)
	go burn(&lock)
	http.HandleFunc("/allocate", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		allocate(n)
		// What was allocated shows once the cycle after it has ended.
		runtime.GC()
		runtime.GC()
		fmt.Fprintln(w, "done")
	})
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	fmt.Fprintln(os.Stderr, http.Serve(listener, nil))
}
