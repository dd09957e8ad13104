// SPDX-License-Identifier: Apache-2.0
// Labels of several things: which of them tell the things apart.

export function telling(all: Record<string, string>[], not: string[] = []): string[] {
    const values = new Map<string, Set<string>>();
    for (const labels of all)
        for (const [name, value] of Object.entries(labels))
            if (!not.includes(name)) values.set(name, (values.get(name) ?? new Set()).add(value));
    return [...values].filter(([name, seen]) => seen.size > 1 || all.some((labels) => !(name in labels))).map(([name]) => name).sort();
}
