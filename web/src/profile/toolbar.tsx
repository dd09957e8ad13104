// SPDX-License-Identifier: Apache-2.0
// Which form the profile is shown in, the field that finds, and the options.
import type { RefObject } from "preact";
import { useState } from "preact/hooks";
import type { Tree } from "../model/tree";
import { Icon } from "../ui/icons";
import { Segment } from "../ui/kit";
import { MenuButton } from "../ui/menu";
import { FindField } from "./find";
import type { Hits } from "./hits";
import { TITLES } from "./keys";
import { OptionsButton } from "./options";
import type { ProfileSource } from "./panel";
import { setLook, SHOWS, type Look, type Show } from "./state";

const ON_PHONE: Show[] = ["table", "flame", "sandwich"];
const WIDE: Show[] = ["flame", "sandwich", "time", "graph", "tree"];

const choice = (show: Show) => ({ value: show, label: TITLES[show], title: `${TITLES[show]}  (${SHOWS.indexOf(show) + 1})` });

export function Toolbar(props: {
    look: Look;
    source: ProfileSource | null;
    pinned: string[];
    tree: Tree;
    input: RefObject<HTMLInputElement>;
    hits: Hits;
    phone: boolean;
}) {
    const { look, phone, hits } = props;
    const [finding, setFinding] = useState(false);
    const show = !phone && look.show === "table" ? "flame" : look.show;
    const field = <FindField look={look} tree={props.tree} input={props.input} at={hits.at} onNext={hits.next} />;
    const choose = (value: Show) => setLook({ show: value });
    if (!phone)
        return (
            <div class="panel-head profile-tools">
                <Segment label="Form of the profile" value={show} choices={WIDE.map(choice)} onChoose={choose} />
                <span class="grow" />
                {field}
                <OptionsButton look={look} source={props.source} pinned={props.pinned} />
            </div>
        );
    return (
        <div class="profile-tools">
            <div class="panel-head">
                <Segment label="Form of the profile" value={show} choices={ON_PHONE.map(choice)} onChoose={choose} />
                <MenuButton
                    label="Other forms"
                    class={ON_PHONE.includes(show) ? "square" : ""}
                    plain
                    alignRight
                    text={ON_PHONE.includes(show) ? <Icon name="more" /> : TITLES[show]}
                    entries={WIDE.filter((one) => !ON_PHONE.includes(one)).map((one) => ({ label: TITLES[one], chosen: one === show, onChoose: () => choose(one) }))}
                />
                <OptionsButton look={look} source={props.source} pinned={props.pinned} />
                <button type="button" class="button square" aria-label="Find" aria-expanded={finding} onClick={() => setFinding(!finding)}>
                    <Icon name="search" />
                </button>
            </div>
            {(finding || look.find) && <div class="panel-head find-row">{field}</div>}
        </div>
    );
}
