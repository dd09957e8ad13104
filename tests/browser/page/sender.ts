// SPDX-License-Identifier: Apache-2.0
// Sends profiles of any shape: stacks as lists of frames, as many as a test likes, with any texts in them.
import { check } from "./kit";

export interface Frame {
    name: string;
    file?: string;
    module?: string;
    kind?: string;
    line?: number;
}

export interface Sample {
    stack: (string | Frame)[]; // the outermost caller first
    value: number | string;
    labels?: [string, string][];
}

export interface Sent {
    labels: [string, string][]; // of the resource: service.name, ...
    type: string;
    unit: string;
    period?: [type: string, unit: string, value: number];
    at: number; // Unix seconds
    seconds?: number;
    samples: Sample[];
}

const ZERO = ["mapping", "location", "function", "link", "attribute", "stack"];

// The tables that all profiles of a request share; entry 0 of each is "none".
class Tables {
    private readonly found = new Map<string, number>();
    readonly all = new Map<string, unknown[]>([["string", [""]], ...ZERO.map((name): [string, unknown[]] => [name, [{}]])]);

    entry(table: string, what: unknown): number {
        const key = table + JSON.stringify(what);
        const known = what === "" ? 0 : this.found.get(key);
        if (known !== undefined) return known;
        const at = this.all.get(table)!.push(what) - 1;
        this.found.set(key, at);
        return at;
    }

    attribute([key, value]: [string, string]): number {
        return this.entry("attribute", { keyStrindex: this.entry("string", key), value: { stringValue: value } });
    }

    stack(frames: (string | Frame)[]): number {
        return this.entry("stack", { locationIndices: [...frames].reverse().map((one) => this.location(typeof one === "string" ? { name: one } : one)) });
    }

    private location({ name, file = "", module = "", kind = "", line = 0 }: Frame): number {
        const functionIndex = this.entry("function", { nameStrindex: this.entry("string", name), filenameStrindex: this.entry("string", file) });
        const mappingIndex = module ? this.entry("mapping", { filenameStrindex: this.entry("string", module) }) : 0;
        const attributeIndices = kind ? [this.attribute(["profile.frame.type", kind])] : [];
        return this.entry("location", { mappingIndex, lines: [{ functionIndex, line }], attributeIndices });
    }
}

function profileOf(sent: Sent, tables: Tables): unknown {
    const pair = (type: string, unit: string) => ({ typeStrindex: tables.entry("string", type), unitStrindex: tables.entry("string", unit) });
    return {
        sampleType: pair(sent.type, sent.unit),
        ...(sent.period && { periodType: pair(sent.period[0], sent.period[1]), period: String(sent.period[2]) }),
        timeUnixNano: `${Math.round(sent.at * 1000)}000000`,
        durationNano: `${(sent.seconds ?? 10) * 1e9}`,
        samples: sent.samples.map(({ stack, value, labels = [] }) => ({
            stackIndex: tables.stack(stack), values: [String(value)], attributeIndices: labels.map((label) => tables.attribute(label)),
        })),
    };
}

export async function send(url: string, all: Sent[]): Promise<void> {
    const tables = new Tables();
    const resourceProfiles = all.map((sent) => ({
        resource: { attributes: sent.labels.map(([key, value]) => ({ key, value: { stringValue: value } })) },
        scopeProfiles: [{ profiles: [profileOf(sent, tables)] }],
    }));
    const dictionary = Object.fromEntries([...tables.all].map(([name, table]) => [`${name}Table`, table]));
    const answer = await fetch(`${url}/v1development/profiles`, {
        method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ resourceProfiles, dictionary }),
    });
    check("profiles are taken", answer.ok, `${answer.status} ${await answer.clone().text()}`);
}

export const cpuOf = (service: string, at: number, samples: Sample[], labels: [string, string][] = []): Sent => ({
    labels: [["service.name", service], ...labels], type: "cpu", unit: "nanoseconds", period: ["cpu", "nanoseconds", 1e7], at, samples,
});
