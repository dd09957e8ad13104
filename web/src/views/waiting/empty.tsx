// SPDX-License-Identifier: Apache-2.0
// What records waiting time today, and what does not.
import { Command, Empty } from "../../ui/kit";
import { push } from "../memory/empty";

const FGPROF = "profiles: {fgprof: {path: /debug/fgprof, seconds: 10}}";

const ways = (): [string, string, string][] => [
    ["Any, on Linux", "Kiln's own agent, with the reason of each wait", `sudo kiln agent --off-cpu on --endpoint ${location.origin}`],
    [
        "Go",
        "mutex and block profiles, and wall time by fgprof; Kiln fetches them",
        `scrape: [{job_name: api, ${FGPROF}, static_configs: [{targets: ["host:6060"]}]}]`,
    ],
    [
        "Java",
        "async-profiler in its wall mode, or a JFR recording with its locks",
        `asprof -e wall -d 60 -f wall.jfr PID && ${push("wall.jfr")}`,
    ],
    ["Node, Ruby, PHP", "wall profiles of a language's profiler, as pprof", push("wall.pb.gz")],
    [
        "Python",
        "py-spy with idle threads, as folded stacks",
        "py-spy record --idle -f raw -o wall.txt --pid PID && " +
            `curl --data-binary @wall.txt '${location.origin}/ingest?name=api.wall&format=folded'`,
    ],
    [
        "Any, by OTLP",
        "profiles whose type is wall or off_cpu, in nanoseconds",
        `OTEL_EXPORTER_OTLP_ENDPOINT=${location.origin}`,
    ],
];

export function NoWaiting({ service }: { service: string }) {
    return (
        <Empty title={service ? `Nothing says where ${service} waits` : "Nothing says where time is waited"}>
            <p>
                A CPU profile does not see a thread that waits for a lock, a disk or an answer. Wall-clock and off-CPU
                profiles do. Kiln's agent sees the waits of every process of its host; elsewhere they have to be sent:
            </p>
            <div class="sends">
                {ways().map(([language, what, command]) => (
                    <div key={language} class="panel send">
                        <div>
                            <b>{language}</b>
                            <small>{what}</small>
                        </div>
                        <Command>{command}</Command>
                    </div>
                ))}
            </div>
        </Empty>
    );
}
