// SPDX-License-Identifier: Apache-2.0
// Compare: two versions, windows or label sets, A and B.  What changed, said first; then the picture
// of it and the table.
import { useMemo } from "preact/hooks";
import type { Deployment, DiffAnswer, Service } from "../api/answers";
import { useAsk } from "../api/use";
import { allOf, phrase, told, type Of } from "../model/diff";
import { moment } from "../model/format";
import { formatMatchers } from "../model/selector";
import { formatTime } from "../model/time";
import { change, formatPlace, linkTo, open, usePlace } from "../state/place";
import { useTick } from "../state/refresh";
import { useScope, type Scope } from "../state/scope";
import { useKeys } from "../ui/keys";
import { Command, Empty, Failure, Loading, Note, Panel, Segment, copy } from "../ui/kit";
import { ScopeBar } from "../ui/scope";
import { Changes } from "./compare/changes";
import { useChoice } from "./compare/choice";
import { useCompared, type Compared } from "./compare/compared";
import { Find } from "./compare/find";
import { Detail, Picture, type Action } from "./compare/picture";
import { SideButton } from "./compare/side";
import {
    PRESETS, addressOf, addressOfPreset, diffParams, presetTitle, sideName, sidesOf, thanWhat, windowText,
    type Preset, type SideChoice, type Sides,
} from "./compare/sides";
import { Strip } from "./compare/strip";
import "./compare.css";

// The time by which "now" is told, the same until the page refreshes.
export function useNow(): number {
    const tick = useTick();
    return useMemo(() => Math.floor(Date.now() / 1000) * 1000, [tick]);
}

function exploreSide(side: SideChoice, scope: Scope, deployments: Deployment[], more: Record<string, string> = {}): string {
    const label = deployments.find((one) => one.version === side.version)?.label;
    const version = side.version && label ? [{ name: label, op: "=", value: side.version } as const] : [];
    const where = formatMatchers([...scope.matchers, ...version, ...side.matchers]);
    return linkTo("explore", { ...side.range, where, ...more });
}

function Presets({ sides, deployments, scope, now }: { sides: Sides; deployments: Deployment[]; scope: Scope; now: number }) {
    const standard: Preset = deployments.length > 1 ? "version" : "before";
    return (
        <Segment
            label="What to compare with"
            value={sides.preset as string}
            choices={PRESETS.map((preset) => ({
                value: preset as string,
                label: presetTitle(preset, scope.range, now),
                title: preset === "version" && deployments.length < 2 ? "No second version of it is known" : undefined,
            }))}
            onChoose={(preset) => change({ ...addressOfPreset(preset === standard ? null : (preset as Preset)), fn: null, focus: null })}
        />
    );
}

function Verdict({ of, sides, scope, now }: { of: Compared; sides: Sides; scope: Scope; now: number }) {
    const { answer, measure, starts } = of;
    const all = allOf(answer);
    const versions = sides.a.version !== sides.b.version && sides.b.version;
    const who = versions || (sides.preset === "" && sideName(sides.b, now)) || scope.service || "Everything";
    const numbers = `${measure.short(all.a)} → ${measure.format(all.b)}`;
    const why = told(starts, measure);
    const [verb, much] = phrase(answer.type, all);
    const tone = all.by > 0 ? "grew" : "shrank";
    const first = starts[0];
    const part = first && of.changes[first.node];
    if (answer.normalized === "total")
        return (
            <div class="verdict">
                <h1>
                    {part ? (
                        <>
                            {first.name} takes <span class={part.by > 0 ? "grew" : "shrank"}>{measure.format(part.b)}</span> of the whole, before it was{" "}
                            {measure.format(part.a)}
                        </>
                    ) : (
                        "No share changed beyond noise"
                    )}
                </h1>
                <span class="soft">By share, what did not change seems to shrink when something else grows.</span>
            </div>
        );
    return (
        <div class="verdict">
            <h1>
                {all.isNoise ? (
                    <>
                        {who} {verb} <span class="soft">as much as before</span>: {numbers}
                    </>
                ) : (
                    <>
                        {who} {verb} <span class={tone}>{much}</span>
                        {thanWhat(sides, scope.range, now)}: {numbers}
                    </>
                )}
            </h1>
            <span class="soft">
                {all.isNoise && `The difference, ${measure.short(all.by)} ± ${measure.format(all.noise)}, could be chance. `}
                {why ? `${why}.` : "No function changed beyond noise."}
            </span>
        </div>
    );
}

