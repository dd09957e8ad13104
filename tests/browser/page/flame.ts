// SPDX-License-Identifier: Apache-2.0
// The flame graph of a page, for tests: it is a canvas, and tells where its frames are.
import type { Page } from "playwright-core";

export interface Frame {
    name: string;
    x: number;
    y: number;
    width: number;
    height: number;
}

export class FlameGraph {
    constructor(private readonly page: Page) {}

    get canvas() {
        return this.page.locator("canvas[role=img]").first();
    }
}
