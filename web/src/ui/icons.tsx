// SPDX-License-Identifier: Apache-2.0
// Icons, 16 by 16, one stroke.
const PATHS = {
    search: "M7 12a5 5 0 1 0 0-10 5 5 0 0 0 0 10zM11 11l3 3",
    open: "M8 10V2M5 5l3-3 3 3M3 10v3h10v-3",
    down: "M4 6l4 4 4-4",
    close: "M4 4l8 8M12 4l-8 8",
    copy: "M5.5 5.5V3h7.5v7.5h-2.5M3 5.5h7.5V13H3z",
    link: "M6.5 9.5l3-3M7 4.5l1-1a3 3 0 0 1 4.5 4.5l-1 1M9 11.5l-1 1A3 3 0 0 1 3.500 8l1-1",
    refresh: "M13 8a5 5 0 1 1-1.500-3.500M13 2v3h-3",
    overview: "M2 13h12M4 13V8M8 13V3M12 13V6",
    explore: "M2 4h12M2 8h8M2 12h5",
    compare: "M2.500 2.500h7v7h-7zM9.500 6.500h4v7h-7v-4",
    status: "M2 9h3l2-5 3 8 2-3h2",
    more: "M3 8h.01M8 8h.01M13 8h.01",
    trash: "M3 5h10M6 5V3h4v2M5 5l.5 8h5l.5-8",
    warning: "M8 2.500L14 13H2zM8 6.500v3M8 11.500h.01",
    menu: "M2 4h12M2 8h12M2 12h12",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
    return (
        <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
            <path d={PATHS[name]} />
        </svg>
    );
}

export function ThemeIcon() {
    return (
        <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
            <circle cx="8" cy="8" r="6" />
            <path d="M8 2a6 6 0 0 1 0 12z" fill="currentColor" />
        </svg>
    );
}

export function Brand() {
    return (
        <svg width="20" height="20" viewBox="0 0 20 20" aria-hidden="true">
            <path d="M2 18V9.500a8 8 0 0 1 16 0V18z" fill="currentColor" />
            <path d="M6.500 18v-5.500a3.500 3.500 0 0 1 7 0V18z" fill="#e77f3e" />
        </svg>
    );
}
