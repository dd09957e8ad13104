// SPDX-License-Identifier: Apache-2.0
// Labels that narrow the scope: chips, and a menu that asks for a name, an operator and a value.
import { useState } from "preact/hooks";
import type { LabelValues } from "../../api/answers";
import { useSearch } from "../../api/search";
import { useAsk } from "../../api/use";
import { selector, type Matcher, type Operator } from "../../model/selector";
import { setMatchers, type Scope } from "../../state/scope";
import { Segment } from "../kit";
import { MenuButton } from "../menu";
import { PickList } from "./pick";

const OPERATORS: { value: Operator; label: string; title: string }[] = [
    { value: "=", label: "=", title: "is" },
    { value: "!=", label: "≠", title: "is not" },
    { value: "=~", label: "=~", title: "matches the regular expression" },
    { value: "!~", label: "!~", title: "does not match the regular expression" },
];
const sign = (op: Operator) => OPERATORS.find(({ value }) => value === op)!.label;

interface EditorProps {
    scope: Scope;
    matcher?: Matcher; // the one to change; without it a new one
    onDone: (matcher: Matcher) => void;
}

function NamePicker({ scope, onPick }: { scope: Scope; onPick: (name: string) => void }) {
    const asked = useAsk<{ labels: string[] }>("/api/v1/labels", { query: selector("", scope.service), ...scope.range });
    const names = (asked.data?.labels ?? []).filter((name) => !/^(__.*__|service[._]name)$/.test(name));
    return (
        <PickList
            key="name"
            label="Find a label"
            options={names.map((name) => ({ value: name, label: name }))}
            loading={asked.loading}
            error={asked.error}
            free={(typed) => (/^[^\s=!~,"{}]+$/.test(typed) ? `Use “${typed}”` : null)}
            none="No profile in this range has labels."
            onPick={onPick}
        />
    );
}

function ValuePicker({ scope, name, chosen, op, onPick }: { scope: Scope; name: string; chosen?: string; op: Operator; onPick: (value: string) => void }) {
    const path = `/api/v1/labels/${encodeURIComponent(name)}/values`;
    const { asked, all, onType } = useSearch<LabelValues>(path, { query: selector("", scope.service), ...scope.range });
    const values = asked.data?.values ?? [];
    const expression = op === "=~" || op === "!~";
    return (
        <PickList
            key="value"
            label={expression ? "A regular expression, or a value" : "Find a value"}
            options={values.map(({ value }) => ({ value, label: value === "" ? "(empty)" : value }))}
            chosen={chosen}
            loading={asked.loading}
            error={asked.error}
            all={all}
            onType={onType}
            free={(typed) => (typed ? (expression ? `Match /${typed}/` : `Use “${typed}”`) : null)}
            none="This label has no values in this range."
            onPick={onPick}
        />
    );
}

function Editor({ scope, matcher, onDone }: EditorProps) {
    const [name, setName] = useState(matcher?.name ?? "");
    const [op, setOp] = useState<Operator>(matcher?.op ?? "=");
    if (!name) return <NamePicker scope={scope} onPick={setName} />;
    return (
        <>
            <div class="row editor-head">
                <b class="grow ellipsis">{name}</b>
                <Segment label="How to compare" value={op} choices={OPERATORS} onChoose={setOp} />
            </div>
            <ValuePicker scope={scope} name={name} op={op} chosen={matcher?.value} onPick={(value) => onDone({ name, op, value })} />
        </>
    );
}

export function LabelChips({ scope }: { scope: Scope }) {
    const { matchers } = scope;
    const put = (i: number, close: () => void) => (matcher: Matcher) => {
        close();
        setMatchers(matchers.map((one, j) => (i === j ? matcher : one)));
    };
    return (
        <>
            {matchers.length > 0 && <span class="muted">where</span>}
            {matchers.map((matcher, i) => (
                <span class="chip" key={i}>
                    <MenuButton
                        label={`Change ${matcher.name}`}
                        class="inside"
                        menuClass="picker"
                        plain
                        text={`${matcher.name} ${sign(matcher.op)} ${matcher.value || "(empty)"}`}
                        content={(close) => <Editor scope={scope} matcher={matcher} onDone={put(i, close)} />}
                    />
                    <button
                        type="button"
                        aria-label={`Remove ${matcher.name}`}
                        title="Remove"
                        onClick={() => setMatchers(matchers.filter((_, j) => i !== j))}
                    >
                        ×
                    </button>
                </span>
            ))}
            <MenuButton
                label="Narrow by a label"
                class="ghost"
                menuClass="picker"
                plain
                text="+ Label"
                content={(close) => (
                    <Editor
                        scope={scope}
                        onDone={(matcher) => {
                            close();
                            setMatchers([...matchers, matcher]);
                        }}
                    />
                )}
            />
        </>
    );
}
