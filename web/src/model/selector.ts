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
export const unquote = (text: string) => text.replace(/\\(.)/gs, (_, c) => (c === "n" ? "\n" : c));

const NAME = /^[A-Za-z_][\w.]*$/;
const TYPE = /^[A-Za-z_:][\w:./-]*$/;

// A name that is not a word (dots are fine) stands in quotes.
export const formatMatcher = ({ name, op, value }: Matcher) => `${NAME.test(name) ? name : quote(name)}${op}${quote(value)}`;
export const formatMatchers = (matchers: Matcher[]) => matchers.map(formatMatcher).join(",");

// What formatMatchers() made, as far as it can be read; `rest`: what comes after that.
export function readMatchers(text: string): { matchers: Matcher[]; rest: string } {
    const matchers: Matcher[] = [];
    const one = /\s*(?:([^\s=!~,"{}]+)|"((?:[^"\\]|\\.)+)")\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)/gsy;
    let end = 0;
    for (let match = one.exec(text); match; match = one.exec(text)) {
        matchers.push({ name: match[1] ?? unquote(match[2]), op: match[3] as Operator, value: unquote(match[4]) });
        end = one.lastIndex;
    }
    return { matchers, rest: text.slice(end).trim() };
}

export const parseMatchers = (text: string) => readMatchers(text).matchers;

export function selector(type: string, service: string, matchers: Matcher[] = [], rest = ""): string {
    const all = service ? [{ name: "service_name", op: "=", value: service } as Matcher, ...matchers] : matchers;
    const plain = !type || TYPE.test(type);
    const inside = [...(plain ? [] : [quote(type)]), ...all.map(formatMatcher), ...(rest ? [rest] : [])];
    return inside.length || !type ? `${plain ? type : ""}{${inside.join(",")}}` : type;
}

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

// One of several values; a value that contains a text, in upper or lower case.
export const oneOf = (name: string, values: string[]): Matcher => ({ name, op: "=~", value: values.map(escaped).join("|") });
export const containing = (name: string, text: string): Matcher => ({ name, op: "=~", value: `(?i).*${escaped(text)}.*` });
