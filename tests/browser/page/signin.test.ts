// SPDX-License-Identifier: Apache-2.0
// A server with tokens: nobody sees anything before signing in, and a reader only reads.
import { plural } from "../../../web/src/model/format";
import { check, cpu, equal, world, type Tools, type View } from "./kit";

const { test } = world({ hours: 2, tokens: [{ token: "the-admins-secret", access: "admin" }, { token: "a-readers-secret", access: "read" }] });

async function signIn(view: View, token: string): Promise<void> {
    await view.page.getByLabel("Token").fill(token);
    await view.page.getByRole("button", { name: "Sign in" }).click();
    await view.settled();
}

const openUnknown = ({ open, last }: Tools) => open("/profiles", { service: "checkout", ...last(3600) }, { expects: [401] });

test("who is not known is asked for a token, and sees nothing else", async (tools) => {
    const view = await openUnknown(tools);
    await view.sees("This server wants a token");
    check("no service is named", !(await view.text()).includes("checkout"));
    await signIn(view, "a-guess");
    await view.sees("The server does not know this token.");
    await view.picture("signin");
});

test("a reader gets to where they wanted, with a cookie that no script can read", async (tools) => {
    const view = await openUnknown(tools);
    await signIn(view, "a-readers-secret");
    const { all } = await tools.ask<{ all: number }>("profiles", { query: cpu("checkout"), ...tools.last(3600) });
    await view.sees(new RegExp(`^${plural(all, "profile")}`));
    const [cookie] = await view.page.context().cookies();
    equal([cookie.name, cookie.httpOnly, cookie.sameSite], ["kiln_session", true, "Strict"]);
    const kept = await view.page.evaluate(() => document.cookie + JSON.stringify({ ...localStorage }) + JSON.stringify({ ...sessionStorage }));
    check("the token is kept nowhere", !(kept + cookie.value).includes("secret"), kept);
    await view.page.reload();
    await view.settled();
    await view.sees(new RegExp(`^${plural(all, "profile")}`));
    await view.page.getByRole("button", { name: "Who is signed in" }).click();
    await view.page.getByRole("menuitem", { name: "Sign out" }).click();
    await view.sees("This server wants a token");
});

test("a session that ended meanwhile is begun anew at the same place", async (tools) => {
    const view = await openUnknown(tools);
    await signIn(view, "a-readers-secret");
    await view.page.context().clearCookies();
    await view.page.getByRole("link", { name: "Explore" }).first().click();
    await view.sees("This server wants a token");
    await signIn(view, "a-readers-secret");
    await view.sees(/cores.*on average/);
    equal([view.path(), view.params().get("service")], ["/explore", "checkout"]);
});

test("a reader deletes nothing, and another site cannot use the admin's cookie", async (tools) => {
    const erase = (view: View, headers: Record<string, string>) => view.page.evaluate(async (said) => {
        const answer = await fetch("/api/v1/services/mailer", { method: "DELETE", headers: said });
        await answer.text();
        return answer.status;
    }, headers);
    const reader = await openUnknown(tools);
    reader.expects(403);
    await signIn(reader, "a-readers-secret");
    equal(await erase(reader, { "x-kiln-page": "1" }), 403, "a reader may not");
    const admin = await openUnknown(tools);
    admin.expects(403);
    await signIn(admin, "the-admins-secret");
    equal(await erase(admin, {}), 403, "what does not come from the page may not");
    const { services } = await tools.ask<{ services: { name: string }[] }>("services");
    check("it is still there", services.some(({ name }) => name === "mailer"));
    equal(await erase(admin, { "x-kiln-page": "1" }), 200, "the admin may");
});
