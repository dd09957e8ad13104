// SPDX-License-Identifier: Apache-2.0
// The word beside the pointer: all there is to say of a frame.
import { useLayoutEffect, useRef } from "preact/hooks";
import { percent, share } from "../model/format";
import type { Measure } from "../model/measure";
import { describe, type Looks } from "../model/palette";

// Half of the 95 % interval of a share that was found in so many observations; 0: not known.
export function halfWidth(part: number, samples: number): number {
    return samples > 0 ? 1.96 * Math.sqrt((part * (1 - part)) / samples) : 0;
}

// "29.2 % ± 0.7": what is left out could not be seen anyway.
export function shareWithError(value: number, whole: number, samples: number): { text: string; error: string } {
    const half = whole ? halfWidth(value / whole, samples) * 100 : 0;
    return { text: share(value, whole), error: half >= 0.05 ? `± ${half.toFixed(1)}` : "" };
}

interface TipProps {
    looks: Looks;
    node: number;
    at: { x: number; y: number };
    measure: Measure;
    samples: number;
    noise?: (node: number) => boolean;
    refine: boolean;
}

function Change({ looks, node, measure, noise }: TipProps) {
    const { tree } = looks;
    const before = tree.leftTotal![node];
    const change = tree.total[node] - before;
    const isNoise = noise?.(node);
    return (
        <dl>
            <dt>A</dt><dd>{measure.format(before)}</dd>
            <dt>B</dt><dd>{measure.format(tree.total[node])}</dd>
            <dt>Change</dt>
            <dd class={isNoise ? "muted" : change > 0 ? "grew" : "shrank"}>
                {isNoise ? "within noise" : `${change > 0 ? "+" : ""}${measure.short(change)}${before ? ` · ${change > 0 ? "+" : ""}${percent(change / before, 0)}` : ", new"}`}
            </dd>
        </dl>
    );
}

function Values({ looks, node, measure, samples }: TipProps) {
    const { tree } = looks;
    const row = (title: string, value: number) => {
        const { text, error } = shareWithError(value, tree.total[0], samples);
        return [<dt>{title}</dt>, <dd><b>{text}</b> {error && <span class="muted">{error}</span>} · {measure.format(value)}</dd>];
    };
    return <dl>{row("Total", tree.total[node])}{!tree.turned && row("Self", tree.self[node])}</dl>;
}

export function Tip(props: TipProps) {
    const { looks, node, at } = props;
    const box = useRef<HTMLDivElement>(null);
    const name = looks.tree.name[node];
    const folded = name === looks.tree.other;
    useLayoutEffect(() => {
        const tip = box.current!;
        const { width, height } = tip.getBoundingClientRect();
        const below = at.y + 18 + height < innerHeight - 8;
        tip.style.left = `${Math.max(8, Math.min(at.x + 14, innerWidth - width - 12))}px`;
        tip.style.top = `${below ? at.y + 18 : Math.max(8, at.y - height - 12)}px`;
    });
    return (
        <div ref={box} class="floating flame-tip" role="tooltip">
            <b>{folded ? "Folded" : looks.tree.names[name]}</b>
            <div class="muted">{folded ? `Functions too small to be sent one by one.${props.refine ? " Click to load them." : ""}` : describe(looks, name)}</div>
            {looks.tree.leftTotal ? <Change {...props} /> : <Values {...props} />}
        </div>
    );
}
