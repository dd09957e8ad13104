// SPDX-License-Identifier: Apache-2.0
// Orders: made, listed, shown.
import { validateCart } from "./cart.js";
import { publish } from "./events.js";
import { scoreFraud } from "./fraud.js";
import { priceCart } from "./pricing.js";
import { redis } from "./redis.js";
import { reserveStock } from "./stock.js";
import { client } from "./database.js";

export async function createOrder(req, res) {
    const cart = validateCart(req.body);
    const price = await priceCart(cart);
    await reserveStock(cart);
    const risk = scoreFraud(cart, price);
    const order = await saveOrder({ cart, price, risk });
    publish("order.created", order);
    res.status(201).json(order);
}

async function saveOrder(order) {
    const answer = await client.query("insert into orders (cart, price, risk) values ($1, $2, $3) returning id", [order.cart, order.price, order.risk]);
    return { id: answer.rows[0].id, ...order };
}

export async function listOrders(req, res) {
    const answer = await client.query("select * from orders where buyer = $1 order by id desc limit 50", [req.user]);
    res.json(answer.rows.map(serialize));
}

export async function getOrder(req, res) {
    const text = await redis.get(`order:${req.params.id}`);
    res.json(JSON.parse(text));
}

function serialize(order) {
    return JSON.stringify({ ...order, at: order.at.toISOString() });
}

export function resumeOrder(order) {
    emitEvent("order.resumed", order);
}
