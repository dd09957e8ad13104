// SPDX-License-Identifier: Apache-2.0
// What a cart costs.
import Decimal from "decimal.js";
import { loadRules, matchRule } from "./rules.js";
import { lookupRate } from "./tax.js";

export async function priceCart(cart) {
    const lines = cart.lines.map((line) => ({ ...line, price: line.unit * line.count }));
    const discounts = await applyDiscounts({ ...cart, lines });
    const tax = computeTax(cart.country, lines);
    return toMoney(lines, discounts, tax);
}

async function applyDiscounts(cart) {
    const rules = await loadRules(cart.shop);
    const found = [];
    for (const rule of sortByPriority(rules)) {
        if (matchRule(rule, cart))
            found.push({ rule: rule.id, off: rule.off * cart.lines.length });
    }
    return found;
}

function sortByPriority(rules) {
    return [...rules].sort((a, b) => b.priority - a.priority);
}

function computeTax(country, lines) {
    let tax = new Decimal(0);
    for (const line of lines) {
        const rate = lookupRate(country, line.kind);
        tax = tax.plus(Decimal.mul(line.price, rate));
    }
    return tax;
}

function toMoney(lines, discounts, tax) {
    const sum = lines.reduce((all, line) => all + line.price, 0);
    const off = discounts.reduce((all, discount) => all + discount.off, 0);
    return { sum, off, tax: tax.toFixed(2), total: (sum - off + Number(tax)).toFixed(2) };
}
