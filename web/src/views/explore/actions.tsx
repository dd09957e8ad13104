// SPDX-License-Identifier: Apache-2.0
// What this range can be compared with: it becomes B of a comparison.
import { SHARED, linkTo } from "../../state/place";
import { MenuButton } from "../../ui/menu";

const PRESETS: [string, string, string][] = [
    ["before", "The time just before", "as long as this one"],
    ["day", "Yesterday", "the same hours"],
    ["week", "A week ago", "the same hours"],
    ["version", "The version before", "the last deployment"],
];

export function CompareButton() {
    const entries = () =>
        PRESETS.map(([preset, label, aside]) => ({ label, aside, href: linkTo("compare", { preset }, [...SHARED, "fn"]) }));
    return <MenuButton label="Compare with…" class="ghost" plain text="Compare with…" alignRight entries={entries} />;
}
