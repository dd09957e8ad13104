// SPDX-License-Identifier: Apache-2.0
// What is typed into "Jump to" against what can be jumped to: letters in their order, words' beginnings
// before middles, short before long.

export interface Target {
    title: string;
    kind: string; // "View", "Service", "Function", ...
    href: string;
}

// The higher the better; -1: no match.
export function score(typed: string, title: string): number {
    const text = title.toLowerCase();
    let at = 0;
    let points = 0;
    let before = -2;
    for (const letter of typed.toLowerCase().replace(/\s+/g, "")) {
        const found = text.indexOf(letter, at);
        if (found < 0) return -1;
        const begins = found === 0 || !/[a-z0-9]/.test(text[found - 1]) || (title[found] !== text[found] && title[found - 1] === text[found - 1]);
        points += found === before + 1 ? 4 : begins ? 3 : 1;
        before = found;
        at = found + 1;
    }
    return points - title.length / 100;
}

export function matching(typed: string, targets: Target[], most: number): Target[] {
    if (!typed.trim()) return targets.slice(0, most);
    return targets
        .map((target) => ({ target, points: score(typed, target.title) }))
        .filter(({ points }) => points >= 0)
        .sort((a, b) => b.points - a.points)
        .slice(0, most)
        .map(({ target }) => target);
}

// A trace or span id, or a profile's: what somebody pastes.
export function idTargets(typed: string, link: (view: "spans" | "profiles", params: Record<string, string>) => string): Target[] {
    const id = typed.trim().toLowerCase();
    if (/^[0-9a-f]{16}$/.test(id)) return [{ title: `Span ${id}`, kind: "Id", href: link("spans", { span: id }) }];
    if (!/^[0-9a-f]{32}$/.test(id)) return [];
    return [
        { title: `Trace ${id}`, kind: "Id", href: link("spans", { trace: id }) },
        { title: `Profile ${id}`, kind: "Id", href: link("profiles", { profile: id }) },
    ];
}
