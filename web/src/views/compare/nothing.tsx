// SPDX-License-Identifier: Apache-2.0
// Where there is nothing to compare: a side without profiles, a service with one version.
import type { ComponentChildren } from "preact";
import type { DiffAnswer, Services } from "../../api/answers";
import { useAsk } from "../../api/use";
import { moment } from "../../model/format";
import { formatTime, type Range } from "../../model/time";
import { change } from "../../state/place";
import type { Scope } from "../../state/scope";
import { Command, Empty, Loading } from "../../ui/kit";
import { addressOf, addressOfPreset, windowText, type Comparing } from "./sides";

// A side without profiles: where are there some?
export function NoData({ answer, scope, sides, deployments, now }: Comparing & { answer: DiffAnswer }) {
    const services = useAsk<Services>("/api/v1/services", { service: scope.service });
    const known = services.data?.services
        .find(({ name }) => name === scope.service)
        ?.types.find(({ id }) => id === answer.type.id);
    const missing = [
        ...(answer.left.basis.profiles ? [] : ["A" as const]),
        ...(answer.right.basis.profiles ? [] : ["B" as const]),
    ];
    const side = missing[0] === "A" ? sides.a : sides.b;
    const other = missing[0] === "A" ? sides.b : sides.a;
    const there = known?.oldest && known.newest ? [Date.parse(known.oldest), Date.parse(known.newest)] : null;
    const length = Date.parse(side.range.until) - Date.parse(side.range.from);
    const both = sides.preset !== "" && missing.includes("B"); // A follows B
    const goThere = () => {
        const range = lastPart(there![1], length);
        const moved = { ...side, range };
        if (both) change({ ...range });
        else change(missing[0] === "A" ? addressOf(moved, other) : addressOf(other, moved));
    };
    return (
        <Empty title={`${missing.join(" and ")} ${missing.length > 1 ? "have" : "has"} no profiles`}>
            <p>
                Nothing {side.version && `of ${side.version} `}from {windowText(side.range, now)}.{" "}
                {there &&
                    `Profiles of ${scope.service} reach from ${moment(there[0], now)} to ${moment(there[1], now)}.`}
            </p>
            <div class="row centre">
                {there && (
                    <button type="button" class="button main" onClick={goThere}>
                        Move {both ? "both" : missing[0]} to the last of them
                    </button>
                )}
                {deployments.length > 1 && sides.preset !== "version" && (
                    <button type="button" class="button" onClick={() => change(addressOfPreset("version"))}>
                        Compare versions
                    </button>
                )}
            </div>
        </Empty>
    );
}

// The last part of a time, so long, that has the profile at its end too.
function lastPart(lastMs: number, length: number): Range {
    const until = Math.ceil(lastMs / 1000) * 1000 + 1000;
    return { from: formatTime(until - length), until: formatTime(until) };
}

// A service that has such profiles, but none in the range: where are they?  Else what `children` say.
export function Elsewhere(props: {
    service: string;
    range: Range;
    now: number;
    what: string; // "memory profiles"
    is: (typeId: string) => boolean;
    children: ComponentChildren;
}) {
    const { service, range, now } = props;
    const asked = useAsk<Services>(service ? "/api/v1/services" : null, { service });
    const types =
        asked.data?.services.find(({ name }) => name === service)?.types.filter(({ id }) => props.is(id)) ?? [];
    const newest = Math.max(...types.map((type) => Date.parse(type.newest ?? "")));
    if (service && asked.loading && !asked.data) return <Loading rows={8} />;
    if (!Number.isFinite(newest)) return <>{props.children}</>;
    const length = Date.parse(range.until) - Date.parse(range.from);
    return (
        <Empty title={`No ${props.what} of ${service} in this range`}>
            <p>
                Nothing from {windowText(range, now)}; the last of them is of {moment(newest, now)}.
            </p>
            <div class="row centre">
                <button type="button" class="button main" onClick={() => change({ ...lastPart(newest, length) })}>
                    Go there
                </button>
            </div>
        </Empty>
    );
}

export function NoVersions({ scope }: { scope: Scope }) {
    const name = scope.service || "SERVICE";
    return (
        <Empty
            title={scope.service ? `No second version of ${name} is known` : "Choose a service to compare its versions"}
        >
            <p>
                Kiln finds deployments by labels that change: service.version, git.commit, deployment.id. It can also be
                told:
            </p>
            <Command>{`kiln annotate --service ${name} --version 1.4.2`}</Command>
            <div class="row centre">
                <button type="button" class="button" onClick={() => change(addressOfPreset("before"))}>
                    Compare with the time before
                </button>
            </div>
        </Empty>
    );
}
