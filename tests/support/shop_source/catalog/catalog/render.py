# SPDX-License-Identifier: Apache-2.0
"""Products as pages and as JSON."""
import json

from .templates import Template


def render_list(products, currency):
    rows = []
    for product in products:
        rows.append({"name": product.name, "price": price_label(product, currency)})
    return Template("list.html").render(rows=rows)


def price_label(product, currency):
    best = None
    for price in product.prices:
        if price.currency != currency:
            continue
        if best is None or price.amount < best.amount:
            best = price
    return f"{best.amount / 100:.2f} {currency}" if best else "on request"


def to_json(product):
    return json.dumps({"id": product.id, "name": product.name, "prices": [vars(price) for price in product.prices]})
