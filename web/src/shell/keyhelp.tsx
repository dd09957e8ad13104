// SPDX-License-Identifier: Apache-2.0
// All keys that work where one is.
import { keyGroups } from "../ui/keys";
import { Dialog } from "../ui/dialog";

const shown = (key: string) => key.replace("Arrow", "").replace("Escape", "Esc").replace(/(.)\+/, "$1 ");

export function KeyHelp({ onClose }: { onClose: () => void }) {
    return (
        <Dialog label="Keys" onClose={onClose}>
            <div class="panel-head">
                <h2>Keys</h2>
                <span class="grow" />
                <button type="button" class="button ghost" onClick={onClose}>
                    Close<kbd>Esc</kbd>
                </button>
            </div>
            <div class="keyhelp">
                {keyGroups().map(({ title, keys }) => (
                    <section key={title}>
                        <h3 class="muted small">{title}</h3>
                        <dl>
                            {keys.filter((key) => key.does).map(({ keys: name, does }) => (
                                <div key={name} class="row">
                                    <dt>{name.split(" ").map((one) => <kbd key={one}>{shown(one)}</kbd>)}</dt>
                                    <dd>{does}</dd>
                                </div>
                            ))}
                        </dl>
                    </section>
                ))}
            </div>
        </Dialog>
    );
}
