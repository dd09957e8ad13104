// SPDX-License-Identifier: Apache-2.0
// Open file: a profile of any format, converted by the server and looked at with the same tools.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import type { FileAnswer } from "../../../web/src/api/answers";
import { check, equal, number, world } from "./kit";

const { test } = world({ fill: false });
const EXAMPLE = "examples/checkout.pb.gz";
const folder = mkdtempSync(join(tmpdir(), "kiln-files-"));
after(() => rmSync(folder, { recursive: true }));

function converted(format: string, ending: string): string {
    const path = join(folder, `checkout.${ending}`);
    execFileSync(process.env.KILN ?? "build/kiln", ["convert", EXAMPLE, "--to", format, "-o", path]);
    return path;
}

const FILES: [string, () => string][] = [
    ["pprof", () => EXAMPLE],
    ["OTLP", () => converted("otlp", "otlp")],
    ["speedscope", () => converted("speedscope", "speedscope.json")],
    ["collapsed stacks", () => converted("collapsed", "txt")],
];

for (const [what, make] of FILES) {
    test(`${what} is opened, and its numbers are the server's`, async ({ open, server }) => {
        const path = make();
        const view = await open("/file");
        await view.sees("Drop a profile here");
        await view.page.getByLabel("Profile", { exact: true }).setInputFiles(path);
        const response = await fetch(`${server.url}/api/v1/files?name=x`, { method: "POST", body: readFileSync(path) });
        const answer = (await response.json()) as FileAnswer;
        await view.sees(answer.top!.rows[0].name);
        equal(number(/with (.*) observations/.exec(await view.text("h1"))![1]), answer.basis.count);
        if (what === "pprof") await view.picture("file");
    });
}

test("a file that is none gets an error that says why", async ({ open }) => {
    const path = join(folder, "garbage.bin");
    writeFileSync(path, Buffer.from([0xff, 0xfe, 0, 1, 2, 3, 0x80, 0x81]));
    const view = await open("/file");
    view.expects(400, 415, 422);
    await view.page.getByLabel("Profile", { exact: true }).setInputFiles(path);
    await view.sees("That did not work");
    check("the server gave a reason", (await view.text(".note")).length > 30, await view.text(".note"));
});

test("a file can be dropped anywhere", async ({ open }) => {
    const view = await open("/status");
    const bytes = [...readFileSync(EXAMPLE)];
    const data = await view.page.evaluateHandle((content) => {
        const transfer = new DataTransfer();
        transfer.items.add(new File([new Uint8Array(content)], "dropped.pb.gz"));
        return transfer;
    }, bytes);
    await view.page.dispatchEvent("#app", "drop", { dataTransfer: data });
    await view.sees("dropped.pb.gz");
    equal(view.path(), "/file");
});
