// SPDX-License-Identifier: Apache-2.0
// Waiting: where time passes without CPU.  The sentence, what is waited for, the flame graph of waiting
// stacks, and functions with what they wait and what they compute.
import { useMemo } from "preact/hooks";
import type { ProfileType, TypeRow } from "../api/answers";
import { useAsk } from "../api/use";
import { Flame } from "../flame/flame";
import { digits, figures, share } from "../model/format";
import { RUNNABLE } from "../model/kernel";
import { patternOf } from "../model/search";
import { selector } from "../model/selector";
import { absolute } from "../model/time";
import { nameOf } from "../model/tree";
import { WHYS, WHY_TITLE, type Why } from "../model/waiting";
import { formatPath, nodeOnPath } from "../profile/state";
import { change, linkTo, open, usePlace } from "../state/place";
import { useScope, type Scope } from "../state/scope";
import { useKeys } from "../ui/keys";
import { Empty, Failure, Link, Loading, Panel, Segment } from "../ui/kit";
import { ScopeBar } from "../ui/scope";
import { inSentence } from "./compare/named";
import { largestNamed } from "./compare/choice";
import { Find } from "./compare/find";
import { Elsewhere } from "./compare/nothing";
import { useNow } from "./compare/now";
import { whose } from "./compare/picture";
import { TELLS, TELL_TITLE, typeOfTell, useWaiting, type Tell, type Waited } from "./waiting/data";
import { NoWaiting } from "./waiting/empty";
import { WaitTable } from "./waiting/table";
import "./compare.css";
import "./memory.css";
import "./waiting.css";

const LACK = 0.1; // of the CPU time: less is how schedulers are

const lower = (text: string) => text[0].toLowerCase() + text.slice(1);

function Verdict({ waited, service, reason }: { waited: Waited; service: string; reason: string | null }) {
    const { sums, measure, rows, cpu, seen } = waited;
    const late = measure.rate(seen.find((one) => one.reason === RUNNABLE)?.value ?? 0);
    const lack = cpu && late > cpu.total * LACK ? ` Ready to run, it waits ${figures(late / cpu.total)} s for a processor for each second it has one.` : "";
    const busy = WHYS.filter((why) => why !== "idle").reduce((sum, why) => sum + sums[why], 0);
    const waits = measure.rate(busy);
    const first = [...rows].filter(({ why }) => why !== "idle").sort((a, b) => b.self - a.self)[0];
    const parts = WHYS.filter((why) => why !== "idle" && sums[why] > 0).sort((a, b) => sums[b] - sums[a]);
    const words = parts.map((why) => `${lower(WHY_TITLE[why])} ${share(sums[why], busy, 0)}`).join(", ");
    const who = service || "Everything";
    const of = reason === null ? "" : ` (${seen.find((one) => one.reason === reason)?.title.toLowerCase() ?? reason} only)`;
    return (
        <div class="verdict">
            <h1>
                {busy === 0 ? (
                    `${who} waits for nothing but work`
                ) : cpu ? (
                    <>
                        {who} waits <span class="warn">{figures(waits / cpu.total)} s for each second of CPU</span>{of}
                    </>
                ) : (
                    <>
                        {who} waits <span class="warn">{figures(waits)} s a second</span>, of all its threads{of}
                    </>
                )}
                {busy > 0 && first && `; most in ${inSentence(first.name)}`}
            </h1>
            <span class="soft">{(words && `${words[0].toUpperCase()}${words.slice(1)}.`) + lack}</span>
        </div>
    );
}

// What the kernel saw: of some of it the page can only guess from stacks, and of a lack of processors not at all.
function Kernel({ waited, reason }: { waited: Waited; reason: string | null }) {
    const { seen, measure } = waited;
    return (
        <div class="reasons kernel" role="group" aria-label="What the kernel saw">
            <span class="soft">Seen by the kernel</span>
            {seen.map((one) => (
                <button
                    key={one.reason}
                    type="button"
                    class="button pill"
                    title={one.means}
                    aria-pressed={reason === one.reason}
                    onClick={() => change({ reason: reason === one.reason ? null : one.reason, why: null, focus: null })}
                >
                    {one.title} <span class="muted">{digits(measure.rate(one.value), 2)}</span>
                </button>
            ))}
        </div>
    );
}

