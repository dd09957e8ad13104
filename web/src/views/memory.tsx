// SPDX-License-Identifier: Apache-2.0
// Memory: what is held and what is asked for, side by side; what grew from the first snapshots of the
// range to the last; and which functions only ever grow.
import { useMemo } from "preact/hooks";
import type { Deployment, DiffAnswer, ProfileType, TypeRow } from "../api/answers";
import { useAsk } from "../api/use";
import { allOf, ratio } from "../model/diff";
import { bytes } from "../model/format";
import { ends, stepFor } from "../model/growth";
import { MEMORY_TYPE } from "../model/know";
import { selector } from "../model/selector";
import { formatTime, parseTime, type Range } from "../model/time";
import { change, linkTo, usePlace } from "../state/place";
import { useScope, type Scope } from "../state/scope";
import { Failure, Link, Loading, Panel, Segment, copy } from "../ui/kit";
import { ScopeBar } from "../ui/scope";
import { Changes } from "./compare/changes";
import { inSentence } from "./compare/named";
import { useChoice } from "./compare/choice";
import { useCompared, type Compared } from "./compare/compared";
import { Find } from "./compare/find";
import { Elsewhere } from "./compare/nothing";
import { useNow } from "./compare/now";
import { Detail, Picture, type Action } from "./compare/picture";
import { windowText } from "./compare/sides";
import { NoMemory } from "./memory/empty";
import { Leaks, leakSentence, longTime } from "./memory/leaks";
import { useClimbs, type Climb } from "./memory/levels";
import { Allocated, Both, InUse, type MemoryProps } from "./memory/panels";
import "./compare.css";
import "./memory.css";

const STANDARD = "now-12h"; // a leak takes hours to be seen
const BACK = [
    ["now-3h", "3 h"],
    [STANDARD, "12 h"],
    ["now-1d", "Day"],
    ["now-7d", "Week"],
];
const CANDIDATES = 6;

const isInUse = ({ type, unit }: ProfileType) => unit === "bytes" && /inuse|live/.test(type);
const isMemory = (typeId: string) => /:(inuse|alloc|live)[^:]*:bytes:/.test(typeId);
const isAllocated = ({ type, unit }: ProfileType) => unit === "bytes" && /alloc/.test(type);

function RangeChoice({ range, now }: { range: Range; now: number }) {
    const from = usePlace().params.get("from") ?? STANDARD;
    const own = !BACK.some(([value]) => value === from);
    return (
        <>
            {own && (
                <span class="chip">
                    {windowText(range, now)}
                    <button
                        type="button"
                        aria-label="Back to the last hours"
                        title="Back to the last hours"
                        onClick={() => change({ from: null, until: null })}
                    >
                        ×
                    </button>
                </span>
            )}
            <Segment
                label="How far back"
                value={own ? "" : from}
                choices={BACK.map(([value, label]) => ({ value, label, title: "From then until now" }))}
                onChoose={(value) => change({ from: value === STANDARD ? null : value, until: null })}
            />
            <button
                type="button"
                class="button main"
                onClick={() =>
                    copy(
                        location.origin + linkTo("memory", { ...range }, "all"),
                        "Link copied, with times that do not move",
                    )
                }
            >
                Copy link
            </button>
        </>
    );
}

// Functions that may leak: where growth starts, and what grew most itself.
function candidates({ starts, answer }: Compared): string[] {
    const grown = [...(answer.top?.rows ?? [])].filter((row) => !row.self_is_noise && row.self_change > 0);
    grown.sort((a, b) => b.self_change - a.self_change);
    const names = [...starts.filter(({ by }) => by > 0).map(({ name }) => name), ...grown.map(({ name }) => name)];
    return [...new Set(names)].slice(0, CANDIDATES);
}

