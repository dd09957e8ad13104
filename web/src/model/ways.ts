// SPDX-License-Identifier: Apache-2.0
// The ways to send a profile, as commands that can be copied, with this server's own address.
import type { Session } from "../api/answers";

export interface Variant {
    name: string;
    command: string;
    text?: string; // what else to know of it
}

export interface Way {
    id: string;
    title: string;
    text: string;
    variants: Variant[];
}

export interface Server {
    origin: string; // http://host:4040
    tokens: boolean; // it wants to know who sends
}

const NOBODY = "TOKEN"; // stands for one, in commands

function thisHost({ origin, tokens }: Server): Way {
    const header = tokens ? `OTEL_EXPORTER_OTLP_HEADERS='Authorization=Bearer%20${NOBODY}' ` : "";
    const variable = tokens ? `-e 'OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer%20${NOBODY}' ` : "";
    return {
        id: "host",
        title: "A Linux host",
        text: "Every process, no code change",
        variants: [
            { name: "Server and host", command: "sudo kiln", text: "Instead of kiln server: it profiles the machine it runs on." },
            { name: "Agent", command: `${tokens ? "sudo env " + header : "sudo "}kiln agent --endpoint ${origin}`, text: "On any machine that reaches this server. What cannot be sent waits on its disk." },
            {
                name: "Container",
                command: `docker run --rm -d --name kiln-agent --privileged --pid=host \\
  -v /sys/kernel:/sys/kernel:ro -v /lib/modules:/lib/modules:ro \\
  ${variable}-e OTEL_EXPORTER_OTLP_ENDPOINT=${origin} \\
  IMAGE kiln agent`,
                text: "IMAGE is one of yours that has kiln in it.",
            },
        ],
    };
}

function openTelemetry({ origin, tokens }: Server): Way {
    const header = tokens ? `\nOTEL_EXPORTER_OTLP_HEADERS='Authorization=Bearer%20${NOBODY}'` : "";
    const headers = tokens ? `\n    headers: {Authorization: Bearer ${NOBODY}}` : "";
    return {
        id: "otlp",
        title: "OpenTelemetry",
        text: "SDKs, eBPF profiler, Collector: OTLP",
        variants: [
            { name: "Variables", command: `OTEL_EXPORTER_OTLP_ENDPOINT=${origin}${header}`, text: "OTLP over HTTP here, over gRPC too; 4317 and 4318 take the same where they are not switched off." },
            {
                name: "Collector",
                command: `exporters:
  otlphttp/kiln:
    endpoint: ${origin}${headers}
service:
  pipelines:
    profiles: {receivers: [otlp], exporters: [otlphttp/kiln]}`,
                text: "Start the Collector with --feature-gates=service.profilesSupport.",
            },
        ],
    };
}

function pyroscope({ origin, tokens }: Server): Way {
    const password = (before: string, after: string) => (tokens ? `${before}${NOBODY}${after}` : "");
    return {
        id: "pyroscope",
        title: "Pyroscope clients",
        text: "Point what you have at Kiln",
        variants: [
            {
                name: "Go",
                command: `pyroscope.Start(pyroscope.Config{
    ApplicationName: "shop",
    ServerAddress:   "${origin}",${password('\n    BasicAuthUser:   "kiln", BasicAuthPassword: "', '",')}
})`,
            },
            {
                name: "Python",
                command: `pyroscope.configure(
    application_name="shop",
    server_address="${origin}",${password('\n    basic_auth_username="kiln", basic_auth_password="', '",')}
)`,
            },
            { name: "Java", command: `PYROSCOPE_APPLICATION_NAME=shop PYROSCOPE_SERVER_ADDRESS=${origin} ${password("PYROSCOPE_BASIC_AUTH_USER=kiln PYROSCOPE_BASIC_AUTH_PASSWORD=", " ")}\\\n  java -javaagent:pyroscope.jar -jar app.jar` },
            { name: "Alloy", command: `pyroscope.write "kiln" {\n  endpoint {\n    url = "${origin}"${password('\n    bearer_token = "', '"')}\n  }\n}` },
        ],
    };
}

function files({ origin, tokens }: Server): Way {
    const curl = tokens ? `curl -H 'Authorization: Bearer ${NOBODY}'` : "curl";
    const to = `'${origin}/api/v1/profiles?service=shop'`;
    return {
        id: "file",
        title: "A file, or pprof",
        text: "pprof, OTLP, JFR, perf, collapsed, Speedscope",
        variants: [
            { name: "kiln push", command: `${tokens ? `KILN_TOKEN=${NOBODY} ` : ""}kiln push --server ${origin} --service shop cpu.pb.gz` },
            { name: "curl", command: `${curl} --data-binary @cpu.pb.gz ${to}` },
            { name: "From a Go program", command: `curl -s 'http://127.0.0.1:6060/debug/pprof/profile?seconds=10' |\n  ${curl} --data-binary @- ${to}` },
        ],
    };
}

const fetched: Way = {
    id: "scrape",
    title: "Let Kiln fetch",
    text: "Programs that serve /debug/pprof",
    variants: [{
        name: "kiln.yaml",
        command: `scrape:
  - job_name: shop
    scrape_interval: 15s
    static_configs:
      - targets: ["127.0.0.1:6060"]`,
        text: "In /etc/kiln/kiln.yaml, or the file of --config; then start the server again.",
    }],
};

function invented({ origin, tokens }: Server): Way {
    return {
        id: "invented",
        title: "Just looking",
        text: "An invented fleet, to try the page",
        variants: [{ name: "kiln loadgen", command: `${tokens ? `KILN_TOKEN=${NOBODY} ` : ""}kiln loadgen --server ${origin} --from -1h --profiles 2800`, text: "Status deletes its services again." }],
    };
}

export const waysTo = (server: Server): Way[] =>
    [thisHost(server), openTelemetry(server), pyroscope(server), files(server), fetched, invented(server)];

// What this server says of its own host.
export function hostWord(session: Session | null): { text: string; bad: boolean } | null {
    if (session?.host_profiler === "on") return { text: "This machine is profiled already: its first processes show up within ten seconds.", bad: false };
    if (session?.host_profiler === "failed") return { text: `This machine cannot be profiled: ${session.host_profiler_reason ?? "the log says why"}.`, bad: true };
    return null;
}

export const isLoopback = (hostname: string) => /^(localhost|127\.|\[?::1\]?$)/.test(hostname);

// The first service that was not there before, of what is there now.
export const arrived = (before: ReadonlySet<string>, now: { name: string }[]) => now.find(({ name }) => !before.has(name))?.name ?? null;