function Reasons({ waited, why, idle }: { waited: Waited; why: Why | null; idle: boolean }) {
    const { sums, measure } = waited;
    const number = (value: number) => digits(measure.rate(value), 2);
    const busy = WHYS.filter((one) => one !== "idle").reduce((sum, one) => sum + sums[one], 0);
    const button = (value: Why | null, title: string, sum: number) => (
        <button
            key={title}
            type="button"
            class="button pill"
            aria-pressed={why === value}
            onClick={() => change({ why: value, focus: null })}
        >
            {title} <span class="muted">{number(sum)}</span>
        </button>
    );
    return (
        <div class="reasons" role="group" aria-label="What is waited for">
            {button(null, "All", idle ? busy + sums.idle : busy)}
            {WHYS.filter((one) => one !== "idle" && sums[one] > 0).map((one) => button(one, WHY_TITLE[one], sums[one]))}
            <span class="grow" />
            {sums.idle > 0 && (
                <span class="soft">
                    Idle threads, {number(sums.idle)}, are {idle ? "shown" : "hidden"}: they wait for work.{" "}
                    <button type="button" class="link" onClick={() => change({ idle: !idle, why: null, focus: null })}>
                        {idle ? "Hide them" : "Show them"}
                    </button>
                </span>
            )}
        </div>
    );
}

interface DetailProps {
    waited: Waited;
    name: string;
    node: number;
    type: ProfileType;
}

function Detail({ waited, name, node, type }: DetailProps) {
    const { tree, measure, cpu, rows } = waited;
    const row = rows.find((one) => one.name === name);
    const explore = (more: Record<string, string>) => linkTo("explore", { type: type.id, fn: name, ...more });
    useKeys("Waiting", [
        { keys: "s", does: "Callers of the chosen function", run: () => name && open(explore({ show: "sandwich" })) },
        { keys: "o", does: "Source of the chosen function", run: () => name && open(explore({ src: "1" })) },
    ]);
    const value = node >= 0 ? tree.total[node] : (row?.total ?? tree.total[0]);
    return (
        <div class="diff-detail" role="group" aria-label="The chosen frame">
            <div class="who">
                <b class="ellipsis" title={name}>
                    {name || "All that is shown"}
                </b>
                <small class="ellipsis">
                    {row
                        ? [row.why !== "other" && WHY_TITLE[row.why], node > 0 && whose(tree, tree.name[node])]
                              .filter(Boolean)
                              .join(" · ")
                        : "\u00a0"}
                </small>
            </div>
            <dl>
                <div>
                    <dt>Waiting</dt>
                    <dd>{measure.format(value)}</dd>
                </div>
                <div>
                    <dt>Of all</dt>
                    <dd>{share(value, tree.total[0])}</dd>
                </div>
                {waited.seen.length > 0 && name && (
                    <div>
                        <dt>Runnable</dt>
                        <dd>{measure.format(waited.runnable(name, "total"))}</dd>
                    </div>
                )}
                {cpu && (
                    <div>
                        <dt>CPU</dt>
                        <dd>{digits(name ? cpu.of(name, "total") : cpu.total, 2)} cores</dd>
                    </div>
                )}
            </dl>
            {name && (
                <div class="actions">
                    <Link class="button" title="Who calls it  (s)" href={explore({ show: "sandwich" })}>
                        Callers<kbd class="wide">s</kbd>
                    </Link>
                    <Link class="button" title="Its lines  (o)" href={explore({ src: "1" })}>
                        Source<kbd class="wide">o</kbd>
                    </Link>
                </div>
            )}
        </div>
    );
}

