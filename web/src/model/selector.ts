// SPDX-License-Identifier: Apache-2.0
// Selectors: a profile type and label matchers, as the API takes them:
// process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name="shop", pod=~"a|b"}

export type Operator = "=" | "!=" | "=~" | "!~";

export interface Matcher {
    name: string;
    op: Operator;
    value: string;
}

const quote = (text: string) => `"${text.replace(/[\\"]/g, "\\$&").replace(/\n/g, "\\n")}"`;
// A name that is not a plain word (service.version) stands in quotes only where the grammar wants it: it does not.
export const formatMatcher = (matcher: Matcher) => `${matcher.name}${matcher.op}${quote(matcher.value)}`;
export const formatMatchers = (matchers: Matcher[]) => matchers.map(formatMatcher).join(",");

// What formatMatchers() made; what cannot be read is left out.
export function parseMatchers(text: string): Matcher[] {
    const found: Matcher[] = [];
    const one = /\s*([^\s=!~,"]+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"\s*,?/gy;
    for (let match = one.exec(text); match; match = one.exec(text)) {
        const value = match[3].replace(/\\(.)/g, (_, c) => (c === "n" ? "\n" : c));
        found.push({ name: match[1], op: match[2] as Operator, value });
    }
    return found;
}

export function selector(type: string, service: string, matchers: Matcher[] = []): string {
    const all = service ? [{ name: "service_name", op: "=", value: service } as Matcher, ...matchers] : matchers;
    return all.length || !type ? `${type}{${formatMatchers(all)}}` : type;
}
