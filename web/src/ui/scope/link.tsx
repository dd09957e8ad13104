// SPDX-License-Identifier: Apache-2.0
// The link to what is seen: as it is, or with times that do not move on.
import { formatPlace, usePlace } from "../../state/place";
import type { Scope } from "../../state/scope";
import { absolute, isRelative } from "../../model/time";
import { rangeText } from "../../model/ranges";
import { copy } from "../kit";
import { MenuButton } from "../menu";

export function CopyLink({ scope }: { scope: Scope }) {
    const place = usePlace();
    const moves = isRelative(scope.range.from) || isRelative(scope.range.until);
    const words = rangeText(scope.range, Date.now()).text.toLowerCase();
    const asIs = () => copy(location.href, moves ? `Link copied. It shows “${words}” of whoever opens it.` : "Link copied");
    const fixed = () => {
        const now = Date.now();
        const range = absolute(scope.range, now - (now % 1000));
        copy(location.origin + formatPlace(place.view, place.params, { ...range, refresh: null }, "all"), "Link copied, with times that do not move");
    };
    if (!moves)
        return (
            <button type="button" class="button main" onClick={asIs}>
                Copy link
            </button>
        );
    return (
        <span class="split">
            <button type="button" class="button main" onClick={asIs}>
                Copy link
            </button>
            <MenuButton
                label="Which link"
                class="main"
                alignRight
                text=""
                entries={[
                    { label: "As is", aside: words, onChoose: asIs },
                    { label: "With times made absolute", aside: "for an incident", onChoose: fixed },
                ]}
            />
        </span>
    );
}
