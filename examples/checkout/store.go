// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"database/sql"
)

type store struct {
	db *sql.DB
}

func (s *store) save(ctx context.Context, o *order) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for _, l := range o.Lines {
		if _, err := tx.ExecContext(ctx, "insert into lines values ($1, $2, $3)",
			o.ID, l.SKU, l.Quantity); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (s *store) load(ctx context.Context, id string) (*order, error) {
	rows, err := s.db.QueryContext(ctx, "select sku, quantity from lines where id = $1", id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	o := &order{ID: id}
	for rows.Next() {
		var l line
		if err := rows.Scan(&l.SKU, &l.Quantity); err != nil {
			return nil, err
		}
		o.Lines = append(o.Lines, l)
	}
	return o, rows.Err()
}
