// SPDX-License-Identifier: Apache-2.0
// What is kept: bytes of each service, since when, until when; and the way to delete one.
import { useState } from "preact/hooks";
import type { Service, Status } from "../../api/answers";
import { ask, type ApiError } from "../../api/client";
import type { Asked } from "../../api/use";
import { bytes, count, moment, plural } from "../../model/format";
import { storageFoot, storageText } from "../../model/health";
import { linkTo } from "../../state/place";
import { refreshNow } from "../../state/refresh";
import { useSession } from "../../state/session";
import { Dialog } from "../../ui/dialog";
import { Failure, Link, Loading, Meter, Panel, SearchField } from "../../ui/kit";
import { RowTable } from "../../ui/rows";
import { toast } from "../../ui/toast";

const FEW = 10; // without a scroller and a field to search

function Delete({ service, onClose }: { service: Service; onClose: () => void }) {
    const [typed, setTyped] = useState("");
    const [busy, setBusy] = useState(false);
    const [error, setError] = useState<ApiError | null>(null);
    const run = async (event: Event) => {
        event.preventDefault();
        if (typed !== service.name || busy) return;
        setBusy(true);
        setError(null);
        try {
            const { profiles } = await ask<{ profiles: number }>(`/api/v1/services/${encodeURIComponent(service.name)}`, { method: "DELETE" });
            toast(`${plural(profiles, "profile")} of ${service.name} deleted`);
            onClose();
            refreshNow();
        } catch (failed) {
            setError(failed as ApiError);
            setBusy(false);
        }
    };
    return (
        <Dialog label={`Delete ${service.name}`} class="delete" onClose={onClose}>
            <form onSubmit={run}>
                <h1>Delete {service.name}?</h1>
                <p class="soft">
                    {plural(service.profiles, "profile")}{service.bytes > 0 && `, ${bytes(service.bytes)},`} are taken from the disk at once and for good. What it sends from now on is
                    kept again.
                </p>
                <label>
                    <span>Type <b>{service.name}</b> to confirm</span>
                    <span class="field">
                        <input type="text" autofocus autocomplete="off" spellcheck={false} value={typed} aria-label="The service's name" onInput={(event) => setTyped(event.currentTarget.value)} />
                    </span>
                </label>
                {error && <Failure error={error} />}
                <div class="row">
                    <span class="grow" />
                    <button type="button" class="button" onClick={onClose}>Cancel</button>
                    <button type="submit" class="button danger" disabled={typed !== service.name || busy}>{busy ? "Deleting…" : `Delete ${count(service.profiles)} profiles`}</button>
                </div>
            </form>
        </Dialog>
    );
}

export function Storage({ services, status, now }: { services: Asked<{ services: Service[] }>; status: Status | null; now: number }) {
    const { may } = useSession();
    const [find, setFind] = useState("");
    const [deleting, setDeleting] = useState<Service | null>(null);
    const list = [...(services.data?.services ?? [])].sort((a, b) => b.bytes - a.bytes || b.profiles - a.profiles);
    const found = list.filter(({ name }) => name.toLowerCase().includes(find.toLowerCase()));
    const size = list.some((one) => one.bytes) ? (one: Service) => one.bytes : (one: Service) => one.profiles; // all in the log
    const most = Math.max(...list.map(size), 1);
    const old = (service: Service) => (service.oldest ? moment(Date.parse(service.oldest), now) : "–");
    const rowOf = (service: Service) => (
        <tr>
            <td class="strong" title={service.name}>{service.name}{service.tenant && <span class="muted small"> {service.tenant}</span>}</td>
            <td class="wide"><Meter share={size(service) / most} /></td>
            <td class="number">{service.bytes ? bytes(service.bytes) : <span class="muted" title="What came last is in the log, and not counted yet">in the log</span>}</td>
            <td class="number wide">{count(service.profiles)}</td>
            <td class="number wide soft">{old(service)}</td>
            {may("admin") && (
                <td class="number">
                    <button type="button" class="link muted" aria-label={`Delete ${service.name}`} onClick={() => setDeleting(service)}>Delete…</button>
                </td>
            )}
        </tr>
    );
    return (
        <Panel title={<>Storage {status && <span class="muted unit">{storageText(status)}</span>}</>} class="storage" label="Storage" aside={list.length > FEW && <SearchField label="Find a service" value={find} onType={setFind} />}>
            {services.error && <div class="quiet"><Failure error={services.error} retry={services.reload} /></div>}
            {!services.data && !services.error && <div class="quiet"><Loading rows={4} /></div>}
            {services.data && !list.length && <div class="quiet soft">Nothing is kept yet. <Link href={linkTo("start", {}, [])}>How to send profiles</Link></div>}
            {list.length > 0 && (
                <RowTable
                    label="Storage by service"
                    class={list.length > FEW ? "long" : ""}
                    n={found.length}
                    height={32}
                    order={find}
                    cols={
                        <colgroup>
                            <col class="c-name" />
                            <col class="wide" />
                            <col class="c-size" />
                            <col class="wide c-profiles" />
                            <col class="wide c-oldest" />
                            {may("admin") && <col class="c-delete" />}
                        </colgroup>
                    }
                    head={
                        <tr>
                            <th scope="col">Service</th>
                            <th scope="col" class="wide"><span class="hidden">As a bar</span></th>
                            <th scope="col" class="number" aria-sort="descending">Size ↓</th>
                            <th scope="col" class="number wide">Profiles</th>
                            <th scope="col" class="number wide">Oldest</th>
                            {may("admin") && <th scope="col"><span class="hidden">Delete</span></th>}
                        </tr>
                    }
                    row={(i) => rowOf(found[i])}
                />
            )}
            {status && <p class="foot muted small">{storageFoot(status, list, now)}{!may("admin") && " Deleting a service needs admin access."}</p>}
            {deleting && <Delete service={deleting} onClose={() => setDeleting(null)} />}
        </Panel>
    );
}
