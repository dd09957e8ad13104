// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { expression } from "../src/model/regex";

const EXPRESSIONS = [
    "abc", "^abc$", "a|b|", "a*", "a+b", "a?b?c", "(ab|cd)+", "(?:ab)*c", "[a-c]x", "[^a-c]x", "\\d+", "\\w+\\s\\W", "\\bfoo\\b", "\\Boo",
    "a{2}", "a{2,}", "a{1,3}b", "a{,3}", "x{", "^$", "^", "$", "", "(a|ab)(c|bcd)(d*)", "(a*)*b", "(a?){3}a{3}", "\\.", "\\$", "a.c", "[\\w.]+::", "[a\\-z]",
    "foo.*bar", "^(foo|bar)", "(foo|bar)$", "\\x41", "\\u0062", "a+?b", "[-a]", "(?<name>ab)", "\\/", "é+", "[à-ü]",
];
const TEXTS = [
    "", "a", "b", "abc", "xabcx", "aab", "aaab", "ABC", "abcd", "cdab", "ax", "dx", "x{", "a,3", "a{,3}", "foo bar", "food", "a.c", "a-z", "std::vec", "12 ;", "foo1bar",
    "é", "É", "û", "line\nbreak", "$", ".", "]x", "/", "a😀c",
];

test("an expression finds what the browser's own would find", () => {
    for (const source of EXPRESSIONS)
        for (const flags of ["", "i"])
            for (const text of TEXTS) {
                const wanted = new RegExp(source, `${flags}s`).test(text);
                assert.equal(expression(source, flags === "i")!.test(text), wanted, `/${source}/${flags} in ${JSON.stringify(text)}`);
            }
});

test("what is no expression, or one that nobody can know the cost of, is none", () => {
    for (const source of ["(", ")", "[", "a)", "*", "+a", "a{2,1}", "(?=a)", "(?<=a)", "(a)\\1", "\\p{L}", "[z-a]", "a\\", "a{5000}", "((a{99}){99}){99}", "x".repeat(5000)])
        assert.equal(expression(source, false), null, source);
});

test("letters of either case are the same where asked", () => {
    assert.ok(expression("(?i)parsejson", false)!.test("ParseJSON"));
    assert.ok(!expression("parsejson", false)!.test("ParseJSON"));
});

// Any of these takes longer than a life where every way is tried.
test("an expression takes time in proportion to the text", () => {
    const long = "a".repeat(65536);
    for (const source of ["(a+)+$b", "(a|a)*$b", "(a|aa)+$b", "(.*a){20}b", "(a?){200}a{200}b", "(((a*)*)*)*b", "a*a*a*a*a*a*b", "((){1000}){1000}b"])
        assert.equal(expression(source, false)!.test(long + "!"), false, source);
});

test("one that needs too many states gives up, and does not take the memory", () => {
    let seed = 1;
    const text = Array.from({ length: 65536 }, () => ((seed = (seed * 48271) % 2147483647) & 1 ? "a" : "b")).join("");
    assert.equal(expression("(a|b)*a(a|b){100}c", false)!.test(text), false);
});
