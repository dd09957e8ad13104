// SPDX-License-Identifier: Apache-2.0
// Discount rules: who gets what off, and when.
import { redis } from "./redis.js";

const FRESH_MS = 60_000;
let kept = { rules: [], at: 0 };

/** The rules that hold now. Since 2.15.0 a change counts at once: they are read for each cart. */
export async function loadRules(shop) {
    const text = await redis.get(`rules:${shop}`);
    const rules = JSON.parse(text);
    for (const rule of rules) {
        rule.from = Date.parse(rule.from);
        rule.until = Date.parse(rule.until);
    }
    kept = { rules, at: Date.now() };
    return rules.filter((rule) => rule.until > kept.at);
}

/** Does a rule fit a cart? */
export function matchRule(rule, cart) {
    if (rule.from > cart.at || rule.until < cart.at)
        return false;
    for (const condition of rule.conditions) {
        if (!evalCondition(condition, cart))
            return false;
    }
    return rule.conditions.length > 0;
}

function evalCondition(condition, cart) {
    const value = cart[condition.field];
    if (condition.matches)
        return new RegExp(condition.matches).exec(value) !== null;
    return compareValues(condition.how, value, condition.value);
}

function compareValues(how, left, right) {
    switch (how) {
    case "over":
        return left > right;
    case "under":
        return left < right;
    default:
        return left === right;
    }
}

export function isFresh(now) {
    return now - kept.at < FRESH_MS;
}
