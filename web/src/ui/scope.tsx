// SPDX-License-Identifier: Apache-2.0
// The scope bar, which reads as a sentence: checkout · CPU time · where env = prod · 14:10 – 16:00.
import type { ComponentChildren } from "preact";
import { CPU_TYPE } from "../model/know";
import { useScope } from "../state/scope";
import { LabelChips } from "./scope/labels";
import { CopyLink } from "./scope/link";
import { RangeButton } from "./scope/range";
import "./scope.css";
import { ServiceButton, TypeButton } from "./scope/what";

export interface ScopeBarProps {
    type?: string; // the type that stands where the address says none
    types?: boolean; // offer profile types; true unless said otherwise
    range?: boolean; // offer times; true unless said otherwise
    labels?: boolean; // offer labels; true unless said otherwise
    link?: boolean; // offer the link; true unless said otherwise
    middle?: ComponentChildren; // after the labels
    actions?: ComponentChildren; // on the right
}

export function ScopeBar(props: ScopeBarProps) {
    const standard = props.type ?? CPU_TYPE;
    const scope = useScope(standard);
    return (
        <div class="scope" role="group" aria-label="What is looked at">
            <ServiceButton service={scope.service} />
            {props.types !== false && <TypeButton service={scope.service} type={scope.type} standard={standard} />}
            {props.labels !== false && <LabelChips scope={scope} />}
            {props.middle}
            <span class="grow" />
            {props.range !== false && <RangeButton scope={scope} />}
            {props.actions}
            {props.link !== false && <CopyLink scope={scope} />}
        </div>
    );
}
