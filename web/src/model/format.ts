// SPDX-License-Identifier: Apache-2.0
// Numbers with units a person feels.  "−" for minus, a thin space between groups and before units.

const THIN = "\u2009";

// A stranger's text inside of a sentence: what turns the direction of writing ends with it.
export const isolated = (text: string) => (/[\u202a-\u202e\u2066-\u2069]/.test(text) ? `\u2068${text}\u2069` : text);

export function digits(value: number, places: number): string {
    const text = Math.abs(value).toFixed(places);
    const [whole, part] = text.split(".");
    const grouped = whole.length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, THIN) : whole;
    const sign = value < 0 && Number(text) !== 0 ? "−" : "";
    return sign + grouped + (part ? "." + part : "");
}

// Three figures that count: 0.012, 1.23, 12.3, 123, 1 234.
export function figures(value: number): string {
    const size = Math.abs(value);
    if (size === 0) return "0";
    if (size >= 99.95) return digits(value, 0);
    if (size >= 9.995) return digits(value, 1);
    if (size >= 0.0995) return digits(value, 2);
    return size >= 0.0005 ? digits(value, 3) : (value < 0 ? "−" : "") + "<0.001";
}

export const count = (value: number) => digits(Math.round(value), 0);
export const signed = (text: string, value: number) => (value > 0 ? "+" + text : text);

export function share(part: number, whole: number, places = 1): string {
    return whole ? percent(part / whole, places) : "–";
}

export function percent(value: number, places = 1): string {
    const shown = value * 100;
    if (shown > 0 && shown < 0.05 && places === 1) return `<0.1${THIN}%`;
    return `${digits(shown, places)}${THIN}%`;
}

// In the first unit that the value has at least `from` of.
const scaled = (value: number, units: { size: number; unit: string; from?: number }[]) => {
    const { size, unit } = units.find(({ size, from = 1 }) => Math.abs(value) >= size * from) ?? units[units.length - 1];
    return `${figures(value / size)}${unit && THIN + unit}`;
};

export const bytes = (value: number) =>
    scaled(value, [{ size: 1e12, unit: "TB" }, { size: 1e9, unit: "GB" }, { size: 1e6, unit: "MB" }, { size: 1e3, unit: "kB" }, { size: 1, unit: "B" }]);

export const duration = (secondsLong: number) =>
    scaled(secondsLong, [
        { size: 86400, unit: "d", from: 2 },
        { size: 3600, unit: "h", from: 2 },
        { size: 60, unit: "min", from: 2 },
        { size: 1, unit: "s" },
        { size: 1e-3, unit: "ms" },
        { size: 1e-6, unit: "µs" },
        { size: 1e-9, unit: "ns" },
    ]);

export const many = (value: number) =>
    scaled(value, [{ size: 1e9, unit: "G" }, { size: 1e6, unit: "M" }, { size: 1e3, unit: "k", from: 10 }, { size: 1, unit: "" }]);

// "3 services", "1 service"
export const plural = (n: number, one: string, more = one + "s") => `${count(n)} ${n === 1 ? one : more}`;

const WORDS = ["No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve"];
// At the start of a sentence: "Seven services".
export const pluralWords = (n: number, one: string, more = one + "s") =>
    `${WORDS[n] ?? count(n)} ${n === 1 ? one : more}`;

const two = (n: number) => String(n).padStart(2, "0");

export const clock = (ms: number, withSeconds = false) => {
    const at = new Date(ms);
    return `${two(at.getHours())}:${two(at.getMinutes())}${withSeconds ? ":" + two(at.getSeconds()) : ""}`;
};

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

// "14:05", "yesterday 14:05", "3 Nov 14:05", "3 Nov 2025"
export function moment(ms: number, now: number): string {
    const at = new Date(ms);
    const day = (time: number) => new Date(time).setHours(0, 0, 0, 0);
    const days = Math.round((day(now) - day(ms)) / 86400000);
    if (days === 0) return clock(ms);
    if (days === 1) return "yesterday " + clock(ms);
    const date = `${at.getDate()} ${MONTHS[at.getMonth()]}`;
    return at.getFullYear() === new Date(now).getFullYear() ? `${date} ${clock(ms)}` : `${date} ${at.getFullYear()}`;
}

// "just now", "12 s ago", "5 min ago", "9 h ago"
export function ago(ms: number, now: number): string {
    const passed = Math.max(0, Math.round((now - ms) / 1000));
    if (passed < 5) return "just now";
    if (passed < 120) return `${passed}${THIN}s ago`;
    if (passed < 7200) return `${Math.round(passed / 60)}${THIN}min ago`;
    if (passed < 172800) return `${Math.round(passed / 3600)}${THIN}h ago`;
    return `${Math.round(passed / 86400)} days ago`;
}
