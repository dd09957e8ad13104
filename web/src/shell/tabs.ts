// SPDX-License-Identifier: Apache-2.0
// The views, in the order of their tabs, with their keys; those with an icon have a place in a
// phone's tab bar.
import type { View } from "../state/place";
import type { IconName } from "../ui/icons";

export interface Tab {
    view: View;
    title: string;
    key?: string; // after "g"
    icon?: IconName;
}

export const TABS: Tab[] = [
    { view: "overview", title: "Overview", key: "o", icon: "overview" },
    { view: "explore", title: "Explore", key: "e", icon: "explore" },
    { view: "compare", title: "Compare", key: "c", icon: "compare" },
    { view: "labels", title: "Labels", key: "l" },
    { view: "memory", title: "Memory", key: "m" },
    { view: "waiting", title: "Waiting", key: "w" },
    { view: "spans", title: "Spans", key: "t" },
    { view: "profiles", title: "Profiles", key: "p" },
    { view: "status", title: "Status", key: "s", icon: "status" },
];

// Views that are reached otherwise than by a tab.
export const OTHERS: Tab[] = [
    { view: "file", title: "Open file", key: "f" },
    { view: "symptoms", title: "Start from a symptom", key: "y" },
    { view: "start", title: "Send profiles" },
];

export const titleOf = (view: View) => [...TABS, ...OTHERS].find((tab) => tab.view === view)!.title;
