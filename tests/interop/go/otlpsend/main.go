// SPDX-License-Identifier: Apache-2.0

// otlpsend sends OTLP profiles the way the OpenTelemetry Collector's exporters do, with its library and
// gRPC's, and prints what the server said: `ok REJECTED MESSAGE`, or `CODE MESSAGE` of a gRPC refusal.
//
//	otlpsend ADDRESS [gzip] < REQUEST
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "otlpsend:", err)
		os.Exit(1)
	}
}

func main() {
	if len(os.Args) < 2 {
		check(fmt.Errorf("usage: otlpsend ADDRESS [gzip]"))
	}
	in, err := io.ReadAll(os.Stdin)
	check(err)
	request := pprofileotlp.NewExportRequest()
	check(request.UnmarshalProto(in))
	connection, err := grpc.NewClient(os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	check(err)
	defer connection.Close()
	var options []grpc.CallOption
	if len(os.Args) > 2 && os.Args[2] == "gzip" {
		options = append(options, grpc.UseCompressor(gzip.Name))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	answer, err := pprofileotlp.NewGRPCClient(connection).Export(ctx, request, options...)
	if err != nil {
		refusal := status.Convert(err)
		fmt.Println(refusal.Code(), refusal.Message())
		for _, detail := range refusal.Details() {
			fmt.Printf("detail %T %v\n", detail, detail)
		}
		return
	}
	partial := answer.PartialSuccess()
	fmt.Println("ok", partial.RejectedProfiles(), partial.ErrorMessage())
}
