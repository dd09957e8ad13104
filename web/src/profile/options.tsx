// SPDX-License-Identifier: Apache-2.0
// How the profile is shown: a menu of switches and filters, and a chip for each that is on.
import { useState } from "preact/hooks";
import { useAsk } from "../api/use";
import { Icon } from "../ui/icons";
import { MenuButton } from "../ui/menu";
import { canFilter } from "./again";
import type { ProfileSource } from "./panel";
import { togglePinned } from "./pinned";
import { addFilter, patternText, setLook, type Filter, type Look } from "./state";

const FILTERS: { filter: Filter; title: string; chip: string }[] = [
    { filter: "only", title: "Only stacks with", chip: "only" },
    { filter: "ignore", title: "Without stacks that have", chip: "without" },
    { filter: "hide", title: "Hide functions", chip: "hidden" },
];

function Switch({ title, on, shortcut, onToggle }: { title: string; on: boolean; shortcut?: string; onToggle: () => void }) {
    return (
        <button type="button" role="menuitem" aria-checked={on} onClick={onToggle}>
            <span class="check" aria-hidden="true">{on ? "✓" : ""}</span>
            <span class="grow">{title}</span>
            {shortcut && <kbd>{shortcut}</kbd>}
        </button>
    );
}

function FilterField({ look, filter, title }: { look: Look; filter: Filter; title: string }) {
    const [text, setText] = useState("");
    return (
        <form
            class="filter-field"
            onSubmit={(event) => {
                event.preventDefault();
                if (text.trim()) addFilter(look, filter, text.trim());
                setText("");
            }}
        >
            <label>
                <span>{title}</span>
                <input type="text" value={text} placeholder="text or /expression/" spellcheck={false} onInput={(event) => setText(event.currentTarget.value)} />
            </label>
        </form>
    );
}

function GroupByLabel({ look, source }: { look: Look; source: ProfileSource }) {
    const { query, from, until } = source.params;
    const asked = useAsk<{ labels: string[] }>("/api/v1/labels", { query, from, until });
    const names = (asked.data?.labels ?? []).filter((name) => !/^__.*__$/.test(name));
    const chosen = look.group.startsWith("label:") ? look.group.slice(6) : "";
    return (
        <label class="filter-field">
            <span>Group by a label</span>
            <select value={chosen} onChange={(event) => setLook({ group: event.currentTarget.value ? `label:${event.currentTarget.value}` : "", focus: "" })}>
                <option value="">None</option>
                {names.map((name) => <option key={name} value={name}>{name}</option>)}
            </select>
        </label>
    );
}

function Options({ look, source, pinned }: { look: Look; source: ProfileSource | null; pinned: string[] }) {
    const group = (name: string) => setLook({ group: look.group === name ? "" : name, focus: "" });
    return (
        <div class="profile-options">
            <Switch title="Root at the bottom" on={look.flip} shortcut="i" onToggle={() => setLook({ flip: !look.flip })} />
            <Switch title="Bottom up: callers below what they call" on={look.invert} shortcut="b" onToggle={() => setLook({ invert: !look.invert, focus: "" })} />
            <Switch title="Fold the runtime's start into one row" on={look.stems} shortcut="u" onToggle={() => setLook({ stems: !look.stems, focus: "" })} />
            <Switch title="Collapse recursion" on={look.recursion} shortcut="r" onToggle={() => setLook({ recursion: !look.recursion, focus: "" })} />
            <hr />
            <Switch title="Group by package" on={look.group === "package"} onToggle={() => group("package")} />
            <Switch title="Group by module" on={look.group === "module"} onToggle={() => group("module")} />
            {canFilter(source) && <GroupByLabel look={look} source={source!} />}
            <hr />
            <Switch title="Colour by language" on={look.color === "kind"} onToggle={() => setLook({ color: look.color === "kind" ? "module" : "kind" })} />
            <hr />
            {FILTERS.map(({ filter, title }) => <FilterField key={filter} look={look} filter={filter} title={title} />)}
            {pinned.length > 0 && (
                <>
                    <hr />
                    <div class="caption">Pinned as your code</div>
                    {pinned.map((module) => <Switch key={module} title={module} on onToggle={() => togglePinned(module)} />)}
                </>
            )}
        </div>
    );
}

export function OptionsButton(props: { look: Look; source: ProfileSource | null; pinned: string[] }) {
    return (
        <MenuButton
            label="How it is shown: filters, groups, colours"
            class="ghost square"
            menuClass="options-menu"
            plain
            alignRight
            text={<Icon name="menu" />}
            content={() => <Options {...props} />}
        />
    );
}

interface Chip {
    text: string;
    remove: Partial<Look>;
}

function chipsOf(look: Look): Chip[] {
    const filters = FILTERS.flatMap(({ filter, chip }) =>
        look[filter].map((text) => ({ text: `${chip} ${patternText(text)}`, remove: { [filter]: look[filter].filter((one) => one !== text) } })),
    );
    const switches: [boolean, string, Partial<Look>][] = [
        [look.group !== "", `by ${look.group.replace(/^label:/, "")}`, { group: "" }],
        [look.invert, "bottom up", { invert: false }],
        [look.recursion, "recursion collapsed", { recursion: false }],
        [!look.stems, "start unfolded", { stems: true }],
        [look.color === "kind", "colour by language", { color: "module" }],
    ];
    return [...filters, ...switches.filter(([on]) => on).map(([, text, remove]) => ({ text, remove }))];
}

export function Chips({ look }: { look: Look }) {
    const chips = chipsOf(look);
    if (!chips.length) return null;
    return (
        <div class="profile-chips">
            {chips.map(({ text, remove }) => (
                <span class="chip" key={text}>
                    <span class="ellipsis">{text}</span>
                    <button type="button" aria-label={`Remove: ${text}`} title="Remove" onClick={() => setLook(remove)}>×</button>
                </span>
            ))}
            {chips.length > 1 && (
                <button type="button" class="button ghost" onClick={() => setLook({ only: [], ignore: [], hide: [], group: "", invert: false, recursion: false, stems: true, color: "module" })}>
                    Remove all
                </button>
            )}
        </div>
    );
}
