// SPDX-License-Identifier: Apache-2.0
// Where the page is: a view (the path) and its state (the query string), all of it, so that a copied
// address shows the same to somebody else.  Names of parameters that views share:
//
//   service  the service's name                 type     profile type (its five-part id)
//   where    label matchers: env="prod",pod=~"a|b"
//   from, until   times as the API takes them: now-1h, now, RFC 3339
//   refresh  seconds between refreshes          find     what is searched for in a picture or table
//   fn       the chosen function
//
// A default is never written into the address.
import { useEffect, useState } from "preact/hooks";

export const VIEWS = [
    "overview", "explore", "compare", "labels", "memory", "waiting", "spans", "profiles",
    "file", "status", "symptoms", "start",
] as const;
export type View = (typeof VIEWS)[number];
export type Changes = Record<string, string | number | boolean | null | undefined>;

export interface Place {
    view: View;
    params: URLSearchParams;
}

// Parameters that stay when another view is opened by its tab.
export const SHARED = ["service", "type", "where", "from", "until", "refresh"];

export function parsePlace(path: string, search: string): Place {
    const word = path.replace(/^\/+|\/+$/g, "");
    const view = (VIEWS as readonly string[]).includes(word) ? (word as View) : "overview";
    return { view, params: new URLSearchParams(search) };
}

// The address of a view: of the parameters before, those named in `keep` (or all: "all"), with changes.
export function formatPlace(view: View, before: URLSearchParams, changes: Changes = {}, keep: string[] | "all" = SHARED): string {
    const params = new URLSearchParams();
    for (const [name, value] of before) if (keep === "all" || keep.includes(name)) params.append(name, value);
    for (const [name, value] of Object.entries(changes)) {
        if (value === null || value === undefined || value === "" || value === false) params.delete(name);
        else params.set(name, value === true ? "1" : String(value));
    }
    params.sort();
    const text = params.toString().replace(/%3A/g, ":").replace(/%2C/g, ",").replace(/%2F/g, "/");
    return `/${view === "overview" ? "" : view}${text ? "?" + text : ""}`;
}

let place: Place = parsePlace("/", "");
const listeners = new Set<(place: Place) => void>();

function arrive(): void {
    place = parsePlace(location.pathname, location.search);
    listeners.forEach((listener) => listener(place));
}

export function startPlace(): void {
    addEventListener("popstate", arrive);
    arrive();
}

export function currentPlace(): Place {
    return place;
}

export function usePlace(): Place {
    const [seen, setSeen] = useState(place);
    useEffect(() => {
        listeners.add(setSeen);
        if (seen !== place) setSeen(place);
        return () => void listeners.delete(setSeen);
    }, []);
    return seen;
}

// Opens an address of this page; `replace` leaves no trace in the history (for what changes by the second).
export function open(href: string, replace = false): void {
    if (href === location.pathname + location.search) return;
    history[replace ? "replaceState" : "pushState"](null, "", href);
    arrive();
}

// Changes parameters of this very view.
export function change(changes: Changes, replace = false): void {
    open(formatPlace(place.view, place.params, changes, "all"), replace);
}

// The address of another view with the shared parameters, for links.
export function linkTo(view: View, changes: Changes = {}, keep: string[] | "all" = SHARED): string {
    return formatPlace(view, place.params, changes, keep);
}
