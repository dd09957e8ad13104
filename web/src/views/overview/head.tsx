// SPDX-License-Identifier: Apache-2.0
// The head of a page that is read: the answer in a sentence, a line below it, choices on the right.
import type { ComponentChildren } from "preact";

export function PageHead(props: { title: ComponentChildren; text?: ComponentChildren; children?: ComponentChildren }) {
    return (
        <header class="page-head">
            <div class="grow">
                <h1>{props.title}</h1>
                <p class="soft">{props.text ?? "\u00a0"}</p>
            </div>
            {props.children && <div class="row">{props.children}</div>}
        </header>
    );
}
