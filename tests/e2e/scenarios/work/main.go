// SPDX-License-Identifier: Apache-2.0

// A program as the guides write it: net/http/pprof beside some work.  The address comes from the command line instead of :8080,
// and doWork is kept from being inlined or optimised away, so that a profile has something to show.
package main

import (
	"log"
	"net/http"
	_ "net/http/pprof" // Import for side effects: registers HTTP handlers
	"os"
	"time"
)

func main() {
	// Start a background goroutine to simulate work
	go func() {
		for {
			doWork()
			time.Sleep(100 * time.Microsecond)
		}
	}()

	// Start an HTTP server that also exposes pprof endpoints
	// http://localhost:8080/debug/pprof/
	log.Println("Starting server on", os.Args[1])
	log.Fatal(http.ListenAndServe(os.Args[1], nil))
}

var sum int
var bytes []byte

//go:noinline
func doWork() {
	// Simulate some CPU-intensive work
	for i := 0; i < 1000000; i++ {
		sum += i * i
	}
	// Simulate some memory allocation
	bytes = make([]byte, 1024)
}
