// SPDX-License-Identifier: Apache-2.0
// First run: how to send profiles, with commands to copy, and a dot that tells when the first one came.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Service } from "../api/answers";
import { ask, type ApiError } from "../api/client";
import { ago } from "../model/format";
import { arrived, hostWord, isLoopback, waysTo, type Way } from "../model/ways";
import { linkTo, open } from "../state/place";
import { refreshNow } from "../state/refresh";
import { useSession } from "../state/session";
import { Command, Note, Segment } from "../ui/kit";
import "./start.css";

const POLL_MS = 2000;

interface Heard {
    services: Service[];
    error: ApiError | null;
    first: string | null; // the first service that was not there when the page opened
}

// Asks what services there are, every two seconds while the page is looked at.
function useListening(): Heard | null {
    const [heard, setHeard] = useState<Heard | null>(null);
    const before = useRef<Set<string> | null>(null);
    useEffect(() => {
        let gone = false;
        let timer = 0;
        const listen = async () => {
            if (!document.hidden) {
                try {
                    const { services } = await ask<{ services: Service[] }>("/api/v1/services");
                    before.current ??= new Set(services.map(({ name }) => name));
                    if (!gone) setHeard((old) => ({ services, error: null, first: old?.first ?? arrived(before.current!, services) }));
                } catch (error) {
                    if (!gone) setHeard((old) => ({ services: old?.services ?? [], error: error as ApiError, first: old?.first ?? null }));
                }
            }
            if (!gone) timer = window.setTimeout(listen, POLL_MS);
        };
        void listen();
        return () => {
            gone = true;
            clearTimeout(timer);
        };
    }, []);
    return heard;
}

function Listening({ heard }: { heard: Heard | null }) {
    const see = () => {
        refreshNow();
        open(linkTo("overview", {}, []));
    };
    if (heard?.first)
        return (
            <div class="arrived" role="status">
                <i class="dot ok" aria-hidden="true" />
                <b>First profile from {heard.first}</b>
                <button type="button" class="button main" onClick={see}>See what it does</button>
            </div>
        );
    if (heard?.error) return <Note kind="bad"><b>Not listening.</b> {heard.error.message}</Note>;
    const newest = Math.max(0, ...(heard?.services ?? []).map(({ newest }) => Date.parse(newest ?? "") || 0));
    const port = location.port || (location.protocol === "https:" ? "443" : "80");
    return (
        <div class="listening" role="status">
            <i aria-hidden="true" />
            Listening on port {port} for OTLP, pprof and Pyroscope
            {newest > 0 && <span class="muted">last profile {ago(newest, Date.now())}</span>}
        </div>
    );
}

function WayCard({ way, word }: { way: Way; word: ReturnType<typeof hostWord> }) {
    const [chosen, setChosen] = useState(way.variants[0].name);
    const { command, text } = way.variants.find(({ name }) => name === chosen)!;
    return (
        <section class="panel way" aria-label={way.title}>
            <div>
                <h2>{way.title}</h2>
                <p class="muted small">{way.text}</p>
            </div>
            <div class="column">
                {way.variants.length > 1 && (
                    <Segment label={way.title} value={chosen} choices={way.variants.map(({ name }) => ({ value: name, label: name }))} onChoose={setChosen} />
                )}
                <Command>{command}</Command>
                {text && <p class="muted small">{text}</p>}
                {word && <p class={`small ${word.bad ? "warn" : "ok"}`}>{word.text}</p>}
            </div>
        </section>
    );
}

function Notes({ tokens }: { tokens: boolean }) {
    return (
        <div class="start-notes small soft">
            {tokens && <p>This server wants to know who sends: put a token that may write where the commands say <code>TOKEN</code>.</p>}
            {isLoopback(location.hostname) && (
                <p>The address above works on this machine. For others, start Kiln with <code>--listen :4040 --tokens FILE</code> and open the page under the machine's name.</p>
            )}
        </div>
    );
}

export function FirstRun() {
    const heard = useListening();
    const { session } = useSession();
    const tokens = session?.tokens ?? false;
    const some = (heard?.services.length ?? 0) > 0 && !heard?.first;
    return (
        <main class="reading start">
            <svg width="44" height="44" viewBox="0 0 20 20" aria-hidden="true">
                <path d="M2 18V9.500a8 8 0 0 1 16 0V18z" fill="var(--line-2)" />
                <path d="M6.500 18v-5.500a3.500 3.500 0 0 1 7 0V18z" fill="var(--bg)" />
            </svg>
            <h1>{heard?.first ? "Profiles arrive" : some ? "Send more profiles" : "No profiles yet"}</h1>
            <p class="soft">{some ? "Pick a way. What is new shows up here within ten seconds." : "Pick one way to send the first. It shows up here within ten seconds."}</p>
            <Listening heard={heard} />
            {waysTo({ origin: location.origin, tokens }).map((way) => (
                <WayCard key={way.id} way={way} word={way.id === "host" ? hostWord(session) : null} />
            ))}
            <Notes tokens={tokens} />
        </main>
    );
}

export function Start() {
    return <FirstRun />;
}
