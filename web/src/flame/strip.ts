// SPDX-License-Identifier: Apache-2.0
// Frames too thin to have a form, one row of pixels for each row of frames.  To fill tens of thousands
// of rectangles takes a canvas longer than anything else; to set as many pixels and to stretch each row
// of them to the height of a frame takes next to nothing.

export class Strip {
    private canvas = document.createElement("canvas");
    private ctx = this.canvas.getContext("2d", { willReadFrequently: true })!;
    private image = new ImageData(1, 1);
    private pixels = new Uint32Array(this.image.data.buffer);
    private used = new Uint8Array(1); // rows that have something
    private width = 1; // in pixels of the screen
    private rows = 1;

    // Room for so many rows; all of it empty.
    clear(width: number, rows: number): void {
        if (width !== this.width || rows > this.rows) {
            this.width = width;
            this.rows = rows;
            this.canvas.width = width;
            this.canvas.height = rows;
            this.image = new ImageData(width, rows);
            this.pixels = new Uint32Array(this.image.data.buffer);
            this.used = new Uint8Array(rows);
            return;
        }
        for (let row = 0; row < this.rows; row++)
            if (this.used[row]) this.pixels.fill(0, row * this.width, (row + 1) * this.width);
        this.used.fill(0);
    }

    // `color`: 0xbbggrr; `strength`: 0 ... 1.
    set(row: number, from: number, to: number, color: number, strength: number): void {
        const base = row * this.width;
        const value = (((strength * 255) << 24) | color) >>> 0;
        this.used[row] = 1;
        for (let x = Math.max(0, from); x < to && x < this.width; x++) this.pixels[base + x] = value;
    }

    // Shows each row that has something, as `place` says where.
    show(ctx: CanvasRenderingContext2D, width: number, place: (row: number) => { y: number; h: number }): void {
        if (!this.used.includes(1)) return;
        this.ctx.putImageData(this.image, 0, 0);
        ctx.imageSmoothingEnabled = false;
        for (let row = 0; row < this.rows; row++) {
            if (!this.used[row]) continue;
            const { y, h } = place(row);
            ctx.drawImage(this.canvas, 0, row, this.width, 1, 0, y, width, h);
        }
    }
}

// "#rrggbb" as a strip wants it.
export function packed(color: string): number {
    const rgb = parseInt(color.slice(1), 16);
    return ((rgb & 0xff) << 16) | (rgb & 0xff00) | (rgb >> 16);
}
