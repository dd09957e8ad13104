// SPDX-License-Identifier: Apache-2.0
// Deployments as flags, or as pins where their labels would collide, and notes below them.
import type { Annotation, Deployment } from "../../api/answers";
import { moment, plural } from "../../model/format";

// Where the plot lies in the timeline, and which times it shows.
export interface Area {
    left: number;
    top: number;
    width: number;
    height: number;
    from: number;
    until: number;
}

interface Flag {
    deployment: Deployment;
    x: number;
    text: string; // "": a pin
    leftwards: boolean;
    more: number; // deployments just before it that it stands for too
}

const NEAR = 12; // px; closer than that they are one mark, or a day of many would be a black bar
const WIDEST = 160; // px of a label
const LETTER = 6.1; // px of a letter in 11 px, on average
const nameOf = (one: Deployment) => one.version || one.name || one.commit.slice(0, 9) || "deployed";

// The newest first: its label is the one that people look for.
export function flagsOf(deployments: Deployment[], area: Area): Flag[] {
    const services = new Set(deployments.map(({ service }) => service));
    const taken: [number, number][] = [];
    const x = (ms: number) => ((ms - area.from) / (area.until - area.from)) * area.width;
    const flags: Flag[] = [];
    const newestFirst = [...deployments]
        .sort((a, b) => Date.parse(b.at) - Date.parse(a.at))
        .map((deployment) => ({ deployment, x: x(Date.parse(deployment.at)) }))
        .filter((flag) => flag.x >= 0 && flag.x <= area.width);
    for (const { deployment, x } of newestFirst) {
        const after = flags[flags.length - 1];
        if (after && after.x - x < NEAR && after.deployment.service === deployment.service) {
            after.more++;
            continue;
        }
        const text = services.size > 1 ? `${deployment.service} ${nameOf(deployment)}` : nameOf(deployment);
        const width = Math.min(text.length * LETTER + 12, WIDEST);
        const leftwards = x + width > area.width;
        const span: [number, number] = leftwards ? [x - width, x] : [x, x + width];
        const free = span[0] >= -area.left && taken.every(([a, b]) => span[1] + 4 < a || span[0] > b + 4);
        taken.push(free ? span : [x - 5, x + 5]);
        flags.push({ deployment, x, text: free ? text : "", leftwards, more: 0 });
    }
    return flags;
}

function FlagMark({ flag, area, onDeployment }: { flag: Flag; area: Area; onDeployment?: (deployment: Deployment) => void }) {
    const { deployment } = flag;
    const words = [`${deployment.service} ${nameOf(deployment)}`, moment(Date.parse(deployment.at), Date.now()), deployment.text, flag.more && `and ${plural(flag.more, "deployment")} just before`].filter(Boolean).join(" · ");
    return (
        <div class="mark" style={{ left: `${area.left + flag.x}px`, height: `${area.top + area.height}px` }}>
            <button
                type="button"
                class={flag.text ? `flag ${flag.leftwards ? "leftwards" : ""}` : "pin"}
                title={onDeployment ? `${words}\nCompare before and after` : words}
                aria-label={`Deployment: ${words}`}
                onClick={() => onDeployment?.(deployment)}
                disabled={!onDeployment}
            >
                {flag.text}
            </button>
        </div>
    );
}

function NoteMark({ note, area }: { note: Annotation; area: Area }) {
    const x = (ms: number) => Math.max(0, Math.min(1, (ms - area.from) / (area.until - area.from))) * area.width;
    const [from, until] = [Date.parse(note.at), note.until ? Date.parse(note.until) : Date.parse(note.at)];
    if (until < area.from || from > area.until) return null;
    const words = `${moment(from, Date.now())} · ${note.text}`;
    return (
        <span
            class="told"
            role="img"
            aria-label={`Note: ${words}`}
            title={words}
            style={{ left: `${area.left + x(from)}px`, width: `${Math.max(6, x(until) - x(from))}px`, top: `${area.top + area.height - 3}px` }}
        />
    );
}

export function Marks(props: { area: Area; deployments: Deployment[]; annotations: Annotation[]; onDeployment?: (deployment: Deployment) => void }) {
    return (
        <>
            {flagsOf(props.deployments, props.area).map((flag) => (
                <FlagMark key={flag.deployment.id} flag={flag} area={props.area} onDeployment={props.onDeployment} />
            ))}
            {props.annotations.map((note) => <NoteMark key={note.id} note={note} area={props.area} />)}
        </>
    );
}
