// SPDX-License-Identifier: Apache-2.0
// The present moment, in whole seconds, which stands still until something is asked again.
import { useMemo } from "preact/hooks";
import { useTick } from "../../state/refresh";
import type { Scope } from "../../state/scope";

export function useNow({ query, range }: Scope, ...others: (string | null)[]): number {
    const tick = useTick();
    return useMemo(
        () => Math.floor(Date.now() / 1000) * 1000,
        [tick, query, range.from, range.until, others.join(" ")],
    );
}
