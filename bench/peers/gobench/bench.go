// SPDX-License-Identifier: Apache-2.0

// Package gobench is bench/bench.h for peers in Go: the same arguments, the same line printed.
package gobench

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// Pass does it once over all files.  Prepare, where there is one, comes before each pass and is not timed.
type Question struct {
	Prepare func()
	Pass    func()
}

// Check ends the program where there is an error.
func Check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, os.Args[0]+":", err)
		os.Exit(1)
	}
}

// cpu is the CPU time of all threads, the garbage collector's too.
func cpu() time.Duration {
	var usage syscall.Rusage
	Check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func once(q Question) time.Duration {
	if q.Prepare != nil {
		q.Prepare()
	}
	start := cpu()
	q.Pass()
	return cpu() - start
}

// Main answers the question that the arguments ask: WHAT MILLISECONDS FILE...
func Main(questions map[string]func(files [][]byte) Question) {
	if len(os.Args) < 4 || questions[os.Args[1]] == nil {
		Check(fmt.Errorf("usage: WHAT MILLISECONDS FILE..."))
	}
	budget, err := strconv.Atoi(os.Args[2])
	Check(err)
	var files [][]byte
	bytes := 0
	for _, path := range os.Args[3:] {
		file, err := os.ReadFile(path)
		Check(err)
		files = append(files, file)
		bytes += len(file)
	}
	question := questions[os.Args[1]](files)
	once(question) // warm
	best, total, passes := time.Hour, time.Duration(0), 0
	for total < time.Duration(budget)*time.Millisecond {
		took := once(question)
		total += took
		passes++
		if took < best && took > 0 {
			best = took
		}
	}
	fmt.Printf("%d %.9f %.9f\n", bytes, total.Seconds()/float64(passes), best.Seconds())
}
