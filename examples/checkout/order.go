// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"io"
	"regexp"
)

type line struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
	Cents    int    `json:"cents"`
}

type order struct {
	ID    string `json:"id"`
	Email string `json:"email"`
	Lines []line `json:"lines"`
	Total int    `json:"total"`
}

func parseOrder(body io.Reader) (*order, error) {
	raw, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	o := &order{}
	return o, json.Unmarshal(raw, o)
}

// validate compiles its expression for every order: what version 2 brought.
func (o *order) validate() error {
	email := regexp.MustCompile(`^[^@\s]+@[^@\s]+\.[a-z]{2,}$`)
	if !email.MatchString(o.Email) {
		return errors.New("not an e-mail address")
	}
	return nil
}

func (o *order) price() {
	o.Total = 0
	for _, l := range o.Lines {
		o.Total += l.Quantity * l.Cents
	}
}
