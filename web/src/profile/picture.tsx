// SPDX-License-Identifier: Apache-2.0
// The form that was asked for.
import { Flame } from "../flame/flame";
import { plural } from "../model/format";
import { Loading } from "../ui/kit";
import { ByTime } from "./bytime";
import { CallGraph } from "./callgraph";
import { Truncated } from "./notes";
import type { FormProps } from "./panel";
import { SandwichView } from "./sandwich";
import { TextTree } from "./text";

export function FlameForm(props: FormProps) {
    const { trees, look } = props;
    if (trees.loading) return <div class="profile-wait"><Loading /></div>;
    const frames = plural(trees.shown.n, "frame");
    return (
        <>
            <Flame
                label={`Flame graph with ${frames}`}
                tree={trees.shown}
                measure={props.measure}
                samples={props.samples}
                selected={props.selected}
                onSelect={props.onSelect}
                focus={props.focus}
                onFocus={props.onFocus}
                find={props.find}
                flip={look.flip}
                colorBy={look.color}
                ownModules={props.pinned}
                onRefine={trees.refine}
                onMenu={props.onMenu}
            />
            <Truncated answer={props.answer} trees={trees} />
        </>
    );
}

export function Picture(props: FormProps) {
    const { show } = props.look;
    if (show === "sandwich") return <SandwichView {...props} />;
    if (show === "time") return <ByTime {...props} />;
    if (show === "graph") return <CallGraph {...props} />;
    if (show === "tree") return <TextTree {...props} />;
    return <FlameForm {...props} />;
}
