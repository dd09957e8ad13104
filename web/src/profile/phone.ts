// SPDX-License-Identifier: Apache-2.0
// Is the window as narrow as a phone?
import { useEffect, useState } from "preact/hooks";

const query = () => matchMedia("(max-width: 640px)");

export function usePhone(): boolean {
    const [phone, setPhone] = useState(() => query().matches);
    useEffect(() => {
        const watch = query();
        const listen = () => setPhone(watch.matches);
        watch.addEventListener("change", listen);
        return () => watch.removeEventListener("change", listen);
    }, []);
    return phone;
}
