// SPDX-License-Identifier: Apache-2.0
// Texts that fit.  Widths are sums of the widths of letters, each measured once for each font:
// asking the canvas for every text, and for every shorter one until it fits, is what takes time.

const DIRECT = 0x250; // letters below this are looked up in an array

export class Ruler {
    private direct = new Float32Array(DIRECT).fill(-1);
    private others = new Map<number, number>();
    private dots: number;

    constructor(
        private ctx: CanvasRenderingContext2D,
        readonly font: string,
    ) {
        this.dots = this.measured("…");
    }

    private measured(letter: string): number {
        const before = this.ctx.font;
        this.ctx.font = this.font;
        const { width } = this.ctx.measureText(letter);
        this.ctx.font = before;
        return width;
    }

    private letter(code: number): number {
        if (code < DIRECT) {
            const known = this.direct[code];
            return known >= 0 ? known : (this.direct[code] = this.measured(String.fromCharCode(code)));
        }
        let width = this.others.get(code);
        if (width === undefined) this.others.set(code, (width = this.measured(String.fromCodePoint(code))));
        return width;
    }

    // The text, or its beginning and …, or "" where not even two letters fit.
    fit(text: string, room: number): { text: string; width: number } {
        let width = 0;
        let cut = 0; // how much of it fits with … behind it
        let cutWidth = 0;
        for (let i = 0; i < text.length; ) {
            const code = text.codePointAt(i)!;
            i += code > 0xffff ? 2 : 1;
            width += this.letter(code);
            if (width + this.dots <= room) [cut, cutWidth] = [i, width];
            if (width > room) return cut > 1 ? { text: text.slice(0, cut) + "…", width: cutWidth + this.dots } : { text: "", width: 0 };
        }
        return { text, width };
    }

    width(text: string): number {
        return this.fit(text, Infinity).width;
    }
}
