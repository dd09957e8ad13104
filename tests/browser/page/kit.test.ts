// SPDX-License-Identifier: Apache-2.0
// The kit itself: nothing that is wrong with a page escapes it.
import { check, equal, number, world } from "./kit";

const { test } = world({ fill: false });

test("what the console says, exceptions, other servers and missing files are complained of", async ({ open, server }) => {
    const view = await open("/status");
    await view.page.evaluate(async (url) => {
        console.error("first");
        console.warn("second");
        console.log("nobody minds");
        setTimeout(() => { throw new Error("third"); });
        await (await fetch(`${url}/api/v1/no-such-thing`)).text();
        await fetch("http://127.0.0.2:1/").catch(() => null);
    }, server.url);
    await view.settled();
    const complaints = view.complaints.splice(0).join("\n");
    for (const part of ["console: first", "console: second", "exception: third", "404 for", "127.0.0.2:1"])
        check(`${part} is complained of`, complaints.includes(part), complaints);
    check("but nothing else", !complaints.includes("nobody minds"), complaints);
});

test("a page wider than its window is complained of", async ({ open }) => {
    const view = await open("/status");
    await view.page.evaluate(() => void (document.getElementById("app")!.style.width = "2000px"));
    await view.measure();
    check("it is", /720 px wider/.test(view.complaints.join()), view.complaints);
    await view.page.reload();
    view.complaints.splice(0);
});

test("numbers are read as people write them", async () => {
    equal(["18 412 samples", "−9.1 %", "3.42 → 2.44", "a 0.5"].map(number), [18412, -9.1, 3.42, 0.5]);
});
