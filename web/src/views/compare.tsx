// SPDX-License-Identifier: Apache-2.0
// Compare: two versions, windows or label sets, A and B.  What changed, said first; then the picture
// of it and the table.
import type { Deployment, DiffAnswer } from "../api/answers";
import { useAsk } from "../api/use";
import type { Of } from "../model/diff";
import { formatMatchers } from "../model/selector";
import { change, formatPlace, linkTo, open, usePlace } from "../state/place";
import { useScope, type Scope } from "../state/scope";
import { useKeys } from "../ui/keys";
import { Failure, Loading, Note, Panel, Segment, copy } from "../ui/kit";
import { ScopeBar } from "../ui/scope";
import { Changes } from "./compare/changes";
import { useChoice } from "./compare/choice";
import { useCompared, type Compared } from "./compare/compared";
import { Find } from "./compare/find";
import { useNow } from "./compare/now";
import { NoData, NoVersions } from "./compare/nothing";
import { Detail, Picture, type Action } from "./compare/picture";
import { SideButton } from "./compare/side";
import {
    PRESETS,
    addressOf,
    addressOfPreset,
    diffParams,
    presetTitle,
    sidesOf,
    type Comparing,
    type Preset,
    type SideChoice,
} from "./compare/sides";
import { Strip } from "./compare/strip";
import { Verdict } from "./compare/verdict";
import "./compare.css";

function exploreSide(
    side: SideChoice,
    scope: Scope,
    deployments: Deployment[],
    more: Record<string, string> = {},
): string {
    const label = deployments.find((one) => one.version === side.version)?.label;
    const version = side.version && label ? [{ name: label, op: "=", value: side.version } as const] : [];
    const where = formatMatchers([...scope.matchers, ...version, ...side.matchers]);
    return linkTo("explore", { ...side.range, where, ...more });
}

function Presets({ sides, deployments, scope, now }: Comparing) {
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
            onChoose={(preset) =>
                change({ ...addressOfPreset(preset === standard ? null : (preset as Preset)), fn: null, focus: null })
            }
        />
    );
}

function Work({ of, scope, sides, deployments, stale }: Comparing & { of: Compared; stale: boolean }) {
    const { params } = usePlace();
    const { measure, answer } = of;
    const choice = useChoice(of);
    const { name } = choice;
    const by = params.get("by") === "share" ? "share" : "time";
    const rows: Of = params.get("of") === "total" ? "total" : "self";
    const actions: Action[] = [
        {
            label: "Callers",
            key: "s",
            title: "Who calls it, in B  (s)",
            href: exploreSide(sides.b, scope, deployments, { fn: name, show: "sandwich" }),
        },
        {
            label: "Source",
            key: "o",
            title: "Its lines, in B  (o)",
            href: exploreSide(sides.b, scope, deployments, { fn: name, src: "1" }),
        },
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
                title={
                    <>
                        Difference <span class="muted plain-weight wide">width = B, colour = change</span>
                    </>
                }
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
                title={
                    <>
                        What changed <span class="muted plain-weight">{measure.unit}</span>
                    </>
                }
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

function Body(comparing: Comparing) {
    const { scope, sides } = comparing;
    const byShare = usePlace().params.get("by") === "share";
    const asked = useAsk<DiffAnswer>("/api/v1/diff", diffParams(scope, sides, byShare));
    const of = useCompared(asked.data);
    if (asked.error)
        return (
            <div class="diff-notes">
                <Failure error={asked.error} retry={asked.reload} />
            </div>
        );
    if (!of)
        return (
            <div class="diff-notes">
                <Loading rows={16} />
            </div>
        );
    if (!of.answer.left.basis.profiles || !of.answer.right.basis.profiles)
        return <NoData {...comparing} answer={of.answer} />;
    return (
        <>
            <Verdict {...comparing} of={of} />
            <Notes answer={of.answer} />
            <Strip {...comparing} />
            <Work {...comparing} of={of} stale={asked.loading} />
        </>
    );
}

function CompareService({ scope }: { scope: Scope }) {
    const place = usePlace();
    const now = useNow(scope, place.params.get("preset"));
    const known = useAsk<{ deployments: Deployment[] }>(scope.service ? "/api/v1/deployments" : null, {
        service: scope.service,
    });
    const deployments = scope.service
        ? (known.data?.deployments ?? []).filter((one) => one.service === scope.service)
        : [];
    const sides = sidesOf(place.params, deployments, scope.range, now);
    const waits = known.loading && !known.data;
    const link = () => {
        const href = formatPlace(
            "compare",
            place.params,
            { ...addressOf(sides.a, sides.b), from: null, until: null, refresh: null },
            "all",
        );
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

// What is known of one service is nothing to start from with another.
export function Compare() {
    const scope = useScope();
    return <CompareService key={`${scope.service} ${scope.type}`} scope={scope} />;
}
