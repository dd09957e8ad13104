// SPDX-License-Identifier: Apache-2.0
// Who looks at the page, and what they may do.  Asked once, and again when the server wants a token.
import { useEffect, useState } from "preact/hooks";
import type { Session } from "../api/answers";
import { ask, onUnauthorized } from "../api/client";
import { refreshNow } from "./refresh";

let session: Session | null = null;
let wanted = false; // the server refused somebody unknown
let told = 0; // how often something changed
const listeners = new Set<(told: number) => void>();

function tell(): void {
    told++;
    listeners.forEach((listener) => listener(told));
}

async function take(answer: Promise<Session>): Promise<void> {
    session = await answer;
    wanted = session.tokens && !session.signed_in && !session.access.includes("read");
    tell();
}

export function startSession(): void {
    onUnauthorized(() => {
        if (wanted) return;
        wanted = true;
        tell();
    });
    take(ask<Session>("/api/v1/session")).catch(() => {}); // whatever is asked next says what is wrong
}

export async function signIn(token: string): Promise<void> {
    await take(ask<Session>("/api/v1/session", { method: "POST", json: { token } }));
    refreshNow();
}

export async function signOut(): Promise<void> {
    await ask("/api/v1/session", { method: "DELETE" });
    await take(ask<Session>("/api/v1/session"));
    refreshNow();
}

export function useSession(): { session: Session | null; wanted: boolean; may: (what: Session["access"][number]) => boolean } {
    const [, setSeen] = useState(told);
    useEffect(() => {
        listeners.add(setSeen);
        setSeen(told); // what changed before anybody listened
        return () => void listeners.delete(setSeen);
    }, []);
    return { session, wanted, may: (what) => session?.access.includes(what) ?? false };
}
