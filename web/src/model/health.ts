// SPDX-License-Identifier: Apache-2.0
// How Kiln is: its agents, what it drops, how long it keeps.
import type { Agent, Service, Status } from "../api/answers";
import { bytes, count, duration, moment, percent, plural, pluralWords } from "./format";

export type Tone = "ok" | "warn" | "bad";

export interface AgentHealth {
    tone: Tone;
    word: string;
    reports: boolean; // it is heard of
    dropped: number; // samples
    dropShare: number; // of all that it took
    drop: string; // the reason of most drops
    end: string; // the reason why most stacks are not complete
}

const SILENT_MS = 60000;
export const DROPS_MUCH = 0.002;
const SHORT_STACKS = 0.9;
const LITTLE = 0.005; // of all samples

type Counts = { reason: string; count: number }[];

const largest = (list: Counts) => [...list].filter((one) => one.count > 0).sort((a, b) => b.count - a.count)[0] ?? null;
// Why stacks end before their entry point; a stack that is all kernel has none to reach.
export const shortEnds = (ends: Counts): Counts => ends.filter(({ reason }) => reason !== "complete" && reason !== "no_user");
export const words = (reason: string) => reason.replace(/_/g, " ");

function toneOf(agent: Agent, dropShare: number, now: number): [Tone, string] {
    if (agent.state === "failed") return ["bad", "Failed"];
    if (now - Date.parse(agent.last_seen) > SILENT_MS) return ["bad", "Silent"];
    if (agent.state === "paused") return ["warn", "Paused"];
    if (agent.state === "stopped") return ["warn", "Stopped"];
    if (dropShare > DROPS_MUCH) return ["warn", "Drops"];
    if (agent.unwind.share !== null && agent.unwind.share < SHORT_STACKS) return ["warn", "Short stacks"];
    return ["ok", agent.state === "waiting" ? "Waiting" : "Healthy"];
}

export function healthOf(agent: Agent, now: number): AgentHealth {
    const dropped = agent.drops.reduce((sum, one) => sum + one.count, 0);
    const unseen = agent.drops.find((one) => one.reason === "lost")?.count ?? 0; // all others are among its samples
    const dropShare = dropped ? dropped / Math.max(agent.samples + unseen, dropped) : 0;
    const [tone, word] = toneOf(agent, dropShare, now);
    return {
        tone, word, dropped, dropShare,
        reports: word !== "Failed" && word !== "Silent",
        drop: words(largest(agent.drops)?.reason ?? ""),
        end: words(largest(shortEnds(agent.unwind.ends))?.reason ?? ""),
    };
}

function ofAgents(agents: Agent[], now: number): string {
    const health = agents.map((agent) => ({ agent, ...healthOf(agent, now) }));
    const reporting = health.filter(({ reports }) => reports).length;
    const failed = health.find(({ word }) => word === "Failed");
    if (!agents.length) return "No agent reports";
    if (agents.length === 1 && failed) return `${failed.agent.host || "This host"} cannot be profiled`;
    const many = agents.length === 2 ? "Both" : `All ${pluralWords(agents.length, "", "").trim().toLowerCase()}`;
    const all = agents.length === 1 ? "One agent reports" : `${many} agents report`;
    const some = `${pluralWords(reporting, "", "").trim()} of ${pluralWords(agents.length, "agent").toLowerCase()} ${reporting === 1 ? "reports" : "report"}`;
    const worst = health.filter(({ dropShare }) => dropShare > DROPS_MUCH).sort((a, b) => b.dropShare - a.dropShare)[0];
    const drops = worst ? `; ${worst.agent.host} drops ${percent(worst.dropShare)}` : "";
    return (reporting === agents.length ? all : some) + drops;
}

// The state in one sentence; what is worst comes first.
export function statusSentence(status: Status | null, agents: Agent[] | null, now: number): string {
    if (status && !status.store.writable) return `Nothing can be kept: ${status.store.problem ?? "the store does not take anything"}`;
    const first = agents ? ofAgents(agents, now) : "";
    const wrong = status?.drops.length ?? 0;
    const little = status?.ingest && status.drops.reduce((sum, one) => sum + one.count, 0) < status.ingest.samples * LITTLE;
    const rate = status?.ingest ? Math.round(status.ingest.profiles_per_second * 60) : 0;
    const coming = rate ? `${count(rate)} profiles a minute come in` : "";
    const parts = [first === "No agent reports" && coming ? coming : first];
    if (status && !parts[0].includes("drops")) parts.push(!wrong ? "nothing was dropped" : little ? "next to nothing was dropped" : `${pluralWords(wrong, "thing").toLowerCase()} went wrong`);
    const text = parts.filter(Boolean).join("; ");
    return first ? text : text.charAt(0).toUpperCase() + text.slice(1); // a host's name stays as it is
}

export function statusSubtitle(status: Status, agents: Agent[], now: number): string {
    const up = (now - Date.parse(status.started)) / 1000;
    const { used_bytes: used, limit_bytes: limit } = status.memory;
    // without agents, the sentence says how much comes in
    const rate = status.ingest && agents.length ? `, ${plural(Math.round(status.ingest.profiles_per_second * 60), "profile")} a minute` : "";
    return `Kiln ${status.version}, up ${up < 120 ? "for a minute" : duration(up)}, ${bytes(used)} of ${bytes(limit)} memory${rate}.`;
}

// "1.2 GB, kept 14 days, at most 20 GB"
export function storageText({ store }: Status): string {
    const age = store.retention_seconds ? `kept ${plural(Math.round(store.retention_seconds / 86400), "day")}` : "kept for good";
    return [bytes(store.bytes + (store.log_bytes ?? 0)), store.retention_seconds && store.retention_seconds < 86400 ? `kept ${duration(store.retention_seconds)}` : age,
        store.retention_bytes ? `at most ${bytes(store.retention_bytes)}` : ""].filter(Boolean).join(", ");
}

// When the oldest goes, what is free, how fast it grows.
export function storageFoot({ store }: Status, services: Service[], now: number): string {
    const oldest = Date.parse(store.oldest ?? "");
    const goes = store.retention_seconds ? oldest + store.retention_seconds * 1000 : NaN;
    const day = services.reduce((sum, one) => sum + one.bytes_per_second, 0) * 86400;
    return [
        Number.isNaN(oldest) ? "" : `The oldest profile is of ${moment(oldest, now)}${Number.isNaN(goes) ? "" : ` and goes ${goes <= now ? "now" : `on ${moment(goes, now)}`}`}.`,
        day >= 1 ? `It grows by ${bytes(day)} a day;` : "",
        `${bytes(store.disk_free_bytes)} of the disk are free.`,
    ].filter(Boolean).join(" ");
}

export const ownCores = (status: Status, now: number) => status.cpu_seconds / Math.max(1, (now - Date.parse(status.started)) / 1000);
