// SPDX-License-Identifier: Apache-2.0
// The button of one side, and what opens below it: a version, a window, further labels.
import { useState } from "preact/hooks";
import type { Deployment } from "../../api/answers";
import { moment } from "../../model/format";
import { formatMatchers, parseMatchers } from "../../model/selector";
import { formatTime, parseTime } from "../../model/time";
import { MenuButton } from "../../ui/menu";
import { matchersText, versionRange, windowText, type SideChoice } from "./sides";

interface SideProps {
    letter: "A" | "B";
    side: SideChoice;
    deployments: Deployment[];
    now: number;
    onChoose: (side: SideChoice) => void;
}

// A time as a datetime-local field has it: local, without a zone.
const local = (text: string) => {
    const ms = Date.parse(text);
    return new Date(ms - new Date(ms).getTimezoneOffset() * 60000).toISOString().slice(0, 19);
};

const QUICK: [string, number][] = [
    ["Last hour", 1],
    ["Last 3 hours", 3],
    ["Last day", 24],
];

function Form({ side, deployments, now, onChoose, close }: SideProps & { close: () => void }) {
    const [version, setVersion] = useState(side.version);
    const [from, setFrom] = useState(local(side.range.from));
    const [until, setUntil] = useState(local(side.range.until));
    const [where, setWhere] = useState(formatMatchers(side.matchers));
    const [fromMs, untilMs] = [Date.parse(from), Date.parse(until)];
    const matchers = parseMatchers(where);
    const wrong = !(fromMs < untilMs)
        ? "It must end after it begins."
        : where.trim() && !matchers.length
          ? 'Labels look like this: env="prod",pod=~"a|b"'
          : "";
    const setRange = (begin: number, end: number) => {
        setFrom(local(formatTime(begin)));
        setUntil(local(formatTime(end)));
    };
    const chooseVersion = (text: string) => {
        setVersion(text);
        const range = versionRange(text, deployments, now);
        if (range) setRange(Date.parse(range.from), Date.parse(range.until));
    };
    const take = (event: Event) => {
        event.preventDefault();
        if (wrong) return;
        close();
        onChoose({ version, range: { from: formatTime(fromMs), until: formatTime(untilMs) }, matchers });
    };
    return (
        <form class="side-form" onSubmit={take}>
            {deployments.length > 0 && (
                <label>
                    <span>Version</span>
                    <select autofocus value={version} onChange={(event) => chooseVersion(event.currentTarget.value)}>
                        <option value="">Any</option>
                        {deployments.map((one) => (
                            <option key={one.id} value={one.version}>
                                {one.version}, since {moment(Date.parse(one.at), now)}
                            </option>
                        ))}
                    </select>
                </label>
            )}
            <label>
                <span>From</span>
                <input
                    type="datetime-local"
                    step="1"
                    value={from}
                    onInput={(event) => setFrom(event.currentTarget.value)}
                />
            </label>
            <label>
                <span>Until</span>
                <input
                    type="datetime-local"
                    step="1"
                    value={until}
                    onInput={(event) => setUntil(event.currentTarget.value)}
                />
            </label>
            <div class="row quick">
                {QUICK.map(([title, hours]) => (
                    <button
                        key={title}
                        type="button"
                        class="button pill"
                        onClick={() => setRange(parseTime(`now-${hours}h`, now), now)}
                    >
                        {title}
                    </button>
                ))}
            </div>
            <label>
                <span>Labels</span>
                <input
                    type="text"
                    class="mono"
                    spellcheck={false}
                    placeholder={'env="prod"'}
                    value={where}
                    onInput={(event) => setWhere(event.currentTarget.value)}
                />
            </label>
            <div class="row">
                <span class="grow small bad">{wrong}</span>
                <button type="submit" class="button main" disabled={!!wrong}>
                    Apply
                </button>
            </div>
        </form>
    );
}

export function SideButton(props: SideProps) {
    const { side, letter, now } = props;
    const labels = matchersText(side.matchers);
    const range = windowText(side.range, now);
    return (
        <span class={`side ${letter === "B" ? "solid" : ""}`}>
            <i aria-hidden="true">{letter}</i>
            <MenuButton
                label={`Choose ${letter}`}
                menuClass="side-menu"
                text={
                    <>
                        {side.version && <b>{side.version}</b>}
                        {labels && <b class="ellipsis side-labels">{labels}</b>}
                        {side.version || labels ? <span class="muted side-time">{range}</span> : <b>{range}</b>}
                    </>
                }
                content={(close) => <Form {...props} close={close} />}
            />
        </span>
    );
}
