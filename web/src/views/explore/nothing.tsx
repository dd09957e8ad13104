// SPDX-License-Identifier: Apache-2.0
// Where there is nothing to see: says where there is, and leads there.
import type { ApiError } from "../../api/client";
import type { Service } from "../../api/answers";
import { moment } from "../../model/format";
import { knowledgeOf } from "../../model/know";
import { rangeText } from "../../model/ranges";
import { formatTime, seconds } from "../../model/time";
import { linkTo } from "../../state/place";
import { setRange, type Scope } from "../../state/scope";
import { Empty, Failure, Link, Loading, Note } from "../../ui/kit";
import { typesOf, useServices } from "../../ui/scope/what";

const HOUR = 3600;

function OtherTypes({ scope, services }: { scope: Scope; services: Service[] }) {
    const types = typesOf(services, scope.service);
    return (
        <Empty title={`${scope.service || "No service"} ${scope.service ? "has sent no" : "sends"} ${knowledgeOf(scope.type).title}`}>
            <p>It has sent something else:</p>
            <p class="ways">
                {types.map(({ id }) => (
                    <Link key={id} class="button pill" href={linkTo("explore", { type: id })}>
                        {knowledgeOf(id).title}
                    </Link>
                ))}
            </p>
        </Empty>
    );
}

function NoService({ service }: { service: string }) {
    return (
        <Empty title={service ? `No profiles of ${service}` : "No profiles yet"}>
            <p>Nothing of it is in the store: it never sent any, or what it sent is older than what is kept.</p>
            <p class="ways">
                <Link class="button" href={linkTo("start")}>How to send profiles</Link>
                {service && <Link class="button ghost" href={linkTo("explore", { service: null })}>All services</Link>}
            </p>
        </Empty>
    );
}

// "in the last hour", "from 02:00 to 03:00 today"
function words({ range }: Scope, now: number): string {
    const { text, day } = rangeText(range, now);
    if (text.startsWith("Last ")) return `in the last ${text.slice(5)}`;
    return text.startsWith("Since ") ? `${text.toLowerCase()} ${day}` : `from ${text.replace(" – ", " to ")} ${day}`.trim();
}

// An hour that ends with the last profile.
function goThere(newest: number) {
    setRange({ from: formatTime(newest - HOUR * 1000), until: formatTime(newest + 60000) });
}

export function Nothing({ scope, now }: { scope: Scope; now: number }) {
    const asked = useServices(scope.service);
    if (!asked.data) return asked.error ? <Failure error={asked.error} retry={asked.reload} /> : <Loading />;
    const { services } = asked.data;
    if (!services.some(({ name }) => !scope.service || name === scope.service)) return <NoService service={scope.service} />;
    const newest = typesOf(services, scope.service).find(({ id }) => id === scope.type)?.newest;
    if (!newest) return <OtherTypes scope={scope} services={services} />;
    return (
        <Empty title={`Nothing ${words(scope, now)}`}>
            <p>
                {scope.matchers.length > 0 ? "No profile there has these labels; the service's " : "The "}last profile is of {moment(Date.parse(newest), now)}.
            </p>
            <p class="ways">
                <button type="button" class="button" onClick={() => goThere(Date.parse(newest))}>Go there</button>
                {scope.matchers.length > 0 && <Link class="button ghost" href={linkTo("explore", { where: null })}>Without labels</Link>}
            </p>
        </Empty>
    );
}

// What failed, and a smaller question where that one was too large.
export function Failed({ error, scope, now, retry }: { error: ApiError; scope: Scope; now: number; retry: () => void }) {
    const large = error.status === 413 || error.status === 504;
    if (!large || seconds(scope.range, now) <= HOUR)
        return (
            <div class="explore-failed">
                <h1 class="hidden">This profile could not be read</h1>
                <Failure error={error} retry={retry} />
            </div>
        );
    return (
        <div class="explore-failed">
            <h1 class="hidden">This profile could not be read</h1>
            <Note
                kind="bad"
                action={<button type="button" class="button" onClick={() => setRange({ from: "now-1h", until: "now" })}>Use the last hour</button>}
            >
                <b>That was too much to ask</b>
                <div class="soft">{error.message}</div>
            </Note>
        </div>
    );
}
