// SPDX-License-Identifier: Apache-2.0
// A single profile in an address: by its id, or, where it has none, by its time and its labels.
import type { ProfileRow } from "../api/answers";
import type { Params } from "../api/client";
import { formatMatchers, parseMatchers, selector, type Matcher } from "./selector";
import { formatTime, type Range } from "./time";

export function keyOf(row: ProfileRow): string {
    const matchers = Object.entries(row.labels).map(([name, value]): Matcher => ({ name, op: "=", value }));
    return row.id ?? `${row.time}{${formatMatchers(matchers)}}`;
}

// What to ask to get it; its own time says where to look, the range does where it has an id alone.
export function questionOf(key: string, type: string, range: Range): Params {
    const brace = key.indexOf("{");
    if (brace < 0) return { query: type, ...range, profile_id: key };
    const time = key.slice(0, brace);
    const query = selector(type, "", parseMatchers(key.slice(brace + 1, -1)));
    return { query, from: time, until: formatTime(Date.parse(time) + 1) };
}
