// SPDX-License-Identifier: Apache-2.0
// Open file: any profile that Kiln can read, looked at with the same tools; the server converts it
// and keeps nothing.
import { useEffect, useRef, useState } from "preact/hooks";
import type { FileAnswer } from "../api/answers";
import { ask, type ApiError } from "../api/client";
import { bytes, count, duration, plural } from "../model/format";
import { knowledgeOf } from "../model/know";
import { ProfilePanel } from "../profile/panel";
import { chooseFile, useFile } from "../state/file";
import { change, usePlace } from "../state/place";
import { Icon } from "../ui/icons";
import { Failure, Loading, Note } from "../ui/kit";
import { MenuButton } from "../ui/menu";
import "./file.css";

function Picker({ small }: { small?: boolean }) {
    const input = useRef<HTMLInputElement>(null);
    return (
        <>
            <button type="button" class={`button ${small ? "" : "main"}`} onClick={() => input.current!.click()}>
                <Icon name="open" />
                {small ? "Open another" : "Choose a file"}
            </button>
            <input
                ref={input}
                type="file"
                hidden
                aria-label="Profile"
                onChange={(event) => event.currentTarget.files?.[0] && chooseFile(event.currentTarget.files[0])}
            />
        </>
    );
}

function Invitation() {
    return (
        <main class="reading">
            <div class="drop-zone">
                <h1>Drop a profile here</h1>
                <p class="soft">pprof, OTLP, JFR, collapsed stacks, Speedscope, perf script; plain, gzip or zstd.</p>
                <Picker />
                <p class="muted small">The server reads it and keeps nothing. A file is not part of a link: who gets the link opens the file again.</p>
            </div>
        </main>
    );
}

function useOpened(file: File | null, type: string | null) {
    const [state, setState] = useState<{ answer: FileAnswer | null; error: ApiError | null; busy: boolean }>({ answer: null, error: null, busy: false });
    useEffect(() => {
        if (!file) return;
        const stop = new AbortController();
        setState((old) => ({ ...old, error: null, busy: true }));
        ask<FileAnswer>("/api/v1/files", { method: "POST", params: { name: file.name, type }, body: file, signal: stop.signal })
            .then((answer) => setState({ answer, error: null, busy: false }))
            .catch((error) => error.name !== "AbortError" && setState({ answer: null, error, busy: false }));
        return () => stop.abort();
    }, [file, type]);
    return state;
}

// How long the values are sums over: what the profiles cover, or from the first to the last of them.
function covered({ basis, from, until }: FileAnswer): number {
    return basis.covered_seconds || (Date.parse(until) - Date.parse(from)) / 1000 || 0;
}

export function OpenFile() {
    const file = useFile();
    const type = usePlace().params.get("type");
    const { answer, error, busy } = useOpened(file, type);
    if (!file) return <Invitation />;
    const seconds = answer ? covered(answer) : 0;
    return (
        <main class="measuring fills">
            <div class="scope">
                <b class="ellipsis">{file.name}</b>
                <span class="muted nowrap">{answer ? `${answer.file.format}, ${bytes(answer.file.bytes)}` : bytes(file.size)}</span>
                {answer && (
                    <MenuButton
                        label="Profile type"
                        text={<b>{knowledgeOf(answer.type.id).title}</b>}
                        entries={answer.types.map((one) => ({
                            label: knowledgeOf(one.id).title,
                            aside: one.id.split(":").slice(0, 3).join(":"),
                            chosen: one.id === answer.type.id,
                            onChoose: () => change({ type: one.id }),
                        }))}
                    />
                )}
                <span class="grow" />
                <Picker small />
            </div>
            <div class="list-view">
                {error && (
                    <>
                        <Failure error={error} />
                        <Note>
                            Kiln reads pprof, OTLP profiles, JFR, collapsed stacks, Speedscope and the output of perf script. <code>kiln check {file.name}</code> says
                            more about a file that it refuses.
                        </Note>
                    </>
                )}
                {!answer && !error && <Loading />}
                {answer && (
                    <>
                        <h1 class="headline">
                            {plural(answer.basis.profiles, "profile")} with {count(answer.basis.count)} observations
                            {seconds > 0 && `, over ${duration(seconds)}`}
                        </h1>
                        <ProfilePanel
                            answer={answer}
                            source={{ path: "/api/v1/files", params: { name: file.name, type: answer.type.id }, body: file }}
                            rangeSeconds={seconds}
                            stale={busy}
                        />
                    </>
                )}
            </div>
        </main>
    );
}
