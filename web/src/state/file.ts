// SPDX-License-Identifier: Apache-2.0
// The file that is looked at.  It stays in the browser, goes to the server with each question, and
// is kept by nobody.
import { useEffect, useState } from "preact/hooks";

let file: File | null = null;
const listeners = new Set<(file: File | null) => void>();

export function chooseFile(chosen: File | null): void {
    file = chosen;
    listeners.forEach((listener) => listener(file));
}

export function useFile(): File | null {
    const [seen, setSeen] = useState(file);
    useEffect(() => {
        listeners.add(setSeen);
        setSeen(file);
        return () => void listeners.delete(setSeen);
    }, []);
    return seen;
}
