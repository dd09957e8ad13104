// SPDX-License-Identifier: Apache-2.0
// Regular expressions that take time in proportion to the text, whatever is typed: the browser's own try
// every way through (a+)+$, and the page would stand still over one long name of a stranger.  Known are
// . [] () (?:) | * + ? {n,m} ^ $ \b \d \w \s and their opposites, and (?i) in front; no references, no look-around.
//
// An expression becomes a program whose threads run side by side.  A set of threads is a state, made when it
// is first met and kept with where each kind of letter leads, so that a letter mostly costs one look-up.
import { parseExpression, type Node, type Ranges } from "./regex_parse";

export interface Pattern {
    test(text: string): boolean;
    toString(): string;
}

type Step =
    | { op: "set"; ranges: Ranges }
    | { op: "split"; to: number[] }
    | { op: "assert"; what: "begin" | "end" | "edge" | "inside" }
    | { op: "match" };

const MOST_STEPS = 1000; // of a program
const MOST_STATES = 2000; // kept
const MOST_MADE = 5000; // in all: an expression that needs more finds nothing more

function emit(node: Node, steps: Step[]): void {
    if (steps.length > MOST_STEPS) throw new RangeError("the expression is too large");
    if (node.is === "set") steps.push({ op: "set", ranges: node.ranges });
    else if (node.is === "assert") steps.push({ op: "assert", what: node.what });
    else if (node.is === "all") node.of.forEach((one) => emit(one, steps));
    else if (node.is === "any") emitAny(node.of, steps);
    else emitRepeat(node, steps);
}

function emitAny(choices: Node[], steps: Step[]): void {
    const split: Step = { op: "split", to: [] };
    const ends: number[][] = [];
    steps.push(split);
    for (const choice of choices) {
        split.to.push(steps.length);
        emit(choice, steps);
        const end: Step = { op: "split", to: [] };
        steps.push(end);
        ends.push(end.to);
    }
    ends.forEach((to) => to.push(steps.length));
}

function emitRepeat({ of, least, most }: Extract<Node, { is: "repeat" }>, steps: Step[]): void {
    for (let i = 0, before = -1; i < least && steps.length > before; i++) {
        before = steps.length; // nothing repeated is nothing, however often
        emit(of, steps);
    }
    if (most === Infinity) {
        const loop: Step = { op: "split", to: [steps.length + 1] };
        const at = steps.push(loop) - 1;
        emit(of, steps);
        steps.push({ op: "split", to: [at] });
        loop.to.push(steps.length);
        return;
    }
    const outs: number[][] = [];
    for (let i = least; i < most; i++) {
        const maybe: Step = { op: "split", to: [steps.length + 1] };
        steps.push(maybe);
        outs.push(maybe.to);
        emit(of, steps);
    }
    outs.forEach((to) => to.push(steps.length));
}

const WORD: Ranges = [[48, 57], [65, 90], [95, 95], [97, 122]];
const isIn = (ranges: Ranges, code: number) => ranges.some(([from, to]) => code >= from && code <= to);

// Letters that no part of the program tells apart are of one kind; of each kind, one letter.
function kindsOf(steps: Step[]): { kind: Uint16Array; example: number[] } {
    const edges = new Set<number>([0]);
    for (const ranges of [WORD, ...steps.map((step) => (step.op === "set" ? step.ranges : []))])
        for (const [from, to] of ranges) edges.add(from).add(to + 1);
    const example = [...edges].filter((edge) => edge <= 0xffff).sort((a, b) => a - b);
    const kind = new Uint16Array(0x10000);
    example.forEach((from, i) => kind.fill(i, from, example[i + 1] ?? 0x10000));
    return { kind, example };
}

type Before = "nothing" | "word" | "other";

interface State {
    threads: number[];
    before: Before; // what the letter before was
    next: (State | true | undefined)[]; // by kind of letter; true: found
    ends: boolean | undefined; // found, where the text ends here
}

class Program implements Pattern {
    private readonly kind: Uint16Array;
    private readonly example: number[];
    private readonly states = new Map<string, State>();
    private readonly first: State;
    private made = 0;

    constructor(private readonly steps: Step[], private readonly text: string) {
        ({ kind: this.kind, example: this.example } = kindsOf(steps));
        this.first = this.state([], "nothing");
    }

    toString(): string {
        return this.text;
    }

    test(text: string): boolean {
        let state: State = this.first;
        for (let i = 0; i < text.length; i++) {
            const kind = this.kind[text.charCodeAt(i)];
            const next: State | true = (state.next[kind] ??= this.after(state, kind));
            if (next === true) return true;
            state = next;
        }
        return (state.ends ??= this.open(state, null) === null);
    }

    private state(threads: number[], before: Before): State {
        const key = `${before} ${threads.join()}`;
        const known = this.states.get(key);
        if (known) return known;
        if (this.states.size >= MOST_STATES) this.states.clear();
        const made: State = { threads, before, next: [], ends: undefined };
        if (++this.made < MOST_MADE) this.states.set(key, made);
        return made;
    }

    // Steps that wait for a letter before this one (null: the end of the text); null: found.
    private open(state: State, next: Before | null): number[] | null {
        const seen = new Uint8Array(this.steps.length);
        const waiting: number[] = [];
        const stack = [0, ...state.threads]; // a match may begin anywhere
        const edge = (state.before === "word") !== (next === "word");
        const holds = { begin: state.before === "nothing", end: next === null, edge, inside: !edge };
        while (stack.length) {
            const at = stack.pop()!;
            if (seen[at]) continue;
            seen[at] = 1;
            const step = this.steps[at];
            if (step.op === "match") return null;
            if (step.op === "set") waiting.push(at);
            else if (step.op === "split") stack.push(...step.to);
            else if (holds[step.what]) stack.push(at + 1);
        }
        return waiting;
    }

    private after(state: State, kind: number): State | true {
        if (this.made >= MOST_MADE) return this.first;
        const code = this.example[kind];
        const before: Before = isIn(WORD, code) ? "word" : "other";
        const waiting = this.open(state, before);
        if (!waiting) return true;
        const on = waiting.filter((at) => isIn((this.steps[at] as { ranges: Ranges }).ranges, code)).map((at) => at + 1);
        return this.state(on.sort((a, b) => a - b), before);
    }
}

// null: it cannot be read as an expression, or is far too large.
export function expression(source: string, ignoreCase: boolean): Pattern | null {
    try {
        const steps: Step[] = [];
        emit(parseExpression(source, ignoreCase), steps);
        steps.push({ op: "match" });
        return new Program(steps, `/${source}/${ignoreCase ? "i" : ""}`);
    } catch {
        return null;
    }
}
