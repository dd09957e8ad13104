// SPDX-License-Identifier: Apache-2.0
// The field that finds frames, with its key.
import { useRef } from "preact/hooks";
import { patternOf } from "../../model/search";
import type { Tree } from "../../model/tree";
import { FindField } from "../../profile/find";
import { useHits } from "../../profile/hits";
import { useLook } from "../../profile/state";
import { useKeys } from "../../ui/keys";

export function Find({ tree, selected, onSelect }: { tree: Tree; selected: number; onSelect: (node: number) => void }) {
    const look = useLook();
    const input = useRef<HTMLInputElement>(null);
    const hits = useHits(tree, patternOf(look.find), selected, onSelect);
    useKeys("Find", [{ keys: "/", does: "Find frames", run: () => input.current?.focus() }]);
    return <FindField look={look} tree={tree} input={input} at={hits.at} onNext={hits.next} />;
}
