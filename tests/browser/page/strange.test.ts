// SPDX-License-Identifier: Apache-2.0
// Texts that a stranger chose, in every place that has one: none may run, none may break a view, its width, its
// address or a look-up.
import { check, cpu, equal, HEAP, PHONE, WIDE, world, type Params, type View } from "./kit";
import { cpuOf, send, type Frame, type Sent } from "./sender";

const MARKUP = `<img src=x onerror="globalThis.ran=1"><script>globalThis.ran=1</script>`;
const TEXTS = [
    MARKUP, `<svg onload='globalThis.ran=1'>`, `"'\\\\"\``, "{a;b}", "two\nlines\r\n", "\u202egnp.exe", "zero\u200bwidth\u2060", "👩‍👩‍👧‍👦 🔥", "123", "-0", "1e400",
    "__proto__", "constructor", "toString", "hasOwnProperty", "%3Cscript%3E", "a+b%20c&d=e#f?g", "null", "undefined", "NaN", " ", "\t", "x".repeat(65000),
    "ab ".repeat(3000), "javascript:globalThis.ran=1", "${globalThis.ran=1}", "{{globalThis.ran=1}}", "(a+)+$", "*", "[", "/", "//evil.example/x", "../../etc/passwd",
];
const VIEWS = ["/", "/explore", "/compare", "/labels", "/memory", "/waiting", "/spans", "/profiles", "/status", "/symptoms", "/start"];
const LONG = "x".repeat(1000);
const SERVICES = [MARKUP, "__proto__", `a"b\\c{d};e,f`, "%41+b&c=d#e", "\u202eevas\n🔥", LONG];

const { test, tools } = world({ fill: false });

const frame = (text: string, i: number): Frame => ({ name: text, file: TEXTS[(i + 1) % TEXTS.length], module: TEXTS[(i + 2) % TEXTS.length], kind: TEXTS[(i + 3) % TEXTS.length], line: i });

let filled = false;
async function fill(now: number): Promise<void> {
    if (filled) return;
    filled = true;
    const all: Sent[] = [];
    for (const [n, service] of SERVICES.entries()) {
        const samples = TEXTS.map((text, i) => ({
            stack: ["main", frame(text, i), frame(TEXTS[(i + n) % TEXTS.length], i)], value: 1e7 * (i + 1),
            labels: [["thread.name", text], [text.slice(0, 200) || "empty", text]] as [string, string][],
        }));
        const labels: [string, string][] = [["service.version", TEXTS[n]], ["host.name", TEXTS[n + 1]], ["k8s/pod name", TEXTS[n]], ["constructor", TEXTS[n + 3]]];
        for (const ago of [3000, 1500, 30]) all.push(cpuOf(service, now - ago, samples, labels));
        all.push({ labels: [["service.name", service], ...labels], type: "inuse_space", unit: "bytes", period: ["space", "bytes", 524288], at: now - 30, samples });
        all.push({ labels: [["service.name", service], ...labels], type: "off_cpu", unit: "nanoseconds", at: now - 30, samples });
    }
    for (const sent of all) await send(tools.server.url, [sent]);
}

const unharmed = async (view: View) => check("nothing of a text was run", await view.page.evaluate(() => !("ran" in globalThis) && !document.querySelector("#app script, #app img[src=x]")));

// What sticks out most, for who has to find it.
const widest = (view: View) => view.page.evaluate(() => {
    const all = [...document.querySelectorAll("#app *")].map((one) => [one.getBoundingClientRect().right, one] as const);
    const [right, one] = all.sort((a, b) => b[0] - a[0])[0];
    return `${right} ${[one, one.parentElement, one.parentElement?.parentElement].map((each) => each?.outerHTML.slice(0, 120)).join(" in ")}`;
});

async function look(open: (path: string, params?: Params, options?: object) => Promise<View>, path: string, params: Params, options = {}): Promise<View> {
    const view = await open(path, params, options);
    check(`${path} has something to say`, (await view.text()).length > 40);
    check(`${path} is drawn`, !/This view failed/.test(await view.text()), await view.text());
    await unharmed(view);
    const wider = await view.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    check(`${path} is not wider than its window`, wider <= 0, `${wider} px of ${(await view.page.url()).slice(0, 200)}: ${await widest(view)}`);
    return view;
}

for (const [i, width] of [WIDE, PHONE].entries())
    test(`every view stands the texts, at ${width} px`, async ({ open, now }) => {
        await fill(now);
        for (const [n, path] of VIEWS.entries()) {
            const service = i ? SERVICES[n % SERVICES.length] : LONG;
            const view = await look(open, path, { service }, { width, theme: i ? "dark" : "light" });
            await view.picture(`strange${path.replace("/", "-")}`);
            await view.page.goto("about:blank");
        }
    });

test("every form of a profile stands them", async ({ open, now }) => {
    await fill(now);
    const view = await look(open, "/explore", { service: MARKUP });
    for (const show of ["sandwich", "tree", "graph", "time", "table"]) {
        await view.page.goto(view.server.url + `/explore?${new URLSearchParams({ service: MARKUP, show, fn: MARKUP })}`);
        await view.settled();
        check(`${show} is drawn`, !/This view failed/.test(await view.text()));
        await unharmed(view);
    }
    for (const group of ["module", "package", "label:constructor", "label:k8s/pod name", "label:__proto__"]) {
        await view.page.goto(view.server.url + `/explore?${new URLSearchParams({ service: MARKUP, group })}`);
        await view.settled();
        check(`by ${group} it is drawn`, !/This view failed/.test(await view.text()));
    }
    await unharmed(view);
});

test("an address brings each service back, whatever it is called", async ({ open, ask, now }) => {
    await fill(now);
    const { services } = await ask<{ services: { name: string }[] }>("services");
    equal(services.map(({ name }) => name).sort(), [...SERVICES].sort());
    const view = await look(open, "/", {});
    for (const { name } of services) {
        const there = await look(open, "/explore", { service: name, fn: "main" });
        equal(there.params().get("service"), name);
        const wanted = await ask<{ basis: { profiles: number } }>("query", { query: cpu(name.replace(/[\\"]/g, "\\$&").replace(/\n/g, "\\n")), from: "now-2h" });
        check("the API has it", wanted.basis.profiles > 0);
        await there.sees(/cores.*on average/);
        await there.page.goto("about:blank");
    }
    await unharmed(view);
});

test("labels with any name narrow a profile and break it down", async ({ open, now }) => {
    await fill(now);
    for (const by of ["constructor", "k8s/pod name", "__proto__"]) {
        const view = await look(open, "/labels", { service: "__proto__", by });
        check("values have texts", !/\[object|function Object/.test(await view.text()), await view.text());
    }
    const view = await look(open, "/explore", { where: `"k8s/pod name"=${JSON.stringify(TEXTS[1])}` });
    await view.sees(/cores.*on average/);
});

test("a name of many lines can be hidden, found and looked at alone", async ({ open, now }) => {
    await fill(now);
    const view = await look(open, "/explore", { service: "__proto__", fn: "two\nlines\r\n", show: "sandwich" });
    await view.page.keyboard.press("h");
    await view.settled();
    check("it is hidden by one filter", view.params().get("hide")?.split("\n").length === 1, view.params().get("hide"));
    const again = await view.again();
    check("the address brings it back", !/This view failed/.test(await again.text()));
});

test("memory in a store of strangers is drawn too", async ({ open, now }) => {
    await fill(now);
    const view = await look(open, "/explore", { service: SERVICES[2], type: HEAP });
    await unharmed(view);
});
