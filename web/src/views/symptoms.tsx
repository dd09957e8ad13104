// SPDX-License-Identifier: Apache-2.0
// Start from a symptom: what to open first, what then, what to look for; each step opens a view that is filled in.
import { useEffect, useRef } from "preact/hooks";
import type { Service } from "../api/answers";
import { useAsk } from "../api/use";
import { knowledgeOf } from "../model/know";
import { kindTitle, PLAYBOOKS, READING, SYMPTOMS, typeFor, TYPES_EXPLAINED, type Step, type Symptom } from "../model/symptoms";
import { linkTo, usePlace } from "../state/place";
import { useScope } from "../state/scope";
import { Link, Panel } from "../ui/kit";
import { RangeButton } from "../ui/scope/range";
import { ServiceButton } from "../ui/scope/what";
import { PageHead } from "./overview/head";
import "./overview.css";
import "./symptoms.css";

const KEEP = ["service", "where", "from", "until"];

function StepLine({ step, first, services, service }: { step: Step; first: boolean; services: Service[] | null; service: string }) {
    const type = services && typeFor(step.kind, services, service);
    const title = kindTitle(step.kind);
    if (services && !type)
        return (
            <li>
                <span class="step missing" title="Nobody sends this type of profile yet">{title}</span>
                <span class="muted">{step.text}. Not sent yet: <Link href={linkTo("start", {}, [])}>how to</Link></span>
            </li>
        );
    const chosen = step.view === "explore" || step.view === "compare" ? type : null;
    return (
        <li>
            <Link class={`button step ${first ? "first" : ""}`} href={linkTo(step.view, { type: chosen }, KEEP)}>{title}</Link>
            <span class="soft">{step.text}</span>
        </li>
    );
}

function Card({ symptom, chosen, services, service }: { symptom: Symptom; chosen: boolean; services: Service[] | null; service: string }) {
    const box = useRef<HTMLElement>(null);
    useEffect(() => {
        if (chosen) box.current!.scrollIntoView({ block: "nearest" });
    }, [chosen]);
    return (
        <article ref={box} class={`panel symptom ${chosen ? "chosen" : ""}`} id={`symptom-${symptom.id}`} aria-current={chosen ? "true" : undefined}>
            <h2>{symptom.title}</h2>
            <div class="caption">Start with</div>
            <ul class="steps">{symptom.start.map((step) => <StepLine key={step.kind} step={step} first services={services} service={service} />)}</ul>
            <div class="caption">Then</div>
            <ul class="steps">{symptom.then.map((step) => <StepLine key={step.kind} step={step} first={false} services={services} service={service} />)}</ul>
            <div class="caption">Look for</div>
            <ul class="look">{symptom.look.map((one) => <li key={one}>{one}</li>)}</ul>
            <p class="often"><b>Often:</b> {symptom.often.cause.charAt(0).toLowerCase() + symptom.often.cause.slice(1)}. <span class="soft">{symptom.often.fix}.</span></p>
        </article>
    );
}

function Types({ services, service }: { services: Service[] | null; service: string }) {
    const sent = (prefix: string) => services?.filter(({ name }) => !service || name === service).flatMap(({ types }) => types.map(({ id }) => id)).find((id) => id.startsWith(prefix + ":"));
    return (
        <Panel title="What each profile shows, and what looks wrong in it" class="types" label="Profile types">
            <table class="table">
                <thead>
                    <tr>
                        <th scope="col">Profile</th>
                        <th scope="col">Shows</th>
                        <th scope="col" class="wide">Good for</th>
                        <th scope="col">Looks wrong</th>
                    </tr>
                </thead>
                <tbody>
                    {TYPES_EXPLAINED.map((prefix) => {
                        const known = knowledgeOf(prefix);
                        const type = sent(prefix);
                        return (
                            <tr key={prefix}>
                                <td class="strong">{type ? <Link href={linkTo("explore", { type }, KEEP)}>{known.title}</Link> : known.title}<small>{known.term}</small></td>
                                <td class="soft">{known.samples}</td>
                                <td class="soft wide">{known.useFor}</td>
                                <td>{known.redFlags.map((flag) => <div key={flag}>{flag}</div>)}</td>
                            </tr>
                        );
                    })}
                </tbody>
            </table>
        </Panel>
    );
}

export function Symptoms() {
    const scope = useScope();
    const chosen = usePlace().params.get("symptom") ?? "";
    const asked = useAsk<{ services: Service[] }>("/api/v1/services");
    const services = asked.data?.services ?? null;
    const whose = scope.service || "all services";
    return (
        <main class="reading symptoms">
            <PageHead title="What do you see?" text={<>Pick the symptom; its steps open filled in, for {whose}.</>}>
                <ServiceButton service={scope.service} />
                <RangeButton scope={scope} />
            </PageHead>
            <div class="symptom-cards">
                {SYMPTOMS.map((symptom) => (
                    <Card key={symptom.id} symptom={symptom} chosen={symptom.id === chosen} services={services} service={scope.service} />
                ))}
                <article class="panel symptom reading-help">
                    <h2>How to read a flame graph</h2>
                    <dl>
                        {READING.map(({ title, text }) => (
                            <div key={title}>
                                <dt>{title}</dt>
                                <dd class="soft">{text}</dd>
                            </div>
                        ))}
                    </dl>
                </article>
            </div>
            <div class="playbooks">
                {PLAYBOOKS.map(({ title, steps }) => (
                    <article key={title} class="panel symptom">
                        <h2>{title}</h2>
                        <ol class="look">{steps.map((step) => <li key={step}>{step}</li>)}</ol>
                    </article>
                ))}
            </div>
            <Types services={services} service={scope.service} />
        </main>
    );
}