function Work({
    waited,
    tell,
    tells,
    type,
    stale,
}: {
    waited: Waited;
    tell: Tell;
    tells: Tell[];
    type: ProfileType;
    stale: boolean;
}) {
    const { params } = usePlace();
    const { tree, measure, answer, whole } = waited;
    const of = params.get("of") === "total" ? "total" : "self";
    const first = useMemo(() => [...waited.rows].sort((a, b) => b.self - a.self)[0], [waited]);
    const fn = params.get("fn") ?? first?.name ?? ""; // until something is chosen, where most is waited
    const node = useMemo(() => {
        const at = nodeOnPath(tree, params.get("at") ?? "");
        return at > 0 && nameOf(tree, at) === fn ? at : fn ? largestNamed(tree, fn) : -1;
    }, [tree, fn, params.get("at")]);
    const focus = nodeOnPath(tree, params.get("focus") ?? "");
    const select = (to: number) => {
        const name = to > 0 ? nameOf(tree, to) : null;
        change({ fn: name, at: name === null || largestNamed(tree, name) === to ? null : formatPath(tree, to) }, true);
    };
    const folded = answer.notes.find(({ code }) => code === "tree_folded");
    return (
        <div class={`diff-work ${stale ? "stale" : ""}`}>
            <Panel
                class="fills-panel"
                label="Where it waits"
                title={
                    <>
                        Where it waits <span class="muted plain-weight wide">width = time waited</span>
                    </>
                }
                aside={
                    <>
                        <Find tree={tree} selected={node} onSelect={select} />
                        {tells.length > 1 && (
                            <Segment
                                label="How waiting is told"
                                value={tell}
                                choices={tells.map((one) => ({
                                    value: one,
                                    label: TELL_TITLE[one][0],
                                    title: TELL_TITLE[one][1],
                                }))}
                                onChoose={(value) =>
                                    change({ by: value === tells[0] ? null : value, why: null, reason: null, focus: null })
                                }
                            />
                        )}
                    </>
                }
            >
                <div class="diff-stage">
                    {tree.total[0] > 0 ? (
                        <Flame
                            label="Where it waits, as a flame graph"
                            tree={tree}
                            measure={measure}
                            samples={whole.total[0] ? (answer.basis.count * tree.total[0]) / whole.total[0] : 0}
                            selected={node}
                            onSelect={select}
                            focus={focus}
                            onFocus={(to) => change({ focus: to > 0 ? formatPath(tree, to) : null })}
                            find={patternOf(params.get("find") ?? "")}
                        />
                    ) : (
                        <p class="calm">Nothing here waits for anything but work.</p>
                    )}
                </div>
                {folded && <p class="calm small">{folded.text}.</p>}
                <Detail waited={waited} name={fn} node={node} type={type} />
            </Panel>
            <Panel
                class="fills-panel"
                label="Functions that wait"
                title={
                    <>
                        Functions <span class="muted plain-weight wide">s a second, cores</span>
                    </>
                }
                aside={
                    <Segment
                        label="Numbers of"
                        value={of}
                        choices={[
                            { value: "self", label: "Waits itself", title: "The function that went to sleep, in the kernel or not" },
                            { value: "total", label: "Below it", title: "It, or something that it called" },
                        ]}
                        onChoose={(value) => change({ of: value === "self" ? null : value }, true)}
                    />
                }
            >
                <WaitTable waited={waited} of={of} fn={fn} onChoose={(name) => change({ fn: name, at: null }, true)} />
            </Panel>
        </div>
    );
}

function Body({ scope, types }: { scope: Scope; types: ProfileType[] }) {
    const { params } = usePlace();
    const tells = TELLS.filter((one) => typeOfTell(one, types));
    const said = params.get("by") as Tell;
    const tell = tells.includes(said) ? said : tells[0];
    const type = typeOfTell(tell, types)!;
    const why = WHYS.includes(params.get("why") as Why) ? (params.get("why") as Why) : null;
    const idle = params.get("idle") === "1";
    const reason = tell === "off_cpu" ? params.get("reason") : null;
    const { waited, loading, error, reload } = useWaiting(tell, type, scope, { why, idle, reason });
    if (error)
        return (
            <div class="diff-notes top">
                <Failure error={error} retry={reload} />
            </div>
        );
    if (!waited)
        return (
            <div class="diff-notes">
                <Loading rows={16} />
            </div>
        );
    if (!waited.answer.total && reason === null)
        return (
            <Empty title="Nothing in this range">
                <p>No profile of it says that anything was waited for.</p>
            </Empty>
        );
    return (
        <>
            <Verdict waited={waited} service={scope.service} reason={reason} />
            <Reasons waited={waited} why={why} idle={idle} />
            {waited.seen.length > 0 && <Kernel waited={waited} reason={reason} />}
            <Work waited={waited} tell={tell} tells={tells} type={type} stale={loading} />
        </>
    );
}

// A profile type that could tell waiting: as typeOfTell(), by its id.
const tellsWaiting = (typeId: string) => /^(off_cpu|wall):|^(block|mutex):delay:/.test(typeId);

function WaitingOf({ scope }: { scope: Scope }) {
    const now = useNow(scope);
    const asked = useAsk<{ types: TypeRow[] }>("/api/v1/types", {
        query: selector("", scope.service, scope.matchers),
        ...scope.range,
    });
    const types = asked.data?.types ?? [];
    return (
        <main class="measuring fills waiting">
            <ScopeBar types={false} />
            {asked.error ? (
                <div class="diff-notes top">
                    <Failure error={asked.error} retry={asked.reload} />
                </div>
            ) : !asked.data ? (
                <div class="diff-notes">
                    <Loading rows={16} />
                </div>
            ) : TELLS.some((one) => typeOfTell(one, types)) ? (
                <Body scope={scope} types={types} />
            ) : (
                <Elsewhere
                    service={scope.service}
                    range={absolute(scope.range, now)}
                    now={now}
                    what="waiting profiles"
                    is={tellsWaiting}
                >
                    <NoWaiting service={scope.service} />
                </Elsewhere>
            )}
        </main>
    );
}

// What is known of one service is nothing to start from with another.
export function Waiting() {
    const scope = useScope();
    return <WaitingOf key={scope.service} scope={scope} />;
}
