// SPDX-License-Identifier: Apache-2.0

// OTLP profiles in Go: the OpenTelemetry Collector's own library (pdata) and Google's protobuf with the
// published types (go).  Neither checks an index nor interns anything when it decodes.
package main

import (
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	profiles "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"
	"kiln/gobench"
)

var kept any // what a pass made last, so that it cannot be left out

func pdataRead(file []byte) pprofileotlp.ExportRequest {
	request := pprofileotlp.NewExportRequest()
	gobench.Check(request.UnmarshalProto(file))
	return request
}

func pdataDecode(files [][]byte) gobench.Question {
	return gobench.Question{Pass: func() {
		for _, file := range files {
			kept = pdataRead(file)
		}
	}}
}

func pdataEncode(files [][]byte) gobench.Question {
	var requests []pprofileotlp.ExportRequest
	for _, file := range files {
		requests = append(requests, pdataRead(file))
	}
	return gobench.Question{Pass: func() {
		for _, request := range requests {
			out, err := request.MarshalProto()
			gobench.Check(err)
			kept = out
		}
	}}
}

// A merge consumes what it merges, so each pass reads anew, untimed.
func pdataMerge(files [][]byte) gobench.Question {
	var all []pprofile.Profiles
	return gobench.Question{
		Prepare: func() {
			all = nil
			for _, file := range files {
				all = append(all, pdataRead(file).Profiles())
			}
		},
		Pass: func() {
			merged := pprofile.NewProfiles()
			for _, one := range all {
				gobench.Check(one.MergeTo(merged))
			}
			kept = merged
		},
	}
}

func goRead(file []byte) *profiles.ProfilesData {
	data := &profiles.ProfilesData{}
	gobench.Check(proto.Unmarshal(file, data))
	return data
}

func goDecode(files [][]byte) gobench.Question {
	return gobench.Question{Pass: func() {
		for _, file := range files {
			kept = goRead(file)
		}
	}}
}

func goEncode(files [][]byte) gobench.Question {
	var messages []*profiles.ProfilesData
	for _, file := range files {
		messages = append(messages, goRead(file))
	}
	return gobench.Question{Pass: func() {
		for _, message := range messages {
			out, err := proto.Marshal(message)
			gobench.Check(err)
			kept = out
		}
	}}
}

func main() {
	gobench.Main(map[string]func([][]byte) gobench.Question{
		"pdata:otlp-decode": pdataDecode,
		"pdata:otlp-encode": pdataEncode,
		"pdata:otlp-merge":  pdataMerge,
		"go:otlp-decode":    goDecode,
		"go:otlp-encode":    goEncode,
	})
}
