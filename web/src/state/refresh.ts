// SPDX-License-Identifier: Apache-2.0
// The clock of a page that refreshes itself: a number that grows, and everything that asked with a
// time relative to now asks again.
import { useEffect, useState } from "preact/hooks";
import { forgetAnswers } from "../api/use";

let tick = 0;
const listeners = new Set<(tick: number) => void>();

export function refreshNow(): void {
    tick++;
    forgetAnswers();
    listeners.forEach((listener) => listener(tick));
}

export function useTick(): number {
    const [seen, setSeen] = useState(tick);
    useEffect(() => {
        listeners.add(setSeen);
        setSeen(tick);
        return () => void listeners.delete(setSeen);
    }, []);
    return seen;
}

const LONGEST = 86400; // timers count in 32 bits

// Refreshes every so many seconds while the page is looked at; less than one, or no number: never.
export function useAutoRefresh(seconds: number): void {
    useEffect(() => {
        if (!(seconds >= 1 && seconds <= LONGEST)) return;
        const timer = setInterval(() => !document.hidden && refreshNow(), seconds * 1000);
        return () => clearInterval(timer);
    }, [seconds]);
}
