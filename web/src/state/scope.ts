// SPDX-License-Identifier: Apache-2.0
// What is looked at: a service, a profile type, label matchers and a range, read from the address.
import { formatMatchers, readMatchers, selector, type Matcher } from "../model/selector";
import { CPU_TYPE } from "../model/know";
import { DEFAULT_RANGE, type Range } from "../model/time";
import { change, usePlace } from "./place";

export interface Scope {
    service: string; // "": all
    type: string; // a profile type's id
    matchers: Matcher[];
    range: Range;
    query: string; // type, service and matchers as one selector; what cannot be read too, that the server may say so
}

export function scopeOf(params: URLSearchParams, type = CPU_TYPE): Scope {
    const service = params.get("service") ?? "";
    const chosen = params.get("type") || type;
    const { matchers, rest } = readMatchers(params.get("where") ?? "");
    const range = {
        from: params.get("from") || DEFAULT_RANGE.from,
        until: params.get("until") || DEFAULT_RANGE.until,
    };
    return { service, type: chosen, matchers, range, query: selector(chosen, service, matchers, rest) };
}

export function useScope(type?: string): Scope {
    return scopeOf(usePlace().params, type);
}

export const setMatchers = (matchers: Matcher[]) => change({ where: formatMatchers(matchers) });
export const setRange = (range: Range) =>
    change({
        from: range.from === DEFAULT_RANGE.from && range.until === DEFAULT_RANGE.until ? null : range.from,
        until: range.until === DEFAULT_RANGE.until ? null : range.until,
    });
