// SPDX-License-Identifier: Apache-2.0

// peer measures google/pprof on the files it is given, and prints the lines that pprof.c prints.
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/google/pprof/profile"
)

const rounds = 20

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func parse(data []byte) *profile.Profile {
	p, err := profile.ParseData(data)
	check(err)
	return p
}

func measure(name, path string, size int, work func()) {
	best := time.Hour
	for i := 0; i < rounds; i++ {
		start := time.Now()
		work()
		if took := time.Since(start); took < best {
			best = took
		}
	}
	fmt.Printf("%s\t%s\t%d\t%.3f\n", name, filepath.Base(path), size, best.Seconds()*1e3)
}

func main() {
	for _, path := range os.Args[1:] {
		data, err := os.ReadFile(path)
		check(err)
		unpacked, err := gzip.NewReader(bytes.NewReader(data))
		check(err)
		raw, err := io.ReadAll(unpacked)
		check(err)
		measure("parse-raw", path, len(raw), func() { parse(raw) })
		measure("parse-gzip", path, len(raw), func() { parse(data) })
		p := parse(raw)
		measure("write-raw", path, len(raw), func() { check(p.WriteUncompressed(io.Discard)) })
		measure("merge-two-gzip", path, 2*len(raw), func() {
			_, err := profile.Merge([]*profile.Profile{parse(data), parse(data)})
			check(err)
		})
	}
}
