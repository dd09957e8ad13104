// SPDX-License-Identifier: Apache-2.0
// The profile as a file: the server's formats, and two that are made here.
import type { QueryAnswer } from "../api/answers";
import { address } from "../api/client";
import { flamePng } from "../flame/png";
import type { Measure } from "../model/measure";
import { patternOf } from "../model/search";
import { MenuButton, type MenuEntry } from "../ui/menu";
import { toast } from "../ui/toast";
import type { ProfileSource } from "./panel";
import { usePinned } from "./pinned";
import { nodeOnPath, useLook, type Look } from "./state";
import { shownTree } from "./trees";

const FORMATS: [string, string, string][] = [
    ["pprof", "pprof", "go tool pprof"],
    ["otlp", "OTLP", "OpenTelemetry"],
    ["speedscope", "Speedscope", "speedscope.app"],
    ["collapsed", "Collapsed stacks", "text"],
    ["dot", "Call graph", "Graphviz"],
    ["svg", "Flame graph", "SVG"],
];

export function saveAs(blob: Blob, name: string): void {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

const cell = (text: string | number) => (/[",\n]/.test(String(text)) ? `"${String(text).replace(/"/g, '""')}"` : String(text));

export function asCsv(answer: QueryAnswer): string {
    const head = ["function", "file", "module", "kind", `self_${answer.type.unit}`, `total_${answer.type.unit}`, "self_share", "total_share"];
    const rows = (answer.top?.rows ?? []).map((row) => [row.name, row.file, row.module, row.kind, row.self, row.total, row.self_share, row.total_share]);
    return [head, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

function savePng(answer: QueryAnswer, source: ProfileSource, look: Look, measure: Measure, pinned: string[], name: string): void {
    const tree = shownTree(answer, source, look, new Set(pinned));
    const props = { tree, measure, focus: nodeOnPath(tree, look.focus), find: patternOf(look.find), flip: look.flip, colorBy: look.color, ownModules: pinned };
    const caption = `${name} · ${measure.format(answer.total)} · ${answer.from} – ${answer.until}`;
    flamePng(props, caption).then((blob) => saveAs(blob, `${name}.png`), (error) => toast(error.message));
}

// `name`: what files are called, without an ending.
export function ExportButton(props: { answer: QueryAnswer | null; source: ProfileSource; measure: Measure | null; name: string }) {
    const look = useLook();
    const pinned = usePinned();
    const { answer, source, measure, name } = props;
    const entries = (): MenuEntry[] => [
        ...FORMATS.map(([format, label, aside]) => ({ label, aside, href: address(source.path, { ...source.params, format }), external: true })),
        { label: "Flame graph", aside: "PNG", disabled: !answer, onChoose: () => savePng(answer!, source, look, measure!, pinned, name) },
        { label: "Table", aside: "CSV", disabled: !answer, onChoose: () => saveAs(new Blob([asCsv(answer!)], { type: "text/csv" }), `${name}.csv`) },
    ];
    return <MenuButton label="Export" class="ghost" text="Export" alignRight entries={entries} />;
}
