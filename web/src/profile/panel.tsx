// SPDX-License-Identifier: Apache-2.0
// One profile and all the forms it can be looked at in: flame graph, sandwich, by time, call graph,
// text tree and the table of functions beside them, with the chosen function's numbers below.
import type { QueryAnswer } from "../api/answers";
import type { Params } from "../api/client";

export interface ProfileSource {
    // How to ask for this profile again in another form: path and parameters of the API (without
    // format); null: it cannot be asked again.  `body`: to be posted with each question (a file).
    path: string;
    params: Params;
    body?: Blob;
}

export interface ProfilePanelProps {
    answer: QueryAnswer; // format=json: flame graph and top
    source: ProfileSource | null;
    rangeSeconds: number; // that values are sums over
    stale?: boolean; // a newer answer is on its way
}

export function ProfilePanel(props: ProfilePanelProps) {
    return <div class={props.stale ? "stale" : ""} />;
}
