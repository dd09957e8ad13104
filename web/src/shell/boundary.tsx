// SPDX-License-Identifier: Apache-2.0
// What a view cannot draw must not take the page with it: says what failed, and what can be done.
import { Component, type ComponentChildren } from "preact";
import { forgetAnswers } from "../api/use";
import { copy, Empty, Link } from "../ui/kit";

interface Props {
    at: string; // the address: another one is another try
    view: string;
    children: ComponentChildren;
}

export class Boundary extends Component<Props, { failed: Error | null; at: string }> {
    override state = { failed: null as Error | null, at: "" };

    static override getDerivedStateFromProps({ at }: Props, state: { failed: Error | null; at: string }) {
        return at === state.at ? null : { failed: null, at };
    }

    override componentDidCatch(error: unknown): void {
        const failed = error instanceof Error ? error : new Error(String(error));
        console.error(failed);
        forgetAnswers(); // one of them was not what it should be, perhaps
        this.setState({ failed });
    }

    override render({ view, children }: Props) {
        const { failed } = this.state;
        if (!failed) return children;
        return (
            <main>
                <Empty title="This view failed">
                    <p>Kiln could not draw it: a mistake of Kiln, not yours. The rest of the page works, and nothing is lost.</p>
                    <p class="soft">{failed.message.slice(0, 300)}</p>
                    <p class="ways">
                        <button type="button" class="button main" onClick={() => location.reload()}>Reload</button>
                        <Link class="button" href={view}>Without what was chosen</Link>
                        <button type="button" class="button ghost" onClick={() => copy(`${location.href}\n${failed.stack ?? failed.message}`)}>Copy for a report</button>
                    </p>
                </Empty>
            </main>
        );
    }
}
