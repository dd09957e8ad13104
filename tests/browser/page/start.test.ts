// SPDX-License-Identifier: Apache-2.0
// First run: the commands that it shows work as they are, and the page notices what they send.
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { QueryAnswer } from "../../../web/src/api/answers";
import { figures } from "../../../web/src/model/format";
import { check, cpu, equal, PHONE, world, type View } from "./kit";
import { SOURCES } from "./server";

const { test } = world({ fill: false });
const KILN = resolve(process.env.KILN ?? "build/kiln");

const commandOf = async (view: View, way: string, variant?: string): Promise<string> => {
    const card = view.page.locator(`section[aria-label="${way}"]`);
    if (variant) await card.getByRole("button", { name: variant, exact: true }).click();
    return card.locator("code").innerText();
};

// In a shell that finds kiln, in a folder with a profile, cpu.pb.gz.
function run(folder: string, command: string): void {
    mkdirSync(join(folder, "try"), { recursive: true });
    copyFileSync(join(SOURCES, "examples/checkout.pb.gz"), join(folder, "try/cpu.pb.gz"));
    const done = spawnSync("bash", ["-c", command], { cwd: join(folder, "try"), encoding: "utf8", env: { ...process.env, PATH: `${dirname(KILN)}:${process.env.PATH}` } });
    equal([command, done.status, done.status ? done.stderr : ""], [command, 0, ""]);
}

test("a server without profiles says how to send the first, and sees it come", async ({ open, server, ask }) => {
    const view = await open("/");
    await view.sees("No profiles yet");
    await view.sees(`Listening on port ${new URL(server.url).port}`);
    await view.picture("start");
    run(server.folder, (await commandOf(view, "A file, or pprof", "kiln push")).replace("cpu.pb.gz", "cpu.pb.gz --time now"));
    await view.sees("First profile from shop");
    await view.picture("start-first");
    await view.page.getByRole("button", { name: "See what it does" }).click();
    await view.settled();
    const answer = await ask<QueryAnswer>("query", { query: cpu("shop"), format: "top", limit: 1 });
    await view.sees(`One service uses ${figures(answer.total / 1e9 / answer.basis.rate_seconds)} cores`);
});

test("commands work as they are shown", async ({ open, server, ask }) => {
    const view = await open("/start");
    await view.sees("Send more profiles");
    run(server.folder, await commandOf(view, "A file, or pprof", "curl"));
    run(server.folder, (await commandOf(view, "Just looking")).replace(/--profiles \d+/, "--profiles 20"));
    const agent = await commandOf(view, "A Linux host", "Agent");
    run(server.folder, `kiln config ${agent.replace(/^sudo kiln agent /, "")} >/dev/null`);
    writeFileSync(join(server.folder, "kiln.yaml"), await commandOf(view, "Let Kiln fetch"));
    run(server.folder, "kiln config --config ../kiln.yaml >/dev/null");
    const { services } = await ask<{ services: { name: string }[] }>("services");
    check("the invented fleet has come", services.length > 5, services.length);
});

test("OTLP arrives where the variable says", async ({ open, server }) => {
    const view = await open("/start");
    const command = await commandOf(view, "OpenTelemetry", "Variables");
    equal(command, `OTEL_EXPORTER_OTLP_ENDPOINT=${server.url}`);
    run(server.folder, `kiln convert cpu.pb.gz -o cpu.otlp && ${command} && curl -sf --data-binary @cpu.otlp -H 'Content-Type: application/x-protobuf' $OTEL_EXPORTER_OTLP_ENDPOINT/v1development/profiles`);
});

test("a command is copied", async ({ open, server }) => {
    const view = await open("/start");
    await view.page.locator('section[aria-label="OpenTelemetry"]').getByRole("button", { name: "Copy" }).click();
    equal(await view.page.evaluate(() => navigator.clipboard.readText()), `OTEL_EXPORTER_OTLP_ENDPOINT=${server.url}`);
});

test("it fits a phone, in the dark", async ({ open }) => {
    const view = await open("/start", {}, { width: PHONE, theme: "dark" });
    await view.sees("Pyroscope clients");
    await view.picture("start");
});
