// SPDX-License-Identifier: Apache-2.0
// Which service, and which of its profile types, with what a type samples and what looks wrong in it.
import { useState } from "preact/hooks";
import type { Service, Services } from "../../api/answers";
import { useSearch } from "../../api/search";
import { useAsk } from "../../api/use";
import { ago } from "../../model/format";
import { knowledgeOf, typeOrder } from "../../model/know";
import { change } from "../../state/place";
import { MenuButton } from "../menu";
import { PickList } from "./pick";

// A service alone, or all of them.
export const useServices = (service: string) => useAsk<Services>("/api/v1/services", { service });

const seen = (newest: string | null) => (newest ? ago(Date.parse(newest), Date.now()) : "");

function ServiceList({ service, close }: { service: string; close: () => void }) {
    const { asked, all, onType } = useSearch<Services>("/api/v1/services");
    const services = asked.data?.services ?? [];
    return (
        <PickList
            label="Find a service"
            options={[{ value: "", label: "All services" }, ...services.map(({ name, newest }) => ({ value: name, label: name, aside: seen(newest) }))]}
            chosen={service}
            loading={asked.loading}
            error={asked.error}
            all={all}
            onType={onType}
            onPick={(value) => {
                close();
                change({ service: value, fn: null, focus: null });
            }}
        />
    );
}

export function ServiceButton({ service }: { service: string }) {
    const name = service || "All services";
    return (
        <MenuButton
            label={`Service: ${name}`}
            menuClass="picker"
            text={<b class="ellipsis">{name}</b>}
            content={(close) => <ServiceList service={service} close={close} />}
        />
    );
}

// What a type tells, in four lines.
export function TypeKnowledge({ type }: { type: string }) {
    const known = knowledgeOf(type);
    return (
        <div class="knowledge">
            <b>{known.title}</b> <span class="muted">{known.term === type ? "" : known.term}</span>
            {known.samples && <p>{known.samples}</p>}
            {known.useFor && <p><span class="muted">Use it for</span> {known.useFor}</p>}
            {known.redFlags.length > 0 && (
                <>
                    <p class="muted">Look twice at</p>
                    <ul>{known.redFlags.map((flag) => <li key={flag}>{flag}</li>)}</ul>
                </>
            )}
            {!known.samples && <p class="muted">A type of its own. Its unit and its stacks say what it counts.</p>}
            <p class="mono muted">{type}</p>
        </div>
    );
}

// Types that the service has (of all, where none is chosen), as people reach for them.
export function typesOf(services: Service[], service: string): { id: string; newest: string | null }[] {
    const found = new Map<string, string | null>();
    for (const one of services) {
        if (service && one.name !== service) continue;
        for (const { id, newest } of one.types) if ((found.get(id) ?? "") <= (newest ?? "")) found.set(id, newest);
    }
    return [...found].map(([id, newest]) => ({ id, newest })).sort((a, b) => typeOrder(a.id, b.id));
}

function TypePicker(props: { service: string; type: string; standard: string; close: () => void }) {
    const asked = useServices(props.service);
    const [pointed, setPointed] = useState(props.type);
    const types = typesOf(asked.data?.services ?? [], props.service);
    const titles = types.map(({ id }) => knowledgeOf(id).title);
    const options = types.map(({ id, newest }, i) => ({
        value: id,
        label: titles.indexOf(titles[i]) === titles.lastIndexOf(titles[i]) ? titles[i] : `${titles[i]} (${id.split(":").slice(2, 4).join(", ")})`,
        aside: seen(newest),
    }));
    return (
        <div class="type-picker">
            <PickList
                label="Find a profile type"
                options={options}
                chosen={props.type}
                loading={asked.loading}
                error={asked.error}
                none="This service has sent no profiles."
                onPoint={setPointed}
                onPick={(value) => {
                    props.close();
                    change({ type: value === props.standard ? null : value });
                }}
            />
            <TypeKnowledge type={pointed} />
        </div>
    );
}

export function TypeButton(props: { service: string; type: string; standard: string }) {
    const known = knowledgeOf(props.type);
    return (
        <MenuButton
            label={`Profile type: ${known.title} (${known.term})`}
            menuClass="picker"
            text={<b class="ellipsis">{known.title}</b>}
            content={(close) => <TypePicker {...props} close={close} />}
        />
    );
}
