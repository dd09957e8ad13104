// SPDX-License-Identifier: Apache-2.0
// The tokens that a canvas needs, read once for each theme: a canvas knows no CSS variables.
import type { Inks } from "../model/palette";
import { token, tokens } from "../ui/theme";

export interface FlameInks extends Inks {
    ink: string;
    ink3: string;
    line2: string;
    frameInk: string;
    kernelInk: string;
    dim: string;
    dimInk: string;
    sans: string;
    mono: string;
}

export function readInks(): FlameInks {
    return {
        own: tokens("own"), library: tokens("library"), diff: tokens("diff"),
        runtime: token("runtime"), kernel: token("kernel"), root: token("root"), panel: token("panel"),
        ink: token("ink"), ink3: token("ink-3"), line2: token("line-2"), frameInk: token("frame-ink"),
        kernelInk: token("kernel-ink"), dim: token("dim"), dimInk: token("dim-ink"), sans: token("sans"), mono: token("mono"),
    };
}
