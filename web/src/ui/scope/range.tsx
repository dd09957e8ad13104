// SPDX-License-Identifier: Apache-2.0
// When: the last so many hours, since or between deployments, or two times; and how often to look again.
import { useState } from "preact/hooks";
import type { Deployment } from "../../api/answers";
import { useAsk } from "../../api/use";
import { deploymentRanges, LAST_RANGES, moved, rangeText, sameRange, type NamedRange } from "../../model/ranges";
import { formatTime, parseTime, type Range } from "../../model/time";
import { change, usePlace } from "../../state/place";
import { refreshNow } from "../../state/refresh";
import { setRange, type Scope } from "../../state/scope";
import { Icon } from "../icons";
import { useKeys } from "../keys";
import { Segment } from "../kit";
import { MenuButton } from "../menu";

const REFRESH = [
    { value: "", label: "Off" },
    { value: "5", label: "5 s" },
    { value: "15", label: "15 s" },
    { value: "60", label: "1 min" },
];
const DEPLOYMENTS_SHOWN = 6;

// A time as a datetime-local field has it: local, without a zone.
const local = (ms: number) => new Date(ms - new Date(ms).getTimezoneOffset() * 60000).toISOString().slice(0, 19);

function Absolute({ range, onChoose }: { range: Range; onChoose: (range: Range) => void }) {
    const now = Date.now();
    const [from, setFrom] = useState(local(parseTime(range.from, now) || now - 3600000));
    const [until, setUntil] = useState(local(parseTime(range.until, now) || now));
    const wrong = !(Date.parse(from) < Date.parse(until));
    const take = (event: Event) => {
        event.preventDefault();
        if (!wrong) onChoose({ from: formatTime(Date.parse(from)), until: formatTime(Date.parse(until)) });
    };
    return (
        <form class="absolute" onSubmit={take}>
            <label>
                <span>From</span>
                <input type="datetime-local" step="1" value={from} onInput={(event) => setFrom(event.currentTarget.value)} />
            </label>
            <label>
                <span>Until</span>
                <input type="datetime-local" step="1" value={until} onInput={(event) => setUntil(event.currentTarget.value)} />
            </label>
            <div class="row">
                <span class="grow small bad">{wrong && "It must end after it begins."}</span>
                <button type="submit" class="button" disabled={wrong}>
                    Apply
                </button>
            </div>
        </form>
    );
}

function Ranges({ ranges, range, onChoose }: { ranges: NamedRange[]; range: Range; onChoose: (range: Range) => void }) {
    return (
        <>
            {ranges.map((one) => (
                <button key={one.title} type="button" role="menuitem" onClick={() => onChoose({ from: one.from, until: one.until })}>
                    <span class="grow ellipsis">{one.title}</span>
                    {sameRange(one, range) && <span class="ok" aria-label="chosen">✓</span>}
                    {one.aside && <span class="muted small nowrap">{one.aside}</span>}
                </button>
            ))}
        </>
    );
}

function RangePicker({ scope, close }: { scope: Scope; close: () => void }) {
    const refresh = usePlace().params.get("refresh") ?? "";
    const asked = useAsk<{ deployments: Deployment[] }>(scope.service ? "/api/v1/deployments" : null, { service: scope.service });
    const ran = deploymentRanges(asked.data?.deployments ?? [], Date.now()).slice(0, DEPLOYMENTS_SHOWN);
    const choose = (range: Range) => {
        close();
        setRange(range);
    };
    return (
        <div class="range-picker">
            <div class="column">
                <Ranges ranges={LAST_RANGES} range={scope.range} onChoose={choose} />
            </div>
            <div class="column">
                <div class="caption">Between two times, on your clock</div>
                <Absolute range={scope.range} onChoose={choose} />
                <hr />
                <div class="caption">Deployments</div>
                {!scope.service && <p class="hint">Choose a service to see its deployments here.</p>}
                {scope.service && !ran.length && <p class="hint">{asked.loading ? "Loading…" : "None was seen yet. A new service.version, or kiln annotate, makes one."}</p>}
                <Ranges ranges={ran} range={scope.range} onChoose={choose} />
                <hr />
                <div class="caption">Look again every</div>
                <div class="row refresh">
                    <Segment label="Refresh every" value={refresh} choices={REFRESH} onChoose={(value) => change({ refresh: value }, true)} />
                    <button type="button" class="button ghost square" aria-label="Refresh now" title="Refresh now" onClick={refreshNow}>
                        <Icon name="refresh" />
                    </button>
                </div>
            </div>
        </div>
    );
}

export function RangeButton({ scope }: { scope: Scope }) {
    const now = Date.now();
    const { text, day } = rangeText(scope.range, now);
    const refresh = REFRESH.find(({ value }) => value && value === usePlace().params.get("refresh"));
    const move = (steps: number) => setRange(moved(scope.range, steps, Date.now()));
    const atEnd = !(parseTime(scope.range.until, now) < now);
    useKeys("Time", [
        { keys: "[", does: "Earlier window", run: () => move(-1) },
        { keys: "]", does: "Later window", run: () => move(1) },
    ]);
    return (
        <span class="when">
            <button type="button" class="button ghost square wide" aria-label="Earlier" title="Earlier  ([)" onClick={() => move(-1)}>
                ‹
            </button>
            <MenuButton
                label={`Time: ${text} ${day}`.trim()}
                menuClass="picker"
                alignRight
                text={
                    <>
                        <b>{text}</b>
                        {day && <span class="soft">{day}</span>}
                        {refresh && <span class="tag ok" title={`Refreshed every ${refresh.label}`}>{refresh.label}</span>}
                    </>
                }
                content={(close) => <RangePicker scope={scope} close={close} />}
            />
            <button type="button" class="button ghost square wide" aria-label="Later" title="Later  (])" disabled={atEnd} onClick={() => move(1)}>
                ›
            </button>
        </span>
    );
}