function Verdict({
    of,
    climbs,
    service,
    range,
}: {
    of: Compared;
    climbs: Climb[] | null;
    service: string;
    range: Range;
}) {
    const all = allOf(of.answer);
    const leak = climbs?.find(({ leaks }) => leaks);
    const passed = longTime(Date.parse(range.until) - Date.parse(range.from));
    const whole = `${bytes(all.a)} → ${bytes(all.b)}`;
    const who = service || "Everything";
    if (leak)
        return (
            <div class="verdict">
                <h1 title={leak.name}>
                    {inSentence(leak.name)} <span class="grew">{leakSentence(leak)}</span>
                </h1>
                <span class="soft">
                    {bytes(leak.growth.perHour)} an hour. All of {who} went {whole} in {passed}.
                </span>
            </div>
        );
    return (
        <div class="verdict">
            <h1>
                {who} holds{" "}
                {all.isNoise ? (
                    <span class="soft">as much memory as {passed} ago</span>
                ) : (
                    <span class={all.by > 0 ? "grew" : "shrank"}>
                        {ratio(all)} memory than {passed} ago
                    </span>
                )}
                : {whole}
            </h1>
            <span class="soft">{climbs && "No function holds more with every snapshot."}</span>
        </div>
    );
}

type Tab = "leaks" | "changed" | "both";

function Growth({ of, climbs, memory }: { of: Compared; climbs: Climb[] | null; memory: MemoryProps }) {
    const { params } = usePlace();
    const choice = useChoice(of);
    const { left, right, type } = of.answer;
    const tab = (params.get("list") ?? "leaks") as Tab;
    const now = Date.parse(right.until);
    const explore = (more: Record<string, string>) =>
        linkTo("explore", { type: type.id, from: right.from, until: right.until, fn: choice.name, ...more });
    const actions: Action[] = [
        { label: "Callers", title: "Who calls it", href: explore({ show: "sandwich" }) },
        { label: "Source", title: "Its lines", href: explore({ src: "1" }) },
        ...(memory.alloc
            ? [
                  {
                      label: "Allocations",
                      title: "How much it asks for",
                      href: explore({ type: memory.alloc.id, from: memory.range.from }),
                  },
              ]
            : []),
    ];
    const compare = linkTo("compare", {
        type: type.id,
        a_from: left.from,
        a_until: left.until,
        b_from: right.from,
        b_until: right.until,
        from: null,
        until: null,
    });
    return (
        <div class="diff-work">
            <Panel
                class="fills-panel"
                label="Growth"
                title={
                    <>
                        Growth{" "}
                        <span class="muted plain-weight wide">
                            {windowText(left, now)} against {windowText(right, now)}
                        </span>
                    </>
                }
                aside={
                    <>
                        <Find tree={of.tree} selected={choice.node} onSelect={choice.select} />
                        <Link class="button" href={compare}>
                            Compare
                        </Link>
                    </>
                }
            >
                <Picture of={of} choice={choice} actions={actions} label="Growth as a flame graph" />
                <Detail of={of} node={choice.node} actions={actions} a="First" b="Last" />
            </Panel>
            <Panel
                class="fills-panel"
                label="By function"
                title={<span class="wide">By function</span>}
                aside={
                    <Segment
                        label="What to list"
                        value={tab}
                        choices={[
                            { value: "leaks", label: "Leaks", title: "Functions that hold more and more" },
                            { value: "changed", label: "Changed", title: "What grew and what shrank" },
                            { value: "both", label: "Side by side", title: "In use and allocated, of each function" },
                        ]}
                        onChoose={(value) => change({ list: value === "leaks" ? null : value }, true)}
                    />
                }
            >
                {tab === "leaks" && <Leaks climbs={climbs} fn={choice.name} onChoose={choice.selectName} />}
                {tab === "changed" && (
                    <Changes answer={of.answer} of="self" fn={choice.name} onChoose={choice.selectName} />
                )}
                {tab === "both" && (
                    <Both {...memory} answer={of.answer} fn={choice.name} onChoose={choice.selectName} />
                )}
            </Panel>
        </div>
    );
}

