// SPDX-License-Identifier: Apache-2.0

// A program as the guides write it: pyroscope-go with its five profile types.  The address of the server comes from the
// command line instead of http://pyroscope:4040, and startServer handles orders for some seconds.
//
//	order-service http://127.0.0.1:4040 SECONDS
package main

import (
	"encoding/json"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/grafana/pyroscope-go"
)

var live []string

//go:noinline
func parseOrder(text string) (n uint64) {
	for round := 0; round < 400; round++ {
		for i := 0; i < len(text); i++ {
			n = n*31 + uint64(text[i])
		}
	}
	return n
}

//go:noinline
func serializeResponse(n uint64) string {
	answer := ""
	for i := 0; i < 40; i++ {
		answer += strings.Repeat(strconv.FormatUint(n, 36), 40)
	}
	return answer
}

//go:noinline
func handleRequest(text string) {
	answer := serializeResponse(parseOrder(text))
	if len(live) < 200 {
		live = append(live, answer)
	}
}

func startServer() {
	order, _ := json.Marshal(map[string]string{"order": strings.Repeat("x", 20000)})
	seconds, err := strconv.Atoi(os.Args[2])
	if err != nil {
		panic(err)
	}
	for until := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(until); {
		handleRequest(string(order))
	}
}

func main() {
	// Set the memory profiling rate
	// 1 means profile every allocation; 512*1024 samples 1 in every 512KB
	runtime.MemProfileRate = 512 * 1024

	pyroscope.Start(pyroscope.Config{
		ApplicationName: "order-service",
		ServerAddress:   os.Args[1],
		ProfileTypes: []pyroscope.ProfileType{
			pyroscope.ProfileCPU,
			pyroscope.ProfileAllocObjects, // Number of allocations
			pyroscope.ProfileAllocSpace,   // Bytes allocated
			pyroscope.ProfileInuseObjects, // Currently live objects
			pyroscope.ProfileInuseSpace,   // Currently live bytes
		},
	})

	// Your application code here
	startServer()
}
