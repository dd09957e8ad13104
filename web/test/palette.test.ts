// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { describe, diffScale, diffStep, Looks, mix, type Inks } from "../src/model/palette";
import { drawn } from "./drawn";

const INKS: Inks = {
    own: ["#a00000", "#b00000", "#c00000", "#d00000", "#e00000", "#f00000"],
    library: ["#0000a0", "#0000b0", "#0000c0", "#0000d0", "#0000e0", "#0000f0"],
    runtime: "#777777", kernel: "#555555", root: "#eeeeee", panel: "#ffffff",
    diff: ["-4", "-3", "-2", "-1", "0", "1", "2", "3", "4"],
};
const NOBODY = new Set<string>();

test("colours mix channel by channel", () => {
    assert.equal(mix("#000000", "#ffffff", 0.5), "#808080");
    assert.equal(mix("#f00", "#00f", 0), "#ff0000");
});

test("one module has one swatch in every tree; its functions differ by a tenth at most", () => {
    const said = { a: { module: "shop", file: "x/cart.py" }, b: { module: "shop", file: "x/cart.py" }, c: { module: "libc.so.6" } };
    const one = new Looks(drawn("total\n a 1\n  b 2\n c 3", said), NOBODY, INKS);
    const two = new Looks(drawn("total\n c 1\n b 3\n  a 1", said), NOBODY, INKS);
    for (const name of ["a", "b", "c"])
        assert.equal(one.fill(one.tree.names.indexOf(name)), two.fill(two.tree.names.indexOf(name)));
    const channels = (color: string) => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
    const [a, b] = ["a", "b"].map((name) => channels(one.fill(one.tree.names.indexOf(name))));
    a.forEach((value, i) => assert.ok(Math.abs(value - b[i]) <= 26));
    assert.equal(one.family(3), "library");
});

test("a frame is described by what it belongs to, its file and whose it is", () => {
    const looks = new Looks(drawn("total\n loadRules 1", { loadRules: { file: "/srv/checkout/rules.js", kind: "v8js" } }), NOBODY);
    assert.equal(describe(looks, 1), "checkout/rules · rules.js · your code · JIT");
    assert.equal(describe(looks, 1, 41), "checkout/rules · rules.js:41 · your code · JIT");
});

const CHANGED = drawn(`
    total
     main 0>0
      pass 0>0
       parse 10>110
        tiny 0>1
      save 90>40
      same 50>50
`);
const at = (name: string) => CHANGED.name.findIndex((id) => CHANGED.names[id] === name);

test("who only passes a change on is palest, colour is strongest where it starts", () => {
    const scale = diffScale(CHANGED, (value) => value / 100);
    assert.equal(diffStep(CHANGED, at("parse"), scale), 4);
    assert.equal(diffStep(CHANGED, at("pass"), scale), 1);
    assert.equal(diffStep(CHANGED, at("save"), scale), -4);
    assert.equal(diffStep(CHANGED, at("same"), scale), 0);
    assert.equal(diffStep(CHANGED, at("tiny"), scale), 1);
});

test("steps are of cores, or of the whole where there are none", () => {
    const steps = (rate: ((value: number) => number) | null) => diffStep(CHANGED, at("save"), diffScale(CHANGED, rate));
    assert.equal(steps((value) => value / 1000), -2);
    assert.equal(steps((value) => value / 10000), -1);
    assert.equal(steps((value) => value / 200), -3);
    assert.equal(steps(null), -4);
});
