// SPDX-License-Identifier: Apache-2.0
// Findings: what the server noticed, and what the page worked out of the numbers it shows.
import { useState } from "preact/hooks";
import { moment } from "../../model/format";
import { Link, Loading, Panel } from "../../ui/kit";
import { noticeLink } from "./links";
import type { Overlook } from "./fleet";

const SHOWN = 3;

export function Findings({ look, quiet }: { look: Overlook; quiet: string }) {
    const [all, setAll] = useState(false);
    const { notices, fleet, noticing } = look;
    const shown = all ? notices : notices.slice(0, SHOWN);
    return (
        <Panel
            label="Findings"
            class="findings"
            title="Findings"
            aside={notices.length > SHOWN && (
                <button type="button" class="link" onClick={() => setAll(!all)}>
                    {all ? "Fewer" : `All ${notices.length}`}
                </button>
            )}
        >
            <ul>
                {shown.map((notice) => (
                    <li key={notice.id}>
                        <Link href={noticeLink(notice, fleet?.rows.find(({ service }) => service === notice.service))} class="finding">
                            <i class={`dot ${notice.bad ? "bad" : "warn"}`} aria-hidden="true" />
                            <b class="ellipsis">{notice.title}</b>
                            <span class="muted small">{notice.at !== null && moment(notice.at, Date.now())}</span>
                            <span class="muted small ellipsis">{notice.text}</span>
                        </Link>
                    </li>
                ))}
            </ul>
            {!shown.length && (noticing ? <div class="quiet"><Loading rows={3} /></div> : (
                <div class="quiet">
                    <b>Nothing stands out</b>
                    <p class="soft">{quiet}</p>
                </div>
            ))}
        </Panel>
    );
}