// A side without profiles: where are there some?
function NoData({ answer, scope, sides, deployments, now }: { answer: DiffAnswer; scope: Scope; sides: Sides; deployments: Deployment[]; now: number }) {
    const services = useAsk<{ services: Service[] }>("/api/v1/services");
    const known = services.data?.services.find(({ name }) => name === scope.service)?.types.find(({ id }) => id === answer.type.id);
    const missing = [...(answer.left.basis.profiles ? [] : ["A" as const]), ...(answer.right.basis.profiles ? [] : ["B" as const])];
    const side = missing[0] === "A" ? sides.a : sides.b;
    const other = missing[0] === "A" ? sides.b : sides.a;
    const there = known?.oldest && known.newest ? [Date.parse(known.oldest), Date.parse(known.newest)] : null;
    const length = Date.parse(side.range.until) - Date.parse(side.range.from);
    const goThere = () => {
        const until = Math.ceil(there![1] / 1000) * 1000 + 1000;
        const moved = { ...side, range: { from: formatTime(until - length), until: formatTime(until) } };
        change(missing[0] === "A" ? addressOf(moved, other) : addressOf(other, moved));
    };
    return (
        <Empty title={`${missing.join(" and ")} ${missing.length > 1 ? "have" : "has"} no profiles`}>
            <p>
                Nothing {side.version && `of ${side.version} `}from {windowText(side.range, now)}.{" "}
                {there && `Profiles of ${scope.service} reach from ${moment(there[0], now)} to ${moment(there[1], now)}.`}
            </p>
            <div class="row centre">
                {there && (
                    <button type="button" class="button main" onClick={goThere}>
                        Move {missing[0]} to the last of them
                    </button>
                )}
                {deployments.length > 1 && sides.preset !== "version" && (
                    <button type="button" class="button" onClick={() => change(addressOfPreset("version"))}>
                        Compare versions
                    </button>
                )}
            </div>
        </Empty>
    );
}

function NoVersions({ scope }: { scope: Scope }) {
    const name = scope.service || "SERVICE";
    return (
        <Empty title={scope.service ? `No second version of ${name} is known` : "Choose a service to compare its versions"}>
            <p>Kiln finds deployments by labels that change: service.version, git.commit, deployment.id. It can also be told:</p>
            <Command>{`kiln annotate --service ${name} --version 1.4.2`}</Command>
            <div class="row centre">
                <button type="button" class="button" onClick={() => change(addressOfPreset("before"))}>
                    Compare with the time before
                </button>
            </div>
        </Empty>
    );
}

interface BodyProps {
    of: Compared;
    scope: Scope;
    sides: Sides;
    deployments: Deployment[];
    now: number;
    stale: boolean;
}

function Work({ of, scope, sides, deployments, stale }: BodyProps) {
    const { params } = usePlace();
    const { measure, answer } = of;
    const choice = useChoice(of);
    const { name } = choice;
    const by = params.get("by") === "share" ? "share" : "time";
    const rows: Of = params.get("of") === "total" ? "total" : "self";
    const actions: Action[] = [
        { label: "Callers", key: "s", title: "Who calls it, in B  (s)", href: exploreSide(sides.b, scope, deployments, { fn: name, show: "sandwich" }) },
        { label: "Source", key: "o", title: "Its lines, in B  (o)", href: exploreSide(sides.b, scope, deployments, { fn: name, src: "1" }) },
        { label: "Explore A", title: "All of A", href: exploreSide(sides.a, scope, deployments, { fn: name }) },
        { label: "Explore B", title: "All of B", href: exploreSide(sides.b, scope, deployments, { fn: name }) },
    ];
    useKeys("Compare", [
        { keys: "x", does: "Swap the sides", run: () => change(addressOf(sides.b, sides.a)) },
        { keys: "s", does: "Callers of the chosen function", run: () => name && open(actions[0].href) },
        { keys: "o", does: "Source of the chosen function", run: () => name && open(actions[1].href) },
    ]);
    const time = answer.type.kind === "level" ? "Size" : answer.type.type === "cpu" ? "CPU time" : "Amount";
    return (
        <div class={`diff-work ${stale ? "stale" : ""}`}>
            <Panel
                class="fills-panel"
                label="Difference"
                title={<>Difference <span class="muted plain-weight wide">width = B, colour = change</span></>}
                aside={
                    <>
                        <Find tree={of.tree} selected={choice.node} onSelect={choice.select} />
                        <Segment
                            label="Compare by"
                            value={by}
                            choices={[
                                { value: "time", label: time, title: "How much of it, on both sides" },
                                { value: "share", label: "Share", title: "Which part of its side's total" },
                            ]}
                            onChoose={(value) => change({ by: value === "time" ? null : value })}
                        />
                    </>
                }
            >
                <Picture of={of} choice={choice} actions={actions} label="Difference as a flame graph" />
                <Detail of={of} node={choice.node} actions={actions} />
            </Panel>
            <Panel
                class="fills-panel"
                label="What changed"
                title={<>What changed <span class="muted plain-weight">{measure.unit}</span></>}
                aside={
                    <Segment
                        label="Numbers of"
                        value={rows}
                        choices={[
                            { value: "self", label: "Self", title: "In the function itself" },
                            { value: "total", label: "Total", title: "In it and all that it calls" },
                        ]}
                        onChoose={(value) => change({ of: value === "self" ? null : value }, true)}
                    />
                }
            >
                <Changes answer={answer} of={rows} fn={name} onChoose={choice.selectName} />
            </Panel>
        </div>
    );
}

