// SPDX-License-Identifier: Apache-2.0
// Explore: what a service does, in one sentence, over time, and down to the line.
import type { QueryAnswer } from "../api/answers";
import { useAsk } from "../api/use";
import { rateSeconds, measureOf } from "../model/measure";
import { ExportButton } from "../profile/export";
import { ProfilePanel } from "../profile/panel";
import { useScope } from "../state/scope";
import { Loading } from "../ui/kit";
import { ScopeBar } from "../ui/scope";
import { CompareButton } from "./explore/actions";
import { useLoad } from "./explore/load";
import { Failed, Nothing } from "./explore/nothing";
import { TimePanel } from "./explore/time";
import "./explore.css";

const TABLE_ROWS = 10000;

// Nothing there, or no such type: both are told in the same way.
const isNothing = (code: string) => code === "not_found" || code === "no_such_type";

export function Explore() {
    const scope = useScope();
    const load = useLoad(scope);
    const params = { query: scope.query, ...scope.range };
    const source = { path: "/api/v1/query", params };
    const asked = useAsk<QueryAnswer>(source.path, { ...params, limit: TABLE_ROWS });
    const { error } = asked;
    const answer = error ? null : asked.data;
    const whole = (load.chosen[1] - load.chosen[0]) / 1000;
    const over = answer ? rateSeconds(answer, whole) : whole;
    const empty = error ? isNothing(error.code) : answer !== null && !asked.loading && answer.basis.profiles === 0;
    const name = [scope.service || "all", scope.type.split(":")[1]].join("-");
    return (
        <main class="measuring fills">
            <ScopeBar
                actions={
                    <>
                        <CompareButton />
                        <ExportButton answer={answer} source={source} measure={answer && measureOf(answer.type, over)} name={name} />
                    </>
                }
            />
            <TimePanel scope={scope} load={load} answer={answer} over={over} whole={whole} />
            {empty && <Nothing scope={scope} now={load.now} />}
            {error && !empty && <Failed error={error} scope={scope} now={load.now} retry={asked.reload} />}
            {!empty && !error && (
                <div class="explore-profile">
                    {answer ? <ProfilePanel answer={answer} source={source} rangeSeconds={over} stale={asked.loading} /> : <Loading rows={16} />}
                </div>
            )}
        </main>
    );
}
