// SPDX-License-Identifier: Apache-2.0
// Asks the server.  Every failure becomes an ApiError, whose message a person can read.

export type Params = Record<string, string | number | boolean | string[] | null | undefined>;

export class ApiError extends Error {
    constructor(
        readonly status: number, // 0: the server was not reached
        readonly code: string,
        message: string,
        readonly where = "",
    ) {
        super(message);
    }
}

export interface AskOptions {
    method?: "GET" | "POST" | "DELETE";
    params?: Params;
    json?: unknown;
    body?: BodyInit;
    signal?: AbortSignal;
}

// The path with its parameters; those that are null, undefined or "" are left out.
export function address(path: string, params: Params = {}): string {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(params)) {
        if (value === null || value === undefined || value === "") continue;
        for (const one of Array.isArray(value) ? value : [value]) query.append(name, String(one));
    }
    const text = query.toString();
    return text ? `${path}?${text}` : path;
}

async function errorOf(response: Response): Promise<ApiError> {
    const text = await response.text().catch(() => "");
    try {
        const { code, message, where } = JSON.parse(text).error;
        return new ApiError(response.status, code, message, where);
    } catch {
        const said = /^\s*</.test(text) ? "" : text.trim().slice(0, 300); // a proxy's page is not for reading
        return new ApiError(response.status, "error", said || `The server answered ${response.status}.`);
    }
}

const listeners = new Set<() => void>();

// Called whenever the server wants to know who asks.
export function onUnauthorized(listener: () => void): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
}

export async function request(path: string, options: AskOptions = {}): Promise<Response> {
    const { method = "GET", params, json, body, signal } = options;
    const headers: Record<string, string> = { "x-kiln-page": "1" };
    if (json !== undefined) headers["content-type"] = "application/json";
    let response: Response;
    try {
        response = await fetch(address(path, params), {
            method,
            headers,
            body: json !== undefined ? JSON.stringify(json) : body,
            signal,
        });
    } catch (error) {
        if ((error as Error).name === "AbortError") throw error;
        throw new ApiError(0, "unreachable", "The server does not answer. Is it still running?");
    }
    if (response.ok) return response;
    if (response.status === 401) listeners.forEach((listener) => listener());
    throw await errorOf(response);
}

export async function ask<T>(path: string, options: AskOptions = {}): Promise<T> {
    const response = await request(path, options);
    if (response.status === 204) return undefined as T;
    try {
        return (await response.json()) as T;
    } catch (error) {
        if ((error as Error).name === "AbortError") throw error;
        throw new ApiError(0, "cut", "The answer was cut off on its way.");
    }
}
