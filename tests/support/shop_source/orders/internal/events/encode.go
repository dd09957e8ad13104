// SPDX-License-Identifier: Apache-2.0

// Package events tells others what happened to an order.
package events

import "encoding/json"

// Event is what happened.
type Event struct {
	Kind  string         `json:"kind"`
	Order int64          `json:"order"`
	Data  map[string]any `json:"data"`
}

// Publish sends events in one batch.
func Publish(out Writer, events []Event) error {
	for _, event := range events {
		line, err := encodeEvent(event)
		if err != nil {
			return err
		}
		if err := out.Write(line); err != nil {
			return err
		}
	}
	return out.Flush()
}

func encodeEvent(event Event) ([]byte, error) {
	buffer := make([]byte, 0)
	body, err := json.Marshal(event)
	if err != nil {
		return nil, err
	}
	for _, b := range body {
		buffer = append(buffer, b)
	}
	return append(buffer, '\n'), nil
}
