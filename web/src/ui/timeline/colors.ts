// SPDX-License-Identifier: Apache-2.0
// Colours of areas that lie over each other: from the meter's green to clay, so that no hue is spent.
import { token } from "../theme";

const parts = (hex: string) => [1, 3, 5].map((at) => parseInt(hex.length === 4 ? hex[(at + 1) / 2].repeat(2) : hex.slice(at, at + 2), 16));

export function mix(a: string, b: string, share: number): string {
    const [from, to] = [parts(a), parts(b)];
    return `rgb(${from.map((part, i) => Math.round(part + (to[i] - part) * share)).join(" ")})`;
}

const STEPS: [string, number][] = [["meter", 0], ["meter", 0.35], ["meter", 0.58], ["meter", 0.76], ["line-2", 0], ["line-2", 0.4], ["line", 0]];

// The colour of series `i` of a stacked timeline; of the theme that is there now.
export function stackColor(i: number): string {
    const [name, share] = STEPS[Math.min(i, STEPS.length - 1)];
    return mix(token(name), token("panel"), share);
}
