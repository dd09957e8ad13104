// SPDX-License-Identifier: Apache-2.0
// The first view: which service burns what, what changed, and what is worth a look.
import { useState } from "preact/hooks";
import type { LabelValues } from "../api/answers";
import { useAsk } from "../api/use";
import type { Fleet } from "../model/fleet";
import { figures, moment, plural, pluralWords } from "../model/format";
import { rateMeaning, sparseText } from "../model/measure";
import { lengthText, rangeText } from "../model/ranges";
import { formatMatchers } from "../model/selector";
import { SYMPTOMS } from "../model/symptoms";
import { formatTime, seconds } from "../model/time";
import { linkTo } from "../state/place";
import { setMatchers, setRange, useScope, type Scope } from "../state/scope";
import { Empty, Failure, Link, Loading, Panel } from "../ui/kit";
import { MenuButton } from "../ui/menu";
import { RangeButton } from "../ui/scope/range";
import { useTheme } from "../ui/theme";
import { stackColor, Timeline } from "../ui/timeline";
import { Findings } from "./overview/findings";
import { useFleet, type Overlook } from "./overview/fleet";
import { PageHead } from "./overview/head";
import { Services } from "./overview/services";
import { FirstRun } from "./start";
import "./overview.css";

const ENVIRONMENT = ["deployment.environment.name", "deployment.environment", "environment", "env"];

// The labels of some series are quickly there.  Others are read from samples, of a few services alone.
function useEnvironments(scope: Scope, ready: boolean, wide: boolean): { name: string; values: string[] } | null {
    const some = useAsk<{ series: { labels: Record<string, string> }[] }>(ready ? "/api/v1/series" : null, { ...scope.range, limit: 50 });
    const inSeries = ENVIRONMENT.find((one) => some.data?.series.some(({ labels }) => labels[one]));
    const labels = useAsk<{ labels: string[] }>(some.data && !inSeries && !wide ? "/api/v1/labels" : null, { ...scope.range });
    const name = inSeries ?? ENVIRONMENT.find((one) => labels.data?.labels.includes(one));
    const values = useAsk<LabelValues>(name ? `/api/v1/labels/${name}/values` : null, { ...scope.range, limit: 100 });
    return name && values.data ? { name, values: values.data.values.map(({ value }) => value) } : null;
}

function Environment({ scope, ready, wide }: { scope: Scope; ready: boolean; wide: boolean }) {
    const found = useEnvironments(scope, ready, wide);
    if (!found) return null;
    const { name, values } = found;
    const others = scope.matchers.filter((one) => one.name !== name);
    const chosen = scope.matchers.find((one) => one.name === name)?.value ?? "";
    const choose = (value: string) => () => setMatchers(value ? [...others, { name, op: "=", value }] : others);
    const entries = ["", ...values];
    return (
        <MenuButton
            label={`Environment: ${chosen || "all"}`}
            text={<><span class="muted">Env</span><b>{chosen || "all"}</b></>}
            entries={entries.map((value) => ({ label: value || "All", chosen: value === chosen, onChoose: choose(value) }))}
        />
    );
}

function Chart({ look }: { look: Overlook }) {
    const { fleet, cpu } = look;
    useTheme(); // the legend is coloured by it
    if (!fleet) return <Panel title="CPU by service" class="fleet"><div class="quiet"><Loading rows={6} /></div></Panel>;
    const { chart } = fleet;
    const shown = chart.lines;
    return (
        <Panel
            title={<>CPU by service <span class="muted unit">cores</span></>}
            class="fleet"
            label="CPU by service"
            aside={
                <span class="legend small soft">
                    {shown.map(({ label }, i) => (
                        <span key={label} class="ellipsis"><i style={{ background: stackColor(i) }} />{label}</span>
                    ))}
                </span>
            }
        >
            <div class="inside">
                <Timeline
                    label={`CPU of ${plural(fleet.rows.length + fleet.unlisted, "service")} over time, in cores; the table below has the numbers`}
                    start={chart.start}
                    stepMs={chart.stepMs}
                    series={shown.map((line) => ({ label: line.label, values: line.rate.map((value) => (value === null ? null : value / 1e9)) }))}
                    stacked
                    height={166}
                    until={Math.min(Date.parse(cpu.data!.until), Date.now())}
                    format={(value) => `${figures(value)} cores`}
                    onBrush={setRange}
                    deployments={look.deployments}
                />
            </div>
        </Panel>
    );
}

function sentence(fleet: Fleet, processors: number | null): string {
    const using = fleet.rows.filter(({ cores }) => cores !== null).length;
    const all = fleet.rows.length;
    if (!using) return `${pluralWords(all, "service")} sent profiles, none of CPU time`;
    const of = processors ? ` of ${plural(processors, "core")}` : fleet.cores >= 0.995 && fleet.cores < 1.005 ? " core" : " cores";
    return `${pluralWords(using + fleet.unlisted, "service")} ${using === 1 ? "uses" : "use"} ${figures(fleet.cores)}${of}`;
}

