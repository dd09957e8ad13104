// SPDX-License-Identifier: Apache-2.0
// The bar on top, and the tab bar of a phone.
import { linkTo, type View } from "../state/place";
import { signOut, useSession } from "../state/session";
import { Brand, Icon, ThemeIcon } from "../ui/icons";
import { Link } from "../ui/kit";
import { MenuButton } from "../ui/menu";
import { toggleTheme } from "../ui/theme";
import { OTHERS, TABS } from "./tabs";

const current = (view: View, of: View) => (view === of ? "page" : undefined);

function Who() {
    const { session } = useSession();
    if (!session?.signed_in) return null;
    return (
        <MenuButton
            label="Who is signed in"
            class="ghost"
            text={session.tenant ?? "Signed in"}
            entries={[
                { caption: `May ${session.access.join(", ")}` },
                { label: "Sign out", onChoose: () => void signOut() },
            ]}
        />
    );
}

export function TopBar(props: { view: View; onJump: () => void; onKeys: () => void }) {
    return (
        <header class="top">
            <Link class="brand" href={linkTo("overview")}>
                <Brand />
                Kiln
            </Link>
            <nav class="tabs" aria-label="Views">
                {TABS.map(({ view, title, key }) => (
                    <Link key={view} href={linkTo(view)} title={`${title}  (g ${key})`} aria-current={current(props.view, view)}>
                        {title}
                    </Link>
                ))}
            </nav>
            <span class="grow" />
            <button type="button" class="button ghost wide" onClick={props.onJump}>
                <Icon name="search" />
                <span class="roomy">Jump to</span>
                <kbd class="roomy">Ctrl K</kbd>
            </button>
            <Link class="button ghost wide" href={linkTo("file")} title="Open file  (g f)" aria-current={current(props.view, "file")}>
                <Icon name="open" />
                <span class="roomy">Open file</span>
            </Link>
            <Who />
            <button type="button" class="button ghost square wide" aria-label="Keys" title="Keys  (?)" onClick={props.onKeys}>
                ?
            </button>
            <button type="button" class="button ghost square" aria-label="Switch light and dark" title="Light or dark  (d)" onClick={toggleTheme}>
                <ThemeIcon />
            </button>
        </header>
    );
}

export function TabBar(props: { view: View }) {
    const rest = [...TABS.filter((tab) => !tab.icon), ...OTHERS];
    return (
        <nav class="tabbar" aria-label="Views">
            {TABS.filter((tab) => tab.icon).map(({ view, title, icon }) => (
                <Link key={view} href={linkTo(view)} aria-current={current(props.view, view)}>
                    <Icon name={icon!} />
                    {title}
                </Link>
            ))}
            <MenuButton
                label="More views"
                plain
                class={rest.some((tab) => tab.view === props.view) ? "ok" : ""}
                text={<><Icon name="more" />More</>}
                entries={rest.map(({ view, title }) => ({ label: title, href: linkTo(view), chosen: props.view === view }))}
            />
        </nav>
    );
}
