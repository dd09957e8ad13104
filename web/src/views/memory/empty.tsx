// SPDX-License-Identifier: Apache-2.0
// What sends memory profiles, language by language, and how to read them.
import { Command, Empty } from "../../ui/kit";

// A command reaches the server at its usual address by itself.
const usual = /^http:\/\/(localhost|127\.0\.0\.1):4040$/;
export const push = (file: string) =>
    `kiln push ${file} --service api${usual.test(location.origin) ? "" : ` --server ${location.origin}`}`;

const ways = (): [string, string, string][] => [
    [
        "Go",
        "Kiln fetches heap and allocs itself from net/http/pprof",
        'scrape: [{job_name: api, static_configs: [{targets: ["host:6060"]}]}]',
    ],
    ["Node", "the pprof package: heap.profile(), encoded to a file", push("heap.pb.gz")],
    [
        "Java",
        "async-profiler: what is allocated, and with live what stays",
        `asprof -e alloc --live -d 60 -f heap.jfr PID && ${push("heap.jfr")}`,
    ],
    ["Rust, C, C++", "jemalloc or gperftools with heap profiling switched on", push("app.heap")],
    ["Any", "a Pyroscope SDK with memory profiling on", `PYROSCOPE_SERVER_ADDRESS=${location.origin}`],
];

export function NoMemory({ service }: { service: string }) {
    return (
        <Empty title={service ? `No memory profiles of ${service}` : "No memory profiles yet"}>
            <p>
                A heap profile says what was still held when it was taken, and by whom; an allocation profile, who asked
                for memory.
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
            <p class="playbook">
                To find a leak: take a heap profile every few minutes, look for what grows with each of them while
                traffic does not, then see in the allocations where it comes from. Once it is fixed, the growth here is
                flat.
            </p>
        </Empty>
    );
}
