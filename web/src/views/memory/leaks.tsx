// SPDX-License-Identifier: Apache-2.0
// Functions whose memory climbs, each with its line over time; and the sentence of the first.
import { neverDropped, type Growth } from "../../model/growth";
import { bytes } from "../../model/format";
import { Loading, Sparkline } from "../../ui/kit";
import { named } from "../compare/named";
import type { Climb } from "./levels";

// "9 h", "25 min", "3 d": as long as a person would say it is.
export function longTime(ms: number): string {
    const [size, unit] = ms >= 172800000 ? [86400000, "d"] : ms >= 5400000 ? [3600000, "h"] : [60000, "min"];
    return `${Math.round(ms / (size as number))}\u2009${unit}`;
}

const forHowLong = ({ since, until }: Growth) => longTime(until - since);

export function leakSentence({ growth }: Climb): string {
    const more = `keeps ${bytes(growth.by)} more than ${forHowLong(growth)} ago`;
    return neverDropped(growth) ? `${more} and never dropped` : more;
}

function Row({ climb, chosen, onChoose }: { climb: Climb; chosen: boolean; onChoose: (name: string) => void }) {
    const { name, level, growth, leaks } = climb;
    const how = !leaks ? "not steady" : neverDropped(growth) ? "never dropped" : "hardly dropped";
    const small = `${bytes(growth.perHour)} an hour · ${how}`;
    return (
        <tr class="choosable" aria-selected={chosen} onClick={() => onChoose(name)}>
            <td title={name}>
                <button type="button" class="plain ellipsis">
                    {named(name, 30)}
                </button>
                <small>{small}</small>
            </td>
            <td class="spark">
                <Sparkline
                    values={level.values}
                    label={`In use of ${name} over time`}
                    tone={leaks ? "grew" : undefined}
                    width={96}
                />
            </td>
            <td class={`number ${leaks ? "grew" : "soft"}`}>+{bytes(growth.by)}</td>
        </tr>
    );
}

export function Leaks({
    climbs,
    fn,
    onChoose,
}: {
    climbs: Climb[] | null;
    fn: string;
    onChoose: (name: string) => void;
}) {
    if (!climbs) return <Loading rows={6} />;
    const leaks = climbs.filter((climb) => climb.leaks);
    const others = climbs.filter((climb) => !climb.leaks);
    const group = (title: string, said: string, rows: Climb[]) =>
        rows.length > 0 && (
            <tbody aria-label={title}>
                <tr class="group">
                    <td colSpan={3}>
                        <b>{title}</b> {said}
                    </td>
                </tr>
                {rows.map((climb) => (
                    <Row key={climb.name} climb={climb} chosen={climb.name === fn} onChoose={onChoose} />
                ))}
            </tbody>
        );
    return (
        <div class="rows">
            {!leaks.length && (
                <p class="calm">
                    Nothing climbs steadily. A leak shows as a function that holds more with every snapshot, while
                    traffic does not grow.
                </p>
            )}
            <table class="table tall changes leaks">
                <caption class="hidden">Functions whose memory grows</caption>
                <colgroup>
                    <col />
                    <col class="c-spark" />
                    <col class="c-grown" />
                </colgroup>
                <thead class="hidden">
                    <tr>
                        <th scope="col">Function</th>
                        <th scope="col">Over time</th>
                        <th scope="col">Grew by</th>
                    </tr>
                </thead>
                {group("Climbs steadily", "holds more with every snapshot", leaks)}
                {group("Grew", "but not steadily", others)}
            </table>
        </div>
    );
}
