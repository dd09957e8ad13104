// SPDX-License-Identifier: Apache-2.0
// One profile and all the forms it can be looked at in: flame graph, sandwich, by time, call graph,
// text tree and the table of functions beside them, with the chosen function's numbers below.
import { useMemo, useRef, useState } from "preact/hooks";
import type { QueryAnswer } from "../api/answers";
import type { Params } from "../api/client";
import { measureOf, type Measure } from "../model/measure";
import type { Pattern } from "../model/regex";
import { patternOf } from "../model/search";
import { useKeys } from "../ui/keys";
import type { Point } from "../ui/menu";
import { canFilter } from "./again";
import { FrameMenu } from "./context";
import { Detail } from "./detail";
import { Functions } from "./functions";
import { useHits } from "./hits";
import { panelKeys } from "./keys";
import { Chips } from "./options";
import { OverTime } from "./overtime";
import "./panel.css";
import { usePhone } from "./phone";
import { Picture } from "./picture";
import { usePinned } from "./pinned";
import { useRows } from "./rows";
import { SourcePanel, useLine } from "./source";
import { formatPath, nodeOnPath, setLook, useLook, type Look } from "./state";
import { Toolbar } from "./toolbar";
import { functionOf, hasFolded, largestOf, useTrees, type Trees } from "./trees";

export interface ProfileSource {
    // How to ask for this profile again in another form: path and parameters of the API (without
    // format); null: it cannot be asked again.  `body`: to be posted with each question (a file).
    path: string;
    params: Params;
    body?: Blob;
}

export interface ProfilePanelProps {
    answer: QueryAnswer; // format=json: flame graph and top
    source: ProfileSource | null;
    rangeSeconds: number; // that values are sums over
    stale?: boolean; // a newer answer is on its way
}

// What every form of the profile is given.
export interface FormProps {
    answer: QueryAnswer;
    source: ProfileSource | null;
    look: Look;
    trees: Trees;
    measure: Measure;
    samples: number;
    pinned: string[];
    find: Pattern | null;
    selected: number; // a node of trees.shown, or -1
    focus: number;
    onSelect: (node: number) => void;
    onSelectName: (name: string) => void;
    onFocus: (node: number) => void;
    onMenu: (node: number, at: Point) => void;
}

// The chosen frame: the one that was pointed at, also after its tree has grown, or where the chosen function takes most.
function useSelected(trees: Trees, look: Look) {
    const [pointed, setPointed] = useState<string | null>(null); // "": all of it
    const { shown } = trees;
    const largest = useMemo(() => largestOf(shown, look.fn), [shown, look.fn]);
    const at = useMemo(() => (pointed !== null && shown.n ? nodeOnPath(shown, pointed) : -1), [shown, pointed]);
    const holds = at >= 0 && pointed !== null && shown.depth[at] * 4 === pointed.length && functionOf(trees, at) === look.fn;
    const select = (node: number) => {
        setPointed(node >= 0 ? formatPath(shown, node) : null);
        setLook({ fn: functionOf(trees, node) }, true);
    };
    return { selected: holds ? at : largest, select };
}

export function ProfilePanel({ answer, source, rangeSeconds, stale }: ProfilePanelProps) {
    const look = useLook();
    const phone = usePhone();
    const pinned = usePinned();
    const pinnedSet = useMemo(() => new Set(pinned), [pinned]);
    const trees = useTrees(answer, source, look, pinnedSet);
    const measure = useMemo(() => measureOf(answer.type, rangeSeconds), [answer, rangeSeconds]);
    const pattern = useMemo(() => patternOf(look.find), [look.find]);
    const focus = useMemo(() => nodeOnPath(trees.shown, look.focus), [trees.shown, look.focus]);
    const { selected, select } = useSelected(trees, look);
    const hits = useHits(trees.shown, pattern, selected, select);
    const [menu, setMenu] = useState<{ node: number; at: Point } | null>(null);
    const [over, setOver] = useState("");
    const input = useRef<HTMLInputElement>(null);
    const rows = useRows(answer, trees, focus, look, pattern, pinnedSet);
    const everywhere = useMemo(() => answer.top?.rows.find((row) => row.name === look.fn)?.total ?? null, [answer, look.fn]);

    const onFocus = (node: number) => {
        const origin = node > 0 && hasFolded(trees.shown, node) && trees.refine;
        if (origin) trees.refine!(node);
        setLook({ focus: node > 0 ? formatPath(trees.shown, node) : "", ...(look.show === "flame" || look.show === "tree" ? {} : { show: "flame" }) });
    };
    const onSelectName = (name: string) => setLook({ fn: name }, true);
    const callers = (name = look.fn) => name && setLook({ fn: name, show: "sandwich" });
    const canSource = canFilter(source);
    const hasFile = selected >= 0 && Boolean(trees.shown.files[trees.shown.name[selected]]);
    const line = useLine(canSource && hasFile ? source : null, look.fn);
    const toSource = () => canSource && look.fn && setLook({ source: !look.source });
    useKeys("Profile", panelKeys({ look, trees, selected, input, callers, toSource }));

    const form: FormProps = {
        answer, source, look, trees, measure, samples: answer.basis.count, pinned, find: pattern, selected, focus,
        onSelect: select, onSelectName, onFocus, onMenu: (node, at) => setMenu({ node, at }),
    };
    const table = (
        <Functions
            rows={rows}
            look={look}
            pinned={pinnedSet}
            partly={focus > 0 ? "in focus" : trees.filtered ? "in what is shown" : ""}
            grouped={trees.grouped}
            onSelect={onSelectName}
            onOpen={callers}
        />
    );
    const onlyTable = phone && look.show === "table";
    return (
        <div class={`profile ${stale ? "stale" : ""} ${look.source && look.fn ? "with-source" : ""}`}>
            <section class="panel profile-main" aria-label="Profile">
                <Toolbar look={look} source={source} pinned={pinned} tree={trees.shown} input={input} hits={hits} phone={phone} />
                <Chips look={look} />
                {onlyTable ? table : <Picture {...form} />}
                {look.show !== "flame" && <div class="hidden" aria-live="polite">{look.fn && `${look.fn} is chosen`}</div>}
                {!onlyTable || look.fn ? (
                    <Detail
                        trees={trees}
                        node={selected}
                        name={look.fn}
                        everywhere={trees.filtered ? null : everywhere}
                        measure={measure}
                        samples={answer.basis.count}
                        pinned={pinnedSet}
                        canSource={canSource}
                        line={line}
                        onFocus={() => selected >= 0 && onFocus(selected)}
                        onCallers={() => callers()}
                        onSource={toSource}
                        onClose={() => setLook({ fn: "" }, true)}
                    />
                ) : null}
            </section>
            {look.source && look.fn ? <SourcePanel form={form} onClose={() => setLook({ source: false })} /> : !phone && table}
            {menu && (
                <FrameMenu
                    {...menu}
                    trees={trees}
                    look={look}
                    pinned={pinned}
                    canSource={canSource}
                    canTime={canSource}
                    onFocus={onFocus}
                    onOverTime={setOver}
                    onClose={() => setMenu(null)}
                />
            )}
            {over && source && <OverTime name={over} source={source} onClose={() => setOver("")} />}
        </div>
    );
}
