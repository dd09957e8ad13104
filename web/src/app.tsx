// SPDX-License-Identifier: Apache-2.0
// The shell: the bar on top, the view below it.
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { change, linkTo, open, usePlace, type View } from "./state/place";
import { useAutoRefresh } from "./state/refresh";
import { Brand, Icon, ThemeIcon, type IconName } from "./ui/icons";
import { useKeys } from "./ui/keys";
import { Link } from "./ui/kit";
import { MenuButton } from "./ui/menu";
import { toggleTheme } from "./ui/theme";
import { Toasts } from "./ui/toast";
import { Compare } from "./views/compare";
import { Explore } from "./views/explore";
import { OpenFile } from "./views/file";
import { Labels } from "./views/labels";
import { Memory } from "./views/memory";
import { Overview } from "./views/overview";
import { Profiles } from "./views/profiles";
import { SignIn } from "./views/signin";
import { Spans } from "./views/spans";
import { Start } from "./views/start";
import { Status } from "./views/status";
import { Symptoms } from "./views/symptoms";
import { Waiting } from "./views/waiting";

interface Tab {
    view: View;
    title: string;
    key?: string;
    icon?: IconName;
}

const VIEW: Record<View, ComponentType> = {
    overview: Overview, explore: Explore, compare: Compare, labels: Labels, memory: Memory, waiting: Waiting,
    spans: Spans, profiles: Profiles, file: OpenFile, status: Status, symptoms: Symptoms, start: Start, signin: SignIn,
};
const TABS: Tab[] = [
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
const TITLE: Partial<Record<View, string>> = { file: "Open file", symptoms: "Start from a symptom", start: "First run", signin: "Sign in" };

function TopBar({ view }: { view: View }) {
    return (
        <header class="top">
            <Link class="brand" href={linkTo("overview")}>
                <Brand />
                Kiln
            </Link>
            <nav class="tabs" aria-label="Views">
                {TABS.map((tab) => (
                    <Link
                        key={tab.view}
                        href={linkTo(tab.view)}
                        title={tab.key && `${tab.title}  (g ${tab.key})`}
                        aria-current={tab.view === view ? "page" : undefined}
                    >
                        {tab.title}
                    </Link>
                ))}
            </nav>
            <span class="grow" />
            <Link class="button ghost wide" href={linkTo("file")}>
                <Icon name="open" />
                Open file
            </Link>
            <button type="button" class="button ghost square" aria-label="Switch light and dark" title="Light or dark  (d)" onClick={toggleTheme}>
                <ThemeIcon />
            </button>
        </header>
    );
}

function TabBar({ view }: { view: View }) {
    const direct = TABS.filter((tab) => tab.icon);
    const more = TABS.filter((tab) => !tab.icon);
    const rest = [...more, { view: "file", title: "Open file" } as Tab, { view: "symptoms", title: "Start from a symptom" } as Tab];
    return (
        <nav class="tabbar" aria-label="Views">
            {direct.map((tab) => (
                <Link key={tab.view} href={linkTo(tab.view)} aria-current={tab.view === view ? "page" : undefined}>
                    <Icon name={tab.icon!} />
                    {tab.title}
                </Link>
            ))}
            <MenuButton
                label="More views"
                plain
                text={<><Icon name="more" />More</>}
                entries={rest.map((tab) => ({ label: tab.title, href: linkTo(tab.view), chosen: tab.view === view }))}
            />
        </nav>
    );
}

export function App() {
    const place = usePlace();
    const Current = VIEW[place.view];
    const title = TABS.find((tab) => tab.view === place.view)?.title ?? TITLE[place.view];
    useAutoRefresh(Number(place.params.get("refresh") ?? 0));
    useEffect(() => {
        document.title = `${[place.params.get("service"), title].filter(Boolean).join(" · ")} · Kiln`;
    }, [place]);
    useKeys("Everywhere", [
        ...TABS.map((tab) => ({ keys: `g ${tab.key}`, does: `Go to ${tab.title}`, run: () => open(linkTo(tab.view)) })),
        { keys: "d", does: "Light or dark", run: toggleTheme },
        { keys: "Escape", does: "Clear the search", run: () => change({ find: null }, true) },
    ]);
    return (
        <>
            <TopBar view={place.view} />
            <Current />
            <TabBar view={place.view} />
            <Toasts />
        </>
    );
}
