// SPDX-License-Identifier: Apache-2.0

// otlpdata reads OTLP profiles as the OpenTelemetry Collector receives them and writes them as it sends
// them, with its own library.
//
//	otlpdata proto|json proto|json < IN > OUT
package main

import (
	"fmt"
	"io"
	"os"

	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "otlpdata:", err)
		os.Exit(1)
	}
}

func main() {
	if len(os.Args) != 3 {
		check(fmt.Errorf("usage: otlpdata proto|json proto|json"))
	}
	request := pprofileotlp.NewExportRequest()
	read := map[string]func([]byte) error{"proto": request.UnmarshalProto, "json": request.UnmarshalJSON}
	write := map[string]func() ([]byte, error){"proto": request.MarshalProto, "json": request.MarshalJSON}
	in, err := io.ReadAll(os.Stdin)
	check(err)
	check(read[os.Args[1]](in))
	out, err := write[os.Args[2]]()
	check(err)
	_, err = os.Stdout.Write(out)
	check(err)
}
