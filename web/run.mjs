#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// usage: run.mjs FILE.ts [ARGUMENT]...    bundles a program and runs it
//        run.mjs FILE.test.ts...          bundles tests and runs them with Node's own runner
// What Node cannot read, TypeScript and imports without endings, esbuild makes readable; bundles lie
// in the build folder, $KILN_BUILD_DIR.
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = resolve(process.env.KILN_BUILD_DIR ?? join(here, "../build"), "web/run");

// Playwright is no part of a bundle, and lies where programs beside this folder do not find it.
const playwright = {
    name: "playwright",
    setup(building) {
        const path = pathToFileURL(join(here, "node_modules/playwright-core/index.mjs")).href;
        building.onResolve({ filter: /^playwright-core$/ }, () => ({ path, external: true }));
    },
};

async function bundle(file) {
    const outfile = join(out, `${basename(file, ".ts")}.mjs`);
    await build({
        entryPoints: [file], outfile, bundle: true, platform: "node", format: "esm", target: "node18", sourcemap: "inline",
        jsx: "automatic", jsxImportSource: "preact", nodePaths: [join(here, "node_modules")], loader: { ".css": "empty" },
        plugins: [playwright], logLevel: "warning",
    });
    return outfile;
}

const words = process.argv.slice(2);
const tests = words.filter((word) => word.endsWith(".test.ts"));
const command = tests.length
    ? ["--test", ...(await Promise.all(tests.map(bundle)))]
    : [await bundle(words[0]), ...words.slice(1)];
const ended = spawnSync(process.execPath, ["--enable-source-maps", ...command], { stdio: "inherit" });
process.exit(ended.status ?? 1);
