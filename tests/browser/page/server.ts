// SPDX-License-Identifier: Apache-2.0
// A real Kiln for tests of the page: on a free port, in a folder of its own, gone afterwards.
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { createHash } from "node:crypto";
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

export const SOURCES = resolve(process.env.KILN_SOURCE_DIR ?? ".");
export const BUILD = resolve(process.env.KILN_BUILD_DIR ?? "build");
const KILN = resolve(process.env.KILN ?? "build/kiln");
const PATIENCE_MS = 60_000;

export interface Token {
    token: string;
    access: "read" | "write" | "admin";
    tenant?: string;
}

export interface ServerOptions {
    tokens?: Token[]; // who may come in; the first that may do everything fills the server, and is who ask() asks as
    host?: boolean; // profile this host too; needs root
    words?: string[]; // more of its command line
    env?: Record<string, string>;
}

export const sleep = (ms: number) => new Promise((done) => setTimeout(done, ms));

export class Server {
    readonly folder = mkdtempSync(join(tmpdir(), "kiln-page-"));
    url = "";
    private process: ChildProcess | null = null;

    constructor(private readonly options: ServerOptions = {}) {}

    // The token of who may do everything; "": none is needed.
    get token(): string {
        return this.options.tokens?.find((one) => one.access === "admin" && !one.tenant)?.token ?? "";
    }

    private tokenWords(): string[] {
        if (!this.options.tokens) return [];
        const file = join(this.folder, "tokens.yaml");
        const entries = this.options.tokens.map(({ token, access, tenant }, i) =>
            `- name: t${i}\n  sha256: ${createHash("sha256").update(token).digest("hex")}\n  access: ${access}\n` +
            (tenant ? `  tenant: ${tenant}\n` : ""));
        writeFileSync(file, entries.join(""));
        return ["--tokens", file];
    }

    // Starts it, or starts it again where it was.
    async start(): Promise<void> {
        const ready = join(this.folder, "ready.json");
        rmSync(ready, { force: true });
        const log = openSync(join(this.folder, "log"), "a");
        const words = [
            ...(this.options.host ? [] : ["server"]), "--data-dir", join(this.folder, "data"), "--listen", this.url ? new URL(this.url).host : "127.0.0.1:0",
            "--otlp-grpc", "off", "--otlp-http", "off", "--socket", join(this.folder, "kiln.sock"), "--ready-file", ready,
            ...this.tokenWords(), ...(this.options.words ?? []),
        ];
        const env = { ...process.env, KILN_SOURCE: `/srv=${SOURCES}/tests/support/shop_source`, ...this.options.env };
        this.process = spawn(KILN, words, { env, stdio: ["ignore", log, log] });
        closeSync(log);
        for (const end = Date.now() + PATIENCE_MS; !existsSync(ready); await sleep(5)) {
            if (this.process.exitCode !== null || Date.now() > end) throw new Error(`kiln is not ready: ${this.said()}`);
        }
        this.url = `http://127.0.0.1:${JSON.parse(readFileSync(ready, "utf8")).http}`;
    }

    said(): string {
        return readFileSync(join(this.folder, "log"), "utf8").slice(-4000);
    }

    async kill(): Promise<void> {
        const child = this.process;
        if (!child || child.exitCode !== null || child.signalCode !== null) return;
        const gone = new Promise((done) => child.once("exit", done));
        child.kill("SIGKILL");
        await gone;
    }

    async stop(): Promise<void> {
        await this.kill();
        rmSync(this.folder, { recursive: true, force: true });
    }
}

// Fills a server with the invented shop (tests/support/shop.py); its last second, in Unix seconds.
export function fillWithShop(url: string, words: string[] = []): number {
    const shop = spawnSync("python3", [join(SOURCES, "tests/support/shop.py"), "--server", url, ...words], { encoding: "utf8" });
    if (shop.status !== 0) throw new Error(`the shop was not taken: ${shop.stderr}`);
    return Number(shop.stdout);
}
