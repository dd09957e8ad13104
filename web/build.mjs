// SPDX-License-Identifier: Apache-2.0
// usage: node build.mjs DIR PACKER
// Bundles the page into DIR: index.html, assets/NAME-HASH.{js,css}, and page_files.c, the C source
// through which they become part of the program (src/api/page.h), packed by PACKER (pack.c).  Prints
// the size of what a browser loads.
import { build } from "esbuild";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const TYPES = { html: "text/html; charset=utf-8", js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8" };

async function bundle() {
    const { outputFiles } = await build({
        absWorkingDir: here,
        entryPoints: { kiln: "src/main.tsx" },
        outdir: "/assets",
        bundle: true,
        minify: true,
        write: false,
        format: "esm",
        target: ["es2022"],
        jsx: "automatic",
        jsxImportSource: "preact",
        legalComments: "none",
        define: { "process.env.NODE_ENV": '"production"' },
    });
    return outputFiles.map(({ path, contents }) => {
        const hash = createHash("sha256").update(contents).digest("hex").slice(0, 10);
        return { path: path.replace(/\.(\w+)$/, `-${hash}.$1`), bytes: Buffer.from(contents) };
    });
}

function index(files) {
    const named = (ending) => files.find((file) => file.path.endsWith(ending)).path;
    const html = readFileSync(join(here, "index.html"), "utf8");
    return html.replace("SCRIPT", named(".js")).replace("STYLE", named(".css"));
}

const bytesInC = (bytes) => bytes.toString("hex").replace(/../g, "0x$&,").replace(/.{100}/g, "$&\n");

function inC(files) {
    const arrays = files.map(({ packed }, i) => `static const unsigned char file_${i}[] = {\n${bytesInC(packed)}};\n`);
    const rows = files.map(({ path, bytes, packed }, i) =>
        `    {"${path}", "${TYPES[path.split(".").pop()]}", file_${i}, ${packed.length}, ${bytes.length}},\n`);
    return `/* Made by web/build.mjs. */\n#include "api/page.h"\n\n${arrays.join("")}
const struct kiln_page_file kiln_page_files[] = {\n${rows.join("")}};
const uint32_t kiln_page_n_files = ${files.length};\n`;
}

const [out, packer] = process.argv.slice(2);
const assets = await bundle();
const files = [{ path: "/index.html", bytes: Buffer.from(index(assets)) }, ...assets]
    .map((file) => ({ ...file, packed: execFileSync(packer, { input: file.bytes, maxBuffer: 16 << 20 }) }));

rmSync(join(out, "assets"), { recursive: true, force: true });
for (const { path, bytes } of files) {
    mkdirSync(dirname(join(out, path)), { recursive: true });
    writeFileSync(join(out, path), bytes);
}
writeFileSync(join(out, "page_files.c"), inC(files));
const sum = (of) => files.reduce((bytes, file) => bytes + of(file).length, 0);
console.log(`page: ${sum((f) => f.packed)} bytes gzip, ${sum((f) => f.bytes)} bytes plain`);
