// SPDX-License-Identifier: Apache-2.0

// checkout is the service that the example profiles are of: it takes an
// order, prices it, stores it and answers in JSON.
package main

import (
	"database/sql"
	"encoding/json"
	"net/http"
)

type server struct {
	store *store
}

func main() {
	db, err := sql.Open("postgres", "dbname=shop")
	if err != nil {
		panic(err)
	}
	s := &server{store: &store{db: db}}
	http.HandleFunc("/checkout", s.checkout)
	http.HandleFunc("/cart", s.cart)
	panic(http.ListenAndServe(":8080", nil))
}

func (s *server) checkout(w http.ResponseWriter, r *http.Request) {
	order, err := parseOrder(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := order.validate(); err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	order.price()
	if err := s.store.save(r.Context(), order); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	json.NewEncoder(w).Encode(order)
}

func (s *server) cart(w http.ResponseWriter, r *http.Request) {
	order, err := s.store.load(r.Context(), r.URL.Query().Get("id"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	json.NewEncoder(w).Encode(order)
}
