// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";

// What is typed, when no key was pressed for a while: the server is not asked for every letter.
export function useLater<T>(value: T, ms = 200): T {
    const [later, setLater] = useState(value);
    useEffect(() => {
        const timer = setTimeout(() => setLater(value), ms);
        return () => clearTimeout(timer);
    }, [value]);
    return later;
}
