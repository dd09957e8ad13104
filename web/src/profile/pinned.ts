// SPDX-License-Identifier: Apache-2.0
// Modules that a reader has said are own code, in components: a change is seen everywhere at once.
import { useEffect, useState } from "preact/hooks";
import { pinnedModules, togglePin } from "../model/pins";

const listeners = new Set<(modules: string[]) => void>();

export function togglePinned(module: string): void {
    const after = togglePin(module);
    listeners.forEach((listener) => listener(after));
}

export function usePinned(): string[] {
    const [modules, setModules] = useState(pinnedModules);
    useEffect(() => {
        listeners.add(setModules);
        return () => void listeners.delete(setModules);
    }, []);
    return modules;
}
