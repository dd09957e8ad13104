// SPDX-License-Identifier: Apache-2.0
// The way from the root to the frame that fills the width.
import { Fragment } from "preact";
import { share } from "../model/format";
import { nameOf, type Tree } from "../model/tree";
import { Icon } from "../ui/icons";

const SHOWN = 3; // nearest callers; those before them are in the picture

export function Crumbs({ tree, focus, onFocus }: { tree: Tree; focus: number; onFocus: (node: number) => void }) {
    const above: number[] = [];
    for (let at = tree.parent[focus]; at > 0; at = tree.parent[at]) above.unshift(at);
    const near = above.slice(-SHOWN);
    return (
        <nav class="flame-crumbs" aria-label="Focus">
            <button type="button" class="ellipsis" onClick={() => onFocus(0)}>{nameOf(tree, 0)}</button>
            {above.length > near.length && <span>› …</span>}
            {near.map((node) => (
                <Fragment key={node}>
                    <span>›</span>
                    <button type="button" class="ellipsis wide" title={nameOf(tree, node)} onClick={() => onFocus(node)}>{nameOf(tree, node)}</button>
                </Fragment>
            ))}
            <span>›</span>
            <b class="ellipsis" title={nameOf(tree, focus)}>{nameOf(tree, focus)}</b>
            <span class="nowrap">{share(tree.total[focus], tree.total[0])}</span>
            <span class="grow" />
            <button type="button" class="flame-out" title="Show all  (0 or Esc)" onClick={() => onFocus(0)}>
                Show all
                <Icon name="close" />
            </button>
        </nav>
    );
}
