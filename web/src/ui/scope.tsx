// SPDX-License-Identifier: Apache-2.0
// The scope bar, which reads as a sentence: checkout · CPU time · where env = prod · 14:10 – 16:00.
import type { ComponentChildren } from "preact";

export interface ScopeBarProps {
    type?: string; // the type that stands where the address says none
    types?: boolean; // offer profile types; true unless said otherwise
    range?: boolean; // offer times; true unless said otherwise
    middle?: ComponentChildren; // after the labels
    actions?: ComponentChildren; // on the right
}

export function ScopeBar(props: ScopeBarProps) {
    return (
        <div class="scope">
            {props.middle}
            <span class="grow" />
            {props.actions}
        </div>
    );
}
