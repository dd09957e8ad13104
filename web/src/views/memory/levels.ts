// SPDX-License-Identifier: Apache-2.0
// Functions over time: of those that grew, which ones climb steadily?
import { useEffect, useState } from "preact/hooks";
import type { FunctionAnswer } from "../../api/answers";
import { ask, type Params } from "../../api/client";
import { growthOf, isLeak, withoutDeployments, type Growth, type Level } from "../../model/growth";
import { useTick } from "../../state/refresh";

export interface Climb {
    name: string;
    level: Level;
    growth: Growth;
    leaks: boolean;
}

// A bucket without a snapshot is absent; one where the function holds nothing is nought.
export function levelOf(
    answer: Pick<FunctionAnswer, "start" | "step_seconds" | "buckets" | "bucket" | "value">,
): Level {
    const values = new Array<number | null>(answer.buckets).fill(null);
    answer.bucket.forEach((bucket, i) => (values[bucket] = answer.value[i]));
    return { startMs: Date.parse(answer.start), stepMs: answer.step_seconds * 1000, values };
}

async function climbOf(name: string, params: Params, all: number, deployed: number[]): Promise<Climb | null> {
    const answer = await ask<FunctionAnswer>("/api/v1/functions", { params: { ...params, function: name } });
    const level = withoutDeployments(levelOf(answer), deployed);
    const growth = growthOf(level);
    return growth && growth.by > 0 ? { name, level, growth, leaks: isLeak(growth, all) } : null;
}

// null: not known yet.  Leaks first, then the largest.
export function useClimbs(names: string[], params: Params, all: number, deployed: number[]): Climb[] | null {
    const key = JSON.stringify([useTick(), names, params, deployed]);
    const [found, setFound] = useState<{ key: string; climbs: Climb[] } | null>(null);
    useEffect(() => {
        let wanted = true;
        const asked = names.map((name) => climbOf(name, params, all, deployed).catch(() => null));
        Promise.all(asked).then((answers) => {
            const climbs = answers.filter((one): one is Climb => one !== null);
            climbs.sort((a, b) => Number(b.leaks) - Number(a.leaks) || b.growth.by - a.growth.by);
            if (wanted) setFound({ key, climbs });
        });
        return () => void (wanted = false);
    }, [key]);
    return found?.key === key ? found.climbs : null;
}
