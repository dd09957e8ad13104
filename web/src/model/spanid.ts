// SPDX-License-Identifier: Apache-2.0
// What somebody pastes to name a span: an id, a traceparent header, or the times between which a
// slow span was open.

export type Pasted =
    | { kind: "trace"; trace: string }
    | { kind: "span"; span: string; trace?: string }
    | { kind: "window"; from: string; until: string };

const hex = (text: string) => text.replace(/-/g, "").toLowerCase();

export function parsePasted(text: string): Pasted | null {
    const line = text.trim();
    const parent = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/i.exec(line);
    if (parent) return { kind: "span", trace: hex(parent[1]), span: hex(parent[2]) };
    if (/^[0-9a-f]{32}$/.test(hex(line))) return { kind: "trace", trace: hex(line) };
    if (/^[0-9a-f]{16}$/i.test(line)) return { kind: "span", span: hex(line) };
    const times = line.split(/\s*(?:\s–\s|\.\.|\s-\s|\s+to\s+|,|\s)\s*/).filter(Boolean);
    if (times.length === 2 && times.every((time) => !Number.isNaN(Date.parse(time))))
        return { kind: "window", from: times[0], until: times[1] };
    return null;
}
