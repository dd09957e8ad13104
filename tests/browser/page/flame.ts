// SPDX-License-Identifier: Apache-2.0
// The flame graph of a page, for tests: a canvas that keys walk, and that says what is chosen.
import type { Locator, Page } from "playwright-core";

// Waits until what happened is painted, and what follows from that has begun.
export const painted = (page: Page) =>
    page.evaluate(() => new Promise<void>((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)))));

export class FlameGraph {
    constructor(private readonly page: Page) {}

    get canvas(): Locator {
        return this.page.locator('canvas[aria-roledescription="flame graph"]').first();
    }

    // What a screen reader hears of the chosen frame: "loadRules, 29.2 % of all, depth 11. ...".
    async says(): Promise<string> {
        await painted(this.page);
        return (await this.page.locator(".flame [aria-live]").first().textContent()) ?? "";
    }

    // Keys, while the graph has the focus, each when the one before has done its work.
    async press(...keys: string[]): Promise<void> {
        await this.canvas.focus();
        for (const key of keys) {
            await this.page.keyboard.press(key);
            await painted(this.page);
        }
    }

    // The colour of a place of the picture, in shares of its width and height: [r, g, b, a].
    pixel(x: number, y: number): Promise<number[]> {
        return this.canvas.evaluate((canvas, at) => {
            const { width, height } = canvas as HTMLCanvasElement;
            const data = (canvas as HTMLCanvasElement).getContext("2d")!.getImageData(at.x * width, at.y * height, 1, 1).data;
            return [...data];
        }, { x, y });
    }
}
