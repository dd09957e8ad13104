// SPDX-License-Identifier: Apache-2.0
// The page: bars, the view that the address names, and what lies over it.
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { TabBar, TopBar } from "./shell/bars";
import { Boundary } from "./shell/boundary";
import { Jump } from "./shell/jump";
import { KeyHelp } from "./shell/keyhelp";
import { SignIn } from "./shell/signin";
import { OTHERS, TABS, titleOf } from "./shell/tabs";
import { formatPlace, linkTo, open, usePlace, type View } from "./state/place";
import { useAutoRefresh } from "./state/refresh";
import { useSession } from "./state/session";
import { useKeys } from "./ui/keys";
import { toggleTheme } from "./ui/theme";
import { Toasts } from "./ui/toast";
import { Compare } from "./views/compare";
import { Explore } from "./views/explore";
import { OpenFile } from "./views/file";
import { Labels } from "./views/labels";
import { Memory } from "./views/memory";
import { Overview } from "./views/overview";
import { Profiles } from "./views/profiles";
import { Spans } from "./views/spans";
import { Start } from "./views/start";
import { Status } from "./views/status";
import { Symptoms } from "./views/symptoms";
import { Waiting } from "./views/waiting";

const VIEW: Record<View, ComponentType> = {
    overview: Overview, explore: Explore, compare: Compare, labels: Labels, memory: Memory, waiting: Waiting,
    spans: Spans, profiles: Profiles, file: OpenFile, status: Status, symptoms: Symptoms, start: Start,
};

export function App() {
    const { view, params } = usePlace();
    const { wanted } = useSession();
    const [over, setOver] = useState<"jump" | "keys" | null>(null);
    const Current = VIEW[view];
    const close = () => setOver(null);
    useAutoRefresh(Number(params.get("refresh") ?? 0));
    useEffect(() => {
        document.title = `${[params.get("service"), titleOf(view)].filter(Boolean).join(" · ")} · Kiln`;
    }, [view, params]);
    useKeys("Everywhere", [
        { keys: "Ctrl+K", does: "Jump to a view, service or function", run: () => setOver("jump") },
        { keys: "?", does: "This list", run: () => setOver("keys") },
        { keys: "d", does: "Light or dark", run: toggleTheme },
        ...[...TABS, ...OTHERS].filter((tab) => tab.key).map((tab) => ({
            keys: `g ${tab.key}`,
            does: tab.title,
            run: () => open(linkTo(tab.view)),
        })),
    ]);
    if (wanted) return <SignIn />;
    return (
        <>
            <TopBar view={view} onJump={() => setOver("jump")} onKeys={() => setOver("keys")} />
            <Boundary at={`${view}?${params}`} view={formatPlace(view, params, {}, [])}>
                <Current />
            </Boundary>
            <TabBar view={view} />
            {over === "jump" && <Jump onClose={close} />}
            {over === "keys" && <KeyHelp onClose={close} />}
            <Toasts />
        </>
    );
}
