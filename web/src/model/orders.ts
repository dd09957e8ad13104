// SPDX-License-Identifier: Apache-2.0
// Boosts and pauses: what agents were told, in words.
import type { Agent, Order, Session } from "../api/answers";

export type Kind = Order["kind"];

// What may be given here.  Where only boosts may, the server limits their rate and their time too.
export const mayGive = (orders: Session["orders"], kind: Kind) => orders === "all" || (orders === "boost" && kind === "boost");
export const ratesFor = (orders: Session["orders"]) => (orders === "all" ? ["49", "99", "199", "499"] : ["49", "99", "199"]);
export const timesFor = (orders: Session["orders"], kind: Kind) =>
    kind === "pause" ? ["10m", "1h", "24h"] : orders === "all" ? ["5m", "10m", "1h"] : ["5m", "10m"];

const ON_HOST = (order: Order) => (order.host ? ` on ${order.host}` : "");

// "checkout", "process 812 on web-01", "everything on web-01"
export function targetText(order: Order): string {
    switch (order.target) {
        case "all": return `everything${ON_HOST(order)}`;
        case "host": return `host ${order.name}`;
        case "process": return `process ${order.pid}${ON_HOST(order)}`;
        case "container": return `container ${order.name}${ON_HOST(order)}`;
        default: return `${order.name}${ON_HOST(order)}`;
    }
}

export const orderText = (order: Order) =>
    order.kind === "boost" ? `${targetText(order)}, ${order.hz} times a second` : targetText(order);

// "9 min", "2 h": how long it is still in force.
export function leftText(order: Order, now: number): string {
    const seconds = Math.max(0, (Date.parse(order.expires) - now) / 1000);
    if (seconds < 90) return `${Math.round(seconds)} s`;
    if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
    return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} days`;
}

// What an agent follows of what is in force.
export const ordersOf = (agent: Agent, orders: Order[]) => orders.filter(({ id }) => agent.orders?.includes(id));

// How many of the agents follow it.
export const followers = (order: Order, agents: Agent[]) => agents.filter((agent) => agent.orders?.includes(order.id)).length;
