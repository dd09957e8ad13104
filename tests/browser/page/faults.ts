// SPDX-License-Identifier: Apache-2.0
// What keeps somebody out of a view, found in the page itself: names, headings, tables, pictures,
// contrast, and on a phone what a finger cannot hit.  It runs inside the browser, so it stands alone.
export function faultsOf(phone: boolean): string[] {
    const faults = new Set<string>();
    const seen = (at: Element) => {
        const box = at.getBoundingClientRect();
        const style = getComputedStyle(at);
        return box.width > 1 && box.height > 1 && style.visibility !== "hidden" && at.getClientRects().length > 0;
    };
    const all = (selector: string) => [...document.querySelectorAll<HTMLElement>(selector)].filter(seen);
    const called = (at: Element) => {
        const text = (at.getAttribute("aria-label") ?? (at as HTMLElement).innerText ?? at.textContent ?? "").trim().replace(/\s+/g, " ").slice(0, 40);
        const kind = at.getAttribute("class");
        return `${at.tagName.toLowerCase()}${kind ? `.${kind.trim().replace(/\s+/g, ".")}` : ""} "${text}"`;
    };

    const named = (at: HTMLElement) => {
        const labels = [...((at as HTMLInputElement).labels ?? [])].map((label) => label.innerText);
        const by = (at.getAttribute("aria-labelledby") ?? "").split(" ").map((id) => document.getElementById(id)?.innerText ?? "");
        const inside = [...at.querySelectorAll("[aria-label]")].map((one) => one.getAttribute("aria-label"));
        return [at.getAttribute("aria-label"), at.title, at.innerText ?? at.textContent, ...labels, ...by, ...inside].some((text) => text?.trim());
    };
    const CONTROLS = "button, a[href], input:not([type=hidden]), select, textarea, summary, [tabindex='0']";
    for (const at of all(CONTROLS)) if (!named(at)) faults.add(`has no name: ${called(at)}`);
    for (const at of all("svg[role=img], canvas, img"))
        if (!at.getAttribute("aria-label") && !at.getAttribute("alt") && !at.closest("[aria-hidden=true], [aria-label][role], .uplot"))
            faults.add(`a picture without words: ${called(at.parentElement!)}`);

    const count = (selector: string, wanted: number) => {
        const found = all(selector).length;
        if (found !== wanted) faults.add(`${found} ${selector}, not ${wanted}`);
    };
    count("main", 1);
    count("h1", 1);
    let level = 0;
    for (const at of all("h1, h2, h3, h4, h5")) {
        const is = Number(at.tagName[1]);
        if (is > level + 1) faults.add(`a heading of level ${is} after one of ${level}: ${called(at)}`);
        level = is;
    }

    for (const at of all("table")) {
        const heads = [...at.querySelectorAll("thead th")];
        if (!heads.length) faults.add(`a table without a head: ${called(at)}`);
        for (const head of heads) {
            if (head.getAttribute("scope") !== "col") faults.add(`a heading without scope: ${called(head)}`);
            if (head.hasAttribute("aria-sort") && at.querySelector("thead button") && !head.querySelector("button")) faults.add(`sorted, but not by a button: ${called(head)}`);
        }
        if (phone && at.classList.contains("table") && heads.filter(seen).length > 3) faults.add(`more than three columns: ${called(at)}`);
    }
    for (const at of all("tbody tr, li, [role=row]"))
        if (getComputedStyle(at).cursor === "pointer" && !at.querySelector("a, button") && at.tabIndex < 0) faults.add(`only for a mouse: ${called(at)}`);
    for (const at of document.querySelectorAll("[id]"))
        if (document.querySelectorAll(`[id="${CSS.escape(at.id)}"]`).length > 1) faults.add(`twice the id ${at.id}`);

    type Ink = [number, number, number, number];
    const ink = (text: string): Ink => {
        const [r, g, b, a = 1] = (text.match(/[\d.]+/g) ?? ["0", "0", "0", "0"]).map(Number);
        return /^color\(srgb/.test(text) ? [r * 255, g * 255, b * 255, a] : [r, g, b, a];
    };
    const over = (top: Ink, below: Ink): Ink => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1) as Ink;
    const ground = (at: Element | null): Ink => {
        if (!at) return ink(getComputedStyle(document.documentElement).backgroundColor)[3] ? ink(getComputedStyle(document.documentElement).backgroundColor) : [255, 255, 255, 1];
        const own = ink(getComputedStyle(at).backgroundColor);
        return own[3] >= 1 ? own : over(own, ground(at.parentElement));
    };
    const light = ([r, g, b]: Ink) => {
        const part = (c: number) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
        return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
    };
    const faint = (at: Element | null): number => (at ? Number(getComputedStyle(at).opacity) * faint(at.parentElement) : 1);
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = texts.nextNode(); node; node = texts.nextNode()) {
        const at = node.parentElement!;
        if (!node.textContent!.trim() || !seen(at) || at.closest("script, style, .hidden, :disabled, [aria-disabled=true], title")) continue;
        const below = at.closest("svg") && at.parentElement?.querySelector("rect") ? ink(getComputedStyle(at.parentElement.querySelector("rect")!).fill) : ground(at);
        const written = ink(at.closest("svg") ? getComputedStyle(at).fill : getComputedStyle(at).color);
        const shown = over([written[0], written[1], written[2], written[3] * faint(at)], below);
        const [a, b] = [light(shown), light(below)].sort((x, y) => y - x);
        const contrast = (a + 0.05) / (b + 0.05);
        if (contrast < 4.5) faults.add(`contrast ${contrast.toFixed(2)}: ${called(at)}`);
    }

    if (phone) {
        const inText = (at: HTMLElement) => at.matches("a, .as-link, button") && getComputedStyle(at).display.startsWith("inline") && !at.classList.contains("button") && (at.parentElement!.innerText.length > at.innerText.length + 8);
        for (const at of all("button, a[href], input, select, summary, [role=button], [role=tab]")) {
            if (at.closest("svg") || inText(at) || at.closest(".field, .hidden, .mark")) continue; // marks have room around them
            const { width, height } = at.getBoundingClientRect();
            const row = at.closest("tr, li, label");
            if (Math.max(height, row?.getBoundingClientRect().height ?? 0) < 35.5 || Math.max(width, row?.getBoundingClientRect().width ?? 0) < 24) faults.add(`small for a finger, ${Math.round(width)} × ${Math.round(height)}: ${called(at)}`);
        }
        scrollTo(0, document.documentElement.scrollHeight);
        const bar = document.querySelector(".tabbar")?.getBoundingClientRect().top ?? innerHeight;
        const scrolls = (at: Element | null): boolean => !!at && at.tagName !== "MAIN" && (getComputedStyle(at).overflowY !== "visible" || scrolls(at.parentElement));
        const last = Math.max(0, ...all("main *").filter((at) => !at.closest(".profile-detail, .hidden") && !scrolls(at.parentElement)).map((at) => at.getBoundingClientRect().bottom));
        if (last > bar + 1) faults.add(`${Math.round(last - bar)} px stay below the tab bar`);
        scrollTo(0, 0);
    }
    for (const at of all("button, .button, .chip, h1, h2, th"))
        if (at.scrollWidth > at.clientWidth + 1 && getComputedStyle(at).overflow !== "visible" && getComputedStyle(at).textOverflow !== "ellipsis") faults.add(`cut off: ${called(at)}`);
    return [...faults];
}
