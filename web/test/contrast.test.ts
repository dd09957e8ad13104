// SPDX-License-Identifier: Apache-2.0
// What is painted on a canvas cannot be measured in the page: its colours are, as the tokens name them.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { mix } from "../src/model/palette";

const CSS = readFileSync(join(process.env.KILN_SOURCE_DIR ?? ".", "web/src/style/tokens.css"), "utf8");
const [LIGHT, DARK] = CSS.split(':root[data-theme="dark"]').map((part) => (name: string) => {
    const found = new RegExp(`--${name}: ([^;]+);`).exec(part);
    assert.ok(found, `--${name} is a token`);
    return found[1].split(",").map((one) => one.trim());
});

function luminance(color: string): number {
    const [r, g, b] = [1, 3, 5].map((at) => {
        const part = parseInt(color.slice(at, at + 2), 16) / 255;
        return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a: string, b: string): number {
    const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
}

const worst = (ink: string, fills: string[]) => Math.min(...fills.map((fill) => contrast(ink, fill)));

test("names in frames can be read in both themes", () => {
    for (const [theme, least, kernel] of [[LIGHT, 9.8, 6.3], [DARK, 5.6, 5.6]] as const) {
        const [panel] = theme("panel");
        const fills = [...theme("own"), ...theme("library"), ...theme("runtime"), ...theme("root")];
        assert.ok(worst(theme("frame-ink")[0], fills) >= least);
        assert.ok(worst(theme("frame-ink")[0], fills.map((fill) => mix(fill, panel, 0.1))) >= least); // parts neighbours of a module
        assert.ok(worst(theme("kernel-ink")[0], theme("kernel")) >= kernel);
        assert.ok(worst(theme("dim-ink")[0], theme("dim")) >= 4.5);
    }
});

test("names in frames of a comparison can be read where they changed most", () => {
    assert.ok(worst(LIGHT("frame-ink")[0], LIGHT("diff")) >= 6.1);
    assert.ok(worst(DARK("frame-ink")[0], DARK("diff")) >= 4.7);
});

test("words on panels, wells and the page can be read", () => {
    for (const theme of [LIGHT, DARK])
        for (const ground of ["panel", "bg", "sunk"])
            for (const ink of ["ink", "ink-2", "ink-3", "accent", "grew", "shrank", "warn", "bad"])
                assert.ok(worst(theme(ink)[0], theme(ground)) >= 4.5, `${ink} on ${ground}`);
});
