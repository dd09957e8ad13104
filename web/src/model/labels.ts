// SPDX-License-Identifier: Apache-2.0
// Labels of several things: which of them tell the things apart.

// A label's value; a label may be called "constructor", which every object has.
export const valueIn = (labels: Record<string, string>, name: string) => (Object.hasOwn(labels, name) ? labels[name] : "");

export function telling(all: Record<string, string>[], not: string[] = []): string[] {
    const values = new Map<string, Set<string>>();
    for (const labels of all)
        for (const [name, value] of Object.entries(labels))
            if (!not.includes(name)) values.set(name, (values.get(name) ?? new Set()).add(value));
    return [...values].filter(([name, seen]) => seen.size > 1 || all.some((labels) => !Object.hasOwn(labels, name))).map(([name]) => name).sort();
}