const SILENT_MS = 300000;

function Subtitle({ look, span, live }: { look: Overlook; span: string; live: boolean }) {
    const changed = look.fleet?.rows.filter(({ change }) => change?.deployment && change.real && Math.abs(change.ratio) >= 0.05).length ?? 0;
    const first = [look.hosts ? pluralWords(look.hosts, "host") : "", look.hosts ? span.toLowerCase() : span].filter(Boolean).join(", ");
    const last = look.fleet?.last ?? Infinity;
    const asked = look.cpu.data;
    const young = asked && look.fleet?.first && look.fleet.first - Date.parse(asked.from) > (Date.parse(asked.until) - Date.parse(asked.from)) / 4;
    const silent = live && Date.now() - last > SILENT_MS;
    return (
        <>
            {first}{young && `; the first profile is of ${moment(look.fleet!.first!, Date.now())}`}.{changed > 0 && ` ${pluralWords(changed, "service")} changed after a deployment.`}
            {asked && sparseText(asked)}
            {silent && <span class="warn"> Nothing has come in since {moment(last, Date.now())}.</span>}
        </>
    );
}

// There is data, but not here: say where, and lead there.
function Elsewhere({ newest, scope }: { newest: number; scope: Scope }) {
    const { text, day } = rangeText(scope.range, Date.now());
    const go = () => setRange({ from: formatTime(newest - 3540000), until: formatTime(newest + 60000) });
    return (
        <Empty title="No profiles in this time">
            <p>
                Nothing from {text.toLowerCase()} {day}{scope.matchers.length > 0 && ` where ${formatMatchers(scope.matchers)}`}. The last profile is of {moment(newest, Date.now())}.
            </p>
            <p class="row centered">
                <button type="button" class="button main" onClick={go}>Go there</button>
                {scope.matchers.length > 0 && <button type="button" class="button" onClick={() => setMatchers([])}>All environments</button>}
                <Link class="button" href={linkTo("start", {}, [])}>How to send profiles</Link>
            </p>
        </Empty>
    );
}

function Symptoms() {
    return (
        <nav class="symptom-pills" aria-label="Start from a symptom">
            <Link href={linkTo("symptoms")} class="soft link-alone">Start from a symptom</Link>
            {SYMPTOMS.map(({ id, short }) => (
                <Link key={id} class="button pill" href={linkTo("symptoms", { symptom: id })}>{short}</Link>
            ))}
        </nav>
    );
}

// What was looked at and found in order.
function quiet(fleet: Fleet | null): string {
    const compared = fleet?.rows.some(({ change }) => change !== null);
    const memory = fleet?.rows.some(({ memory }) => memory !== null);
    const checked = [compared && "no service grew beyond chance", memory && "no memory climbs", "garbage collection is small"].filter(Boolean).join("; ");
    return `${checked.charAt(0).toUpperCase()}${checked.slice(1)}.${compared ? "" : " There is no earlier time to compare with yet."}`;
}

export function Overview() {
    const scope = useScope();
    const [pages, setPages] = useState<string[][]>([]);
    const look = useFleet(scope, pages);
    const { fleet, cpu, services } = look;
    const { text, day } = rangeText(scope.range, Date.now());
    const span = [text, day].filter(Boolean).join(" ");
    if (services?.length === 0) return <FirstRun />;
    const newest = Math.max(...(services ?? []).map(({ newest }) => Date.parse(newest ?? "") || 0));
    const empty = fleet?.rows.length === 0 && services !== null && !cpu.loading;
    return (
        <main class="reading overview">
            <PageHead title={fleet ? (empty ? "Nothing here" : <span title={rateMeaning(fleet.seconds)}>{sentence(fleet, look.processors)}</span>) : "\u00a0"} text={fleet ? (empty ? span : <Subtitle look={look} span={span} live={scope.range.until === "now"} />) : undefined}>
                <Environment scope={scope} ready={cpu.data !== null} wide={look.wide} />
                <RangeButton scope={scope} />
            </PageHead>
            {cpu.error && <Failure error={cpu.error} retry={cpu.reload} />}
            {empty && <Elsewhere newest={newest} scope={scope} />}
            {!empty && (fleet || !cpu.error) && (
                <div class={cpu.loading && fleet ? "stale" : ""}>
                    <div class="pair">
                        <Chart look={look} />
                        <Findings look={look} quiet={quiet(fleet)} />
                    </div>
                    {fleet && <Services fleet={fleet} notices={look.notices} scope={scope} span={lengthText(seconds(scope.range, Date.now()))} onSeen={setPages} />}
                </div>
            )}
            <Symptoms />
        </main>
    );
}
