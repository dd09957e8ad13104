// SPDX-License-Identifier: Apache-2.0
// Modules that the reader said are own code, kept by the browser.

const KEY = "kiln.own";

export function pinnedModules(): string[] {
    try {
        const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
        return Array.isArray(kept) ? kept.filter((one): one is string => typeof one === "string") : [];
    } catch {
        return [];
    }
}

// Pins a module or package, or takes it back; what is pinned afterwards.
export function togglePin(module: string): string[] {
    const before = pinnedModules();
    const after = before.includes(module) ? before.filter((one) => one !== module) : [...before, module];
    try {
        localStorage.setItem(KEY, JSON.stringify(after));
    } catch {
        // A browser that keeps nothing keeps this for the page's life only.
    }
    return after;
}
