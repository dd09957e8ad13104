// SPDX-License-Identifier: Apache-2.0
// Asks for a token.  It goes to the server once; what the browser keeps is a cookie that no script
// can read.
import { useState } from "preact/hooks";
import type { ApiError } from "../api/client";
import { signIn } from "../state/session";
import { Brand } from "../ui/icons";
import { Note } from "../ui/kit";

export function SignIn() {
    const [token, setToken] = useState("");
    const [problem, setProblem] = useState<ApiError | null>(null);
    const [busy, setBusy] = useState(false);
    const submit = async (event: Event) => {
        event.preventDefault();
        setBusy(true);
        try {
            await signIn(token.trim());
        } catch (error) {
            setProblem(error as ApiError);
        }
        setBusy(false);
    };
    const refused = problem?.status === 401 ? "The server does not know this token." : problem?.message;
    return (
        <main class="empty signin">
            <Brand />
            <h1>Sign in</h1>
            <p>This server wants a token. Whoever runs it has one for you, in its configuration under tokens.</p>
            <form class="row" onSubmit={submit}>
                <label class="field grow">
                    <span class="hidden">Token</span>
                    <input
                        type="password"
                        name="token"
                        autocomplete="current-password"
                        placeholder="Token"
                        required
                        autofocus
                        value={token}
                        onInput={(event) => setToken(event.currentTarget.value)}
                    />
                </label>
                <button class="button main" disabled={busy || !token.trim()}>
                    Sign in
                </button>
            </form>
            {problem && <Note kind="bad">{refused}</Note>}
        </main>
    );
}
