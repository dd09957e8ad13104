// SPDX-License-Identifier: Apache-2.0
// Light and dark: what the system wants, until the reader says otherwise.
import { useEffect, useState } from "preact/hooks";

export type Theme = "light" | "dark";

const listeners = new Set<(theme: Theme) => void>();
const system = () => (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

export function currentTheme(): Theme {
    const said = localStorage.getItem("kiln.theme");
    return said === "light" || said === "dark" ? said : system();
}

function apply(): void {
    const theme = currentTheme();
    document.documentElement.dataset.theme = theme;
    listeners.forEach((listener) => listener(theme));
}

export function startTheme(): void {
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
    apply();
}

export function toggleTheme(): void {
    localStorage.setItem("kiln.theme", currentTheme() === "dark" ? "light" : "dark");
    apply();
}

// For what is painted on a canvas, and must be painted again.
export function useTheme(): Theme {
    const [theme, setTheme] = useState(currentTheme());
    useEffect(() => {
        listeners.add(setTheme);
        setTheme(currentTheme());
        return () => void listeners.delete(setTheme);
    }, []);
    return theme;
}

// The value of a token; of a list, all of them.
export const token = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
export const tokens = (name: string) => token(name).split(",").map((one) => one.trim());
