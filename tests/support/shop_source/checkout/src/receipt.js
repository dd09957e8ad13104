// SPDX-License-Identifier: Apache-2.0
// Receipts, as pages.
import { template } from "./templates.js";

const ready = new Map();

export function sendReceipt(req, res) {
    const page = renderReceipt(req.order);
    res.json({ order: req.order.id, page });
}

function renderReceipt(order) {
    const known = ready.get(order.id);
    if (known)
        return known;
    const page = template("receipt").render(order);
    ready.set(order.id, page);
    return page;
}
