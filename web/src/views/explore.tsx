// SPDX-License-Identifier: Apache-2.0
// Explore: what a service does, in one sentence, over time, and down to the line.
import type { QueryAnswer } from "../api/answers";
import { useAsk } from "../api/use";
import { ProfilePanel } from "../profile/panel";
import { useScope } from "../state/scope";
import { ScopeBar } from "../ui/scope";
import { useLoad } from "./explore/load";
import { TimePanel } from "./explore/time";
import "./explore.css";

// Values are sums over the time that has profiles: a service that began a minute ago is not idle for the hour before.
export function coveredOf(answer: QueryAnswer | null, whole: number): number {
    const covered = answer?.basis.covered_seconds ?? 0;
    return answer?.type.kind === "flow" && covered > 0 && covered < whole ? covered : whole;
}

export function Explore() {
    const scope = useScope();
    const load = useLoad(scope);
    const asked = useAsk<QueryAnswer>("/api/v1/query", { query: scope.query, ...scope.range });
    const whole = (load.chosen[1] - load.chosen[0]) / 1000;
    const over = coveredOf(asked.data, whole);
    return (
        <main class="measuring fills">
            <ScopeBar />
            <TimePanel scope={scope} load={load} answer={asked.data} over={over} whole={whole} />
            {asked.data && <ProfilePanel answer={asked.data} source={null} rangeSeconds={over} stale={asked.loading} />}
        </main>
    );
}
