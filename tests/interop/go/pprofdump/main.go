// SPDX-License-Identifier: Apache-2.0

// pprofdump prints all that a pprof says, without its ids, so that two files can be compared as text.
// It reads with google/pprof's own library: what it prints is what go tool pprof sees.
//
//	pprofdump FILE            everything
//	pprofdump -proto FILE OUT the profile as the library writes it
package main

import (
	"bufio"
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/google/pprof/profile"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "pprofdump:", err)
		os.Exit(1)
	}
}

func read(path string) *profile.Profile {
	file, err := os.Open(path)
	check(err)
	defer file.Close()
	p, err := profile.Parse(file)
	check(err)
	return p
}

func mappingText(m *profile.Mapping) string {
	if m == nil {
		return "-"
	}
	return fmt.Sprintf("%x-%x+%x %q %q %v %v %v %v", m.Start, m.Limit, m.Offset, m.File, m.BuildID,
		m.HasFunctions, m.HasFilenames, m.HasLineNumbers, m.HasInlineFrames)
}

func locationText(l *profile.Location) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%x folded=%v [%s]", l.Address, l.IsFolded, mappingText(l.Mapping))
	for _, line := range l.Line {
		f := line.Function
		fmt.Fprintf(&b, " | %q %q %q:%d %d:%d", f.Name, f.SystemName, f.Filename, f.StartLine,
			line.Line, line.Column)
	}
	return b.String()
}

func labelText(s *profile.Sample) string {
	var all []string
	for key, values := range s.Label {
		all = append(all, fmt.Sprintf("%q=%q", key, values))
	}
	for key, values := range s.NumLabel {
		units := make([]string, len(values))
		copy(units, s.NumUnit[key])
		all = append(all, fmt.Sprintf("%q=%d%q", key, values, units))
	}
	sort.Strings(all)
	return strings.Join(all, " ")
}

// unique keeps the first of equal lines: a dictionary holds nothing twice.
func unique(lines []string) []string {
	seen := map[string]bool{}
	var kept []string
	for _, line := range lines {
		if !seen[line] {
			seen[line] = true
			kept = append(kept, line)
		}
	}
	return kept
}

func dump(w *bufio.Writer, p *profile.Profile) {
	fmt.Fprintf(w, "time %d duration %d period %d %s/%s\n", p.TimeNanos, p.DurationNanos, p.Period,
		p.PeriodType.Type, p.PeriodType.Unit)
	fmt.Fprintf(w, "default %q drop %q keep %q doc %q comments %q\n", p.DefaultSampleType, p.DropFrames,
		p.KeepFrames, p.DocURL, p.Comments)
	for _, t := range p.SampleType {
		fmt.Fprintf(w, "type %s/%s\n", t.Type, t.Unit)
	}
	var mappings, locations []string
	for _, m := range p.Mapping {
		mappings = append(mappings, mappingText(m))
	}
	text := map[*profile.Location]string{}
	for _, l := range p.Location {
		text[l] = locationText(l)
		locations = append(locations, text[l])
	}
	fmt.Fprintln(w, "mappings\n"+strings.Join(unique(mappings), "\n"))
	fmt.Fprintln(w, "locations\n"+strings.Join(unique(locations), "\n"))
	for _, s := range p.Sample {
		fmt.Fprintf(w, "sample %d {%s}\n", s.Value, labelText(s))
		for _, l := range s.Location {
			fmt.Fprintln(w, "  "+text[l])
		}
	}
}

func main() {
	if len(os.Args) == 4 && os.Args[1] == "-proto" {
		out, err := os.Create(os.Args[3])
		check(err)
		check(read(os.Args[2]).Write(out))
		check(out.Close())
		return
	}
	w := bufio.NewWriter(os.Stdout)
	dump(w, read(os.Args[1]))
	check(w.Flush())
}