function Notes({ answer }: { answer: DiffAnswer }) {
    const worth = answer.notes.filter(({ code }) => !["rows_cut", "nothing_found", "tree_folded"].includes(code));
    if (!worth.length) return null;
    return (
        <div class="diff-notes">
            <Note>{worth.map(({ text }) => text[0].toUpperCase() + text.slice(1) + ".").join(" ")}</Note>
        </div>
    );
}

function Body({ scope, sides, deployments, now }: { scope: Scope; sides: Sides; deployments: Deployment[]; now: number }) {
    const byShare = usePlace().params.get("by") === "share";
    const asked = useAsk<DiffAnswer>("/api/v1/diff", diffParams(scope, sides, byShare));
    const of = useCompared(asked.data);
    if (asked.error) return <div class="diff-notes"><Failure error={asked.error} retry={asked.reload} /></div>;
    if (!of) return <div class="diff-notes"><Loading rows={16} /></div>;
    if (!of.answer.left.basis.profiles || !of.answer.right.basis.profiles)
        return <NoData answer={of.answer} scope={scope} sides={sides} deployments={deployments} now={now} />;
    return (
        <>
            <Verdict of={of} sides={sides} scope={scope} now={now} />
            <Notes answer={of.answer} />
            <Strip scope={scope} sides={sides} now={now} />
            <Work of={of} scope={scope} sides={sides} deployments={deployments} now={now} stale={asked.loading} />
        </>
    );
}

export function Compare() {
    const place = usePlace();
    const scope = useScope();
    const now = useNow();
    const known = useAsk<{ deployments: Deployment[] }>(scope.service ? "/api/v1/deployments" : null, { service: scope.service });
    const deployments = scope.service ? (known.data?.deployments ?? []).filter((one) => one.service === scope.service) : [];
    const sides = sidesOf(place.params, deployments, scope.range, now);
    const waits = known.loading && !known.data;
    const link = () => {
        const href = formatPlace("compare", place.params, { ...addressOf(sides.a, sides.b), from: null, until: null, refresh: null }, "all");
        copy(location.origin + href, "Link copied, with times that do not move");
    };
    const put = (side: "a" | "b") => (choice: SideChoice) =>
        change({ ...(side === "a" ? addressOf(choice, sides.b) : addressOf(sides.a, choice)), focus: null });
    return (
        <main class="measuring fills compare">
            <ScopeBar
                range={false}
                link={false}
                middle={
                    <span class="sides">
                        <SideButton letter="A" side={sides.a} deployments={deployments} now={now} onChoose={put("a")} />
                        <button
                            type="button"
                            class="button ghost square swap"
                            aria-label="Swap the sides"
                            title="Swap the sides  (x)"
                            onClick={() => change(addressOf(sides.b, sides.a))}
                        >
                            →
                        </button>
                        <SideButton letter="B" side={sides.b} deployments={deployments} now={now} onChoose={put("b")} />
                    </span>
                }
                actions={
                    <>
                        <Presets sides={sides} deployments={deployments} scope={scope} now={now} />
                        <button type="button" class="button main" onClick={link}>
                            Copy link
                        </button>
                    </>
                }
            />
            {waits ? (
                <Loading rows={16} />
            ) : sides.preset === "version" && deployments.length < 2 ? (
                <NoVersions scope={scope} />
            ) : (
                <Body scope={scope} sides={sides} deployments={deployments} now={now} />
            )}
        </main>
    );
}
