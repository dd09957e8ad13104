// SPDX-License-Identifier: Apache-2.0
// Reads a regular expression (see regex.ts) into a tree.  What it cannot read, it throws.

export type Ranges = [from: number, to: number][]; // of code units, both ends included

export type Node =
    | { is: "set"; ranges: Ranges }
    | { is: "assert"; what: "begin" | "end" | "edge" | "inside" }
    | { is: "all"; of: Node[] }
    | { is: "any"; of: Node[] }
    | { is: "repeat"; of: Node; least: number; most: number };

const LONGEST = 1000; // letters of an expression
const MOST_TIMES = 1000;
const LAST = 0xffff;

function opposite(ranges: Ranges): Ranges {
    const left: Ranges = [];
    let from = 0;
    for (const [begin, end] of [...ranges].sort((a, b) => a[0] - b[0])) {
        if (begin > from) left.push([from, begin - 1]);
        from = Math.max(from, end + 1);
    }
    return from <= LAST ? [...left, [from, LAST]] : left;
}

const DIGIT: Ranges = [[48, 57]];
const WORD: Ranges = [[48, 57], [65, 90], [95, 95], [97, 122]];
const SPACE: Ranges = [[9, 13], [32, 32], [0xa0, 0xa0], [0x2000, 0x200a], [0x2028, 0x2029], [0x202f, 0x202f], [0x3000, 0x3000], [0xfeff, 0xfeff]];
const SETS = new Map<string, Ranges>([
    ["d", DIGIT], ["D", opposite(DIGIT)], ["w", WORD], ["W", opposite(WORD)], ["s", SPACE], ["S", opposite(SPACE)],
]);
const SIGNS = new Map([["n", "\n"], ["t", "\t"], ["r", "\r"], ["f", "\f"], ["v", "\v"], ["0", "\0"]]);

// The same in upper and lower case; of long stretches only ASCII's letters.
function bothCases(ranges: Ranges): Ranges {
    const more: Ranges = [];
    for (const [from, to] of ranges) {
        for (let code = from; code <= Math.min(to, from + 255); code++) {
            const letter = String.fromCharCode(code);
            for (const other of [letter.toLowerCase(), letter.toUpperCase()])
                if (other.length === 1 && other !== letter) more.push([other.charCodeAt(0), other.charCodeAt(0)]);
        }
    }
    return [...ranges, ...more];
}

class Reader {
    private at = 0;

    constructor(private readonly text: string, private readonly ignoreCase: boolean) {}

    whole(): Node {
        const node = this.choices();
        if (this.at < this.text.length) throw new SyntaxError("a ) too many");
        return node;
    }

    private takes(sign: string): boolean {
        if (!this.text.startsWith(sign, this.at)) return false;
        this.at += sign.length;
        return true;
    }

    private takesMatch(pattern: RegExp): RegExpExecArray | null {
        pattern.lastIndex = this.at;
        const found = pattern.exec(this.text);
        if (found) this.at += found[0].length;
        return found;
    }

    private letter(): string {
        if (this.at >= this.text.length) throw new SyntaxError("it ends too early");
        return this.text[this.at++];
    }

    private choices(): Node {
        const of = [this.sequence()];
        while (this.takes("|")) of.push(this.sequence());
        return of.length > 1 ? { is: "any", of } : of[0];
    }

    private sequence(): Node {
        const of: Node[] = [];
        while (this.at < this.text.length && !"|)".includes(this.text[this.at])) of.push(this.repeated(this.one()));
        return { is: "all", of };
    }

    private repeated(of: Node): Node {
        for (;;) {
            const times = this.takesMatch(/(?:([*+?])|\{(\d+)(,?)(\d*)\})\??/y);
            if (!times) return of;
            const [, sign, from, comma, to] = times;
            const least = sign ? (sign === "+" ? 1 : 0) : Number(from);
            const most = sign ? (sign === "?" ? 1 : Infinity) : comma ? (to ? Number(to) : Infinity) : least;
            if (least > MOST_TIMES || most < least || (most > MOST_TIMES && most !== Infinity)) throw new RangeError("too many times");
            of = { is: "repeat", of, least, most };
        }
    }

    private one(): Node {
        const sign = this.letter();
        if (sign === "(") return this.group();
        if (sign === "[") return { is: "set", ranges: this.letters() };
        if (sign === ".") return { is: "set", ranges: [[0, LAST]] };
        if (sign === "^") return { is: "assert", what: "begin" };
        if (sign === "$") return { is: "assert", what: "end" };
        if ("*+?".includes(sign)) throw new SyntaxError("nothing to repeat");
        if (sign !== "\\") return this.set([[sign.charCodeAt(0), sign.charCodeAt(0)]]);
        if (this.takes("b")) return { is: "assert", what: "edge" };
        if (this.takes("B")) return { is: "assert", what: "inside" };
        return this.set(this.escaped());
    }

    private set(ranges: Ranges): Node {
        return { is: "set", ranges: this.ignoreCase ? bothCases(ranges) : ranges };
    }

    private group(): Node {
        if (this.takes("?") && !this.takes(":") && !this.takesMatch(/<[a-z]\w*>/iy)) throw new SyntaxError("not known");
        const node = this.choices();
        if (!this.takes(")")) throw new SyntaxError("a ) is missing");
        return node;
    }

    // After a backslash.
    private escaped(): Ranges {
        const code = this.takesMatch(/x([0-9a-f]{2})|u([0-9a-f]{4})/iy);
        if (code) return [[parseInt(code[1] ?? code[2], 16), parseInt(code[1] ?? code[2], 16)]];
        const sign = this.letter();
        const set = SETS.get(sign);
        if (set) return set;
        if (/[1-9a-z]/i.test(sign) && !SIGNS.has(sign)) throw new SyntaxError("not known");
        const one = (SIGNS.get(sign) ?? sign).charCodeAt(0);
        return [[one, one]];
    }

    // After a [
    private letters(): Ranges {
        const not = this.takes("^");
        const ranges: Ranges = [];
        while (!this.takes("]")) {
            const from = this.inLetters();
            const single = from.length === 1 && from[0][0] === from[0][1];
            if (single && this.text[this.at] === "-" && this.text[this.at + 1] !== "]") {
                this.at++;
                const to = this.inLetters();
                if (to.length > 1 || to[0][1] < from[0][0]) throw new SyntaxError("a range that ends before it begins");
                ranges.push([from[0][0], to[0][1]]);
            } else ranges.push(...from);
        }
        const all = this.ignoreCase ? bothCases(ranges) : ranges;
        return not ? opposite(all) : all;
    }

    private inLetters(): Ranges {
        const sign = this.letter();
        if (sign === "\\") return this.takes("b") ? [[8, 8]] : this.escaped();
        return [[sign.charCodeAt(0), sign.charCodeAt(0)]];
    }
}

export function parseExpression(source: string, ignoreCase: boolean): Node {
    if (source.length > LONGEST) throw new RangeError("the expression is too long");
    const marked = source.startsWith("(?i)");
    return new Reader(marked ? source.slice(4) : source, ignoreCase || marked).whole();
}