function Body({ memory }: { memory: MemoryProps }) {
    const { range, inuse, queryOf, step } = memory;
    const [[aFrom, aUntil], [bFrom, bUntil]] = ends(
        Date.parse(range.from),
        Date.parse(range.until),
        memory.deployed,
    ).map((pair) => pair.map(formatTime));
    const asked = useAsk<DiffAnswer>(inuse && "/api/v1/diff", {
        query: inuse ? queryOf(inuse) : "",
        left_from: aFrom,
        left_until: aUntil,
        right_from: bFrom,
        right_until: bUntil,
        normalize: "none",
        limit: 1000,
    });
    const of = useCompared(asked.data);
    const names = useMemo(() => (of ? candidates(of) : []), [of]);
    const climbs = useClimbs(
        names,
        { query: inuse ? queryOf(inuse) : "", ...range, step },
        of?.answer.right.total ?? 0,
        memory.deployed,
    );
    const few = of && (!of.answer.left.basis.profiles || !of.answer.right.basis.profiles);
    return (
        <>
            {of && !few && <Verdict of={of} climbs={climbs} service={memory.service} range={range} />}
            {!inuse && (
                <div class="verdict">
                    <h1>{memory.service || "Everything"} says what it allocates, not what it holds</h1>
                </div>
            )}
            {few && (
                <div class="verdict">
                    <h1>Too few snapshots to see growth</h1>
                    <span class="soft">
                        They are compared from the first quarter of the range to the last: choose a longer one.
                    </span>
                </div>
            )}
            <div class={`memory-top ${inuse && memory.alloc ? "" : "one"}`}>
                <InUse {...memory} climb={climbs?.find(({ leaks }) => leaks) ?? null} />
                <Allocated {...memory} />
            </div>
            {asked.error ? (
                <div class="diff-notes">
                    <Failure error={asked.error} retry={asked.reload} />
                </div>
            ) : of && !few ? (
                <Growth of={of} climbs={climbs} memory={memory} />
            ) : (
                inuse &&
                !few && (
                    <div class="diff-notes">
                        <Loading rows={10} />
                    </div>
                )
            )}
        </>
    );
}

function MemoryOf({ scope }: { scope: Scope }) {
    const { params } = usePlace();
    const now = useNow(scope);
    const time = (name: string, standard: string) => formatTime(parseTime(params.get(name) ?? standard, now));
    const range = { from: time("from", STANDARD), until: time("until", "now") };
    const asked = useAsk<{ types: TypeRow[] }>("/api/v1/types", {
        query: selector("", scope.service, scope.matchers),
        ...range,
    });
    const known = useAsk<{ deployments: Deployment[] }>(scope.service ? "/api/v1/deployments" : null, {
        service: scope.service,
        ...range,
    });
    const deployments = scope.service
        ? (known.data?.deployments ?? []).filter(({ service }) => service === scope.service)
        : [];
    const types = asked.data?.types ?? [];
    const memory: MemoryProps = {
        service: scope.service,
        range,
        inuse: types.find(isInUse) ?? null,
        alloc: types.find(isAllocated) ?? null,
        queryOf: (type) => selector(type.id, scope.service, scope.matchers),
        step: stepFor(Date.parse(range.until) - Date.parse(range.from)) / 1000,
        deployments,
        deployed: deployments
            .filter(({ label }) => label)
            .map(({ at }) => Date.parse(at))
            .filter((at) => at > Date.parse(range.from)),
    };
    return (
        <main class="measuring fills memory">
            <ScopeBar types={false} range={false} link={false} actions={<RangeChoice range={range} now={now} />} />
            {asked.error ? (
                <div class="diff-notes">
                    <Failure error={asked.error} retry={asked.reload} />
                </div>
            ) : !asked.data || (known.loading && !known.data) ? (
                <Loading rows={16} />
            ) : memory.inuse || memory.alloc ? (
                <Body memory={memory} />
            ) : (
                <Elsewhere service={scope.service} range={range} now={now} what="memory profiles" is={isMemory}>
                    <NoMemory service={scope.service} />
                </Elsewhere>
            )}
        </main>
    );
}

// What is known of one service is nothing to start from with another.
export function Memory() {
    const scope = useScope(MEMORY_TYPE);
    return <MemoryOf key={scope.service} scope={scope} />;
}
