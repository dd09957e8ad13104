// SPDX-License-Identifier: Apache-2.0

// pprof with google/pprof's own library, which is what `go tool pprof` reads with.
package main

import (
	"bytes"

	"github.com/google/pprof/profile"
	"kiln/gobench"
)

var kept any // what a pass made last, so that it cannot be left out

func read(file []byte) *profile.Profile {
	p, err := profile.Parse(bytes.NewReader(file))
	gobench.Check(err)
	return p
}

func parse(files [][]byte) gobench.Question {
	return gobench.Question{Pass: func() {
		for _, file := range files {
			kept = read(file)
		}
	}}
}

func write(files [][]byte) gobench.Question {
	var all []*profile.Profile
	for _, file := range files {
		all = append(all, read(file))
	}
	return gobench.Question{Pass: func() {
		for _, p := range all {
			var out bytes.Buffer
			gobench.Check(p.WriteUncompressed(&out))
			kept = out
		}
	}}
}

func merge(files [][]byte) gobench.Question {
	var all []*profile.Profile
	for _, file := range files {
		all = append(all, read(file))
	}
	return gobench.Question{Pass: func() {
		merged, err := profile.Merge(all)
		gobench.Check(err)
		kept = merged
	}}
}

func main() {
	gobench.Main(map[string]func([][]byte) gobench.Question{
		"pprof-parse":    parse,
		"pprof-parse-gz": parse,
		"pprof-merge":    merge,
		"pprof-write":    write,
	})
}
