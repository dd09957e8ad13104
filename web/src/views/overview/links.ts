// SPDX-License-Identifier: Apache-2.0
// Where rows and findings lead: into views that are filled in already, with the guilty frame chosen.
import type { FleetRow } from "../../model/fleet";
import type { Notice } from "../../model/notice";
import { formatTime } from "../../model/time";
import { linkTo } from "../../state/place";

export const exploreLink = (service: string, fn?: string) => linkTo("explore", { service, type: null, fn });

// Both sides of a change, as times that do not move; by their versions where both are known.
export function compareLink(row: FleetRow, fn?: string): string {
    const { left, right, deployment, previous } = row.change!;
    const versions = deployment?.version && previous ? { a_version: previous, b_version: deployment.version } : {};
    return linkTo("compare", {
        service: row.service,
        type: null,
        ...versions,
        a_from: formatTime(left[0]),
        a_until: formatTime(left[1]),
        b_from: formatTime(right[0]),
        b_until: formatTime(right[1]),
        fn,
    });
}

export function noticeLink(notice: Notice, row: FleetRow | undefined): string {
    if (notice.kind === "memory") return linkTo("memory", { service: notice.service, type: null, fn: notice.fn });
    if (notice.kind === "cpu" && row?.change) return compareLink(row, notice.fn);
    return linkTo("explore", { service: notice.service, type: notice.found?.type, fn: notice.fn });
}
