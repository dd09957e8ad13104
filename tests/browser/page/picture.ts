// SPDX-License-Identifier: Apache-2.0
// usage: picture.ts DIR
// Draws the pictures of the documents into DIR: views of the invented shop.
import { join } from "node:path";
import { Stage, type Params, type Theme } from "./kit";

const out = process.argv[2];
const stage = new Stage();

async function draw(name: string, theme: Theme, path: string, params: Params = {}): Promise<void> {
    const view = await stage.tools.open(path, params, { theme, height: 800 });
    await view.page.screenshot({ path: join(out, `${name}.png`) });
}

await stage.start();
try {
    const lately = stage.tools.last(110 * 60);
    await draw("overview", "light", "/", { from: "now-24h" });
    await draw("page", "light", "/explore", { service: "checkout", fn: "loadRules", ...lately });
    await draw("page-dark", "dark", "/explore", { service: "checkout", fn: "loadRules", ...lately });
    await draw("compare", "light", "/compare", { service: "checkout", ...lately });
    for (const complaint of await stage.clear()) console.error(complaint);
} finally {
    await stage.stop();
}
