// SPDX-License-Identifier: Apache-2.0
// Nobody is kept out: every view has names, headings, contrast and room for fingers in both themes and
// widths, and everything works without a mouse.
import { PHONE, WIDE, equal, world, type Params, type Theme, type Tools } from "./kit";
import { faultsOf } from "./faults";

const { test } = world();

type Visit = [name: string, path: string, params: (tools: Tools) => Params];
const lately = ({ last }: Tools): Params => ({ service: "checkout", ...last(6600) });
const VISITS: Visit[] = [
    ["overview", "/", ({ last }) => last(86400)],
    ["explore", "/explore", lately],
    ["sandwich", "/explore", (tools) => ({ ...lately(tools), fn: "loadRules", show: "sandwich" })],
    ["by time", "/explore", ({ last }) => ({ service: "checkout", show: "time", ...last(100) })],
    ["call graph", "/explore", (tools) => ({ ...lately(tools), show: "graph" })],
    ["tree", "/explore", (tools) => ({ ...lately(tools), show: "tree" })],
    ["table", "/explore", (tools) => ({ ...lately(tools), show: "table" })],
    ["source", "/explore", (tools) => ({ ...lately(tools), fn: "loadRules", src: 1 })],
    ["an empty range", "/explore", () => ({ service: "checkout", from: "2020-01-01T00:00:00Z", until: "2020-01-01T01:00:00Z" })],
    ["compare", "/compare", lately],
    ["labels", "/labels", lately],
    ["memory", "/memory", ({ last }) => ({ service: "payments", ...last(43200) })],
    ["waiting", "/waiting", lately],
    ["spans", "/spans", ({ last }) => ({ service: "checkout", ...last(600) })],
    ["profiles", "/profiles", lately],
    ["file", "/file", () => ({})],
    ["status", "/status", () => ({})],
    ["symptoms", "/symptoms", () => ({})],
    ["start", "/start", () => ({})],
];

// Light on a desk and dark on a phone, then the other way round: each view in both themes and widths.
for (const [theme, width] of [["light", WIDE], ["dark", PHONE]] as [Theme, number][]) {
    test(`nothing keeps anybody out, ${theme} at first, ${width} px wide`, async (tools) => {
        const faults: string[] = [];
        const view = await tools.open("/", {}, { theme, width, expects: [404] });
        for (const [name, path, params] of VISITS) {
            const asked = Object.entries(params(tools)).map(([key, value]) => [key, String(value)]);
            await view.page.goto(`${tools.server.url}${path}?${new URLSearchParams(asked)}`);
            await view.settled();
            for (let i = 0; i < 2; i++) {
                const found = await view.page.evaluate(faultsOf, width === PHONE);
                faults.push(...found.map((fault) => `${name}: ${fault}`));
                await view.page.keyboard.press("d");
                await view.settled();
            }
        }
        equal([...new Set(faults)], []);
    });
}
