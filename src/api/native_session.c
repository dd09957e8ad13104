/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET, POST and DELETE /api/v1/session: who is asking and what they may do here; signing in with a
 * token, and out.  What a session is stands in pipeline/gate.h; here it becomes a cookie,
 *
 *   kiln_session=64 digits; HttpOnly; SameSite=Strict; Path=/; Max-Age=43200
 *
 * with Secure where the browser came over TLS, to us or to a proxy before us.
 */
#include <errno.h>
#include <stdio.h>

#include "api/native_body.h"
#include "pipeline/gate.h"

#define TOKEN_MAX 4096u

static void put_access(struct kiln_native_call *call, unsigned access)
{
    static const struct {
        enum kiln_access access;
        const char *word;
    } words[] = {{KILN_ACCESS_READ, "read"},
                 {KILN_ACCESS_WRITE, "write"},
                 {KILN_ACCESS_CONTROL, "control"},
                 {KILN_ACCESS_ADMIN, "admin"}};

    kiln_json_put_name(&call->w, "access");
    kiln_json_put_array(&call->w);
    for (size_t i = 0; i < KILN_ARRAY_LEN(words); i++)
        if (access >> words[i].access & 1)
            kiln_json_put_str(&call->w, kiln_str_of(words[i].word));
    kiln_json_end_array(&call->w);
}

/* Whether there is one is no secret; why it does not run may name this machine's. */
static void put_host(struct kiln_native_call *call, const struct kiln_caller *caller)
{
    const struct kiln_about *about = call->api->about;
    struct kiln_agent_status agent;
    const char *state = "off";
    const char *reason = "";

    if (about && about->host(about->context, &agent)) {
        state = agent.state == KILN_AGENT_FAILED ? "failed" : "on";
        reason = agent.state == KILN_AGENT_FAILED && caller->access ? agent.problem : "";
    }
    kiln_native_put_text(call, "host_profiler", kiln_str_of(state));
    kiln_native_put_said(call, "host_profiler_reason", reason);
}

static void put_orders(struct kiln_native_call *call, const struct kiln_caller *caller)
{
    enum kiln_order_limit limit = kiln_native_order_limit(call, caller);
    bool anonymous = !caller->tokens && !caller->trusted;

    kiln_native_put_text(call, "orders", kiln_str_of(kiln_order_limits[limit]));
    kiln_native_put_said(call, "orders_reason",
                         limit == KILN_ORDERS_ALL ? ""
                         : anonymous              ? KILN_NATIVE_ANONYMOUS_ORDERS
                                                  : "This token has no control access.");
}

static void put_session(struct kiln_native_call *call, const struct kiln_caller *caller)
{
    kiln_json_put_object(&call->w);
    kiln_native_put_text(call, "version", KILN_STR(KILN_VERSION));
    kiln_native_put_flag(call, "tokens", caller->tokens);
    kiln_native_put_flag(call, "signed_in", caller->signed_in);
    put_access(call, caller->access);
    kiln_native_put_said(call, "tenant", caller->tenant);
    kiln_native_put_flag(call, "multitenant", call->api->multitenant);
    put_host(call, caller);
    put_orders(call, caller);
    kiln_native_put_flag(call, "source", call->api->sources != NULL);
    kiln_native_put_time(call, "now", call->now_ns);
    kiln_json_end_object(&call->w);
    kiln_buf_putc(&call->body, '\n');
}

void kiln_native_caller(const struct kiln_native_call *call, struct kiln_caller *ret_caller)
{
    *ret_caller = (struct kiln_caller){0};
    if (call->api->gate)
        kiln_gate_caller(call->api->gate, call->request, ret_caller);
}

int kiln_native_run_session(struct kiln_native_call *call)
{
    struct kiln_caller caller;

    kiln_native_caller(call, &caller);
    put_session(call, &caller);
    return 0;
}

/* ---- cookies ---- */

static bool came_over_tls(const struct kiln_request *request)
{
    return request->peer.tls ||
           kiln_str_eq(kiln_request_header(request, "x-forwarded-proto"), KILN_STR("https"));
}

/* `id` "" takes the cookie away. */
static void set_cookie(struct kiln_native_call *call, const char *id)
{
    snprintf(call->cookie, sizeof(call->cookie),
             KILN_SESSION_COOKIE "=%s; HttpOnly; SameSite=Strict; Path=/; Max-Age=%d%s", id,
             id[0] ? KILN_SESSION_S : 0, came_over_tls(call->request) ? "; Secure" : "");
}

/* ---- in and out ---- */

static int read_member(struct kiln_native_body *body, struct kiln_str name, void *context)
{
    struct kiln_str *token = context;

    if (!kiln_str_eq(name, KILN_STR("token")))
        return kiln_native_body_unknown(body, name, "token");
    return kiln_native_body_text(body, TOKEN_MAX, token);
}

static int fail(struct kiln_native_call *call, int code)
{
    if (code == -EUSERS)
        return kiln_err_set(&call->err, code, NULL,
                            "there were too many wrong tokens from this address: wait");
    if (code == -EKEYREJECTED)
        return kiln_err_set(&call->err, code, "token", "this token is not known");
    if (code == -ENOENT)
        return kiln_err_set(&call->err, -EEXIST, NULL,
                            "this server has no tokens: whoever reaches it may do everything, and "
                            "there is nothing to sign in to");
    return kiln_err_set(&call->err, code, NULL, "%s", kiln_err_text(code));
}

int kiln_native_run_sign_in(struct kiln_native_call *call)
{
    char id[KILN_SESSION_TEXT + 1];
    struct kiln_str token = KILN_STR_NONE;
    struct kiln_caller caller;
    int r = kiln_native_body_read(call, read_member, &token);

    if (r < 0)
        return r;
    token = kiln_str_trim(token); /* what was copied with it */
    if (!token.len)
        return kiln_err_set(&call->err, -EBADMSG, "token", "a token belongs here");
    r = call->api->gate ? kiln_gate_sign_in(call->api->gate, call->request, token, id, &caller)
                        : -ENOENT;
    if (r == -EUSERS)
        call->retry_s = caller.wait_s;
    if (r < 0)
        return fail(call, r);
    snprintf(call->audited, sizeof(call->audited), "%s", caller.name);
    set_cookie(call, id);
    put_session(call, &caller);
    return 0;
}

int kiln_native_run_sign_out(struct kiln_native_call *call)
{
    if (call->api->gate)
        kiln_gate_sign_out(call->api->gate, call->request);
    set_cookie(call, "");
    call->status = 204;
    call->content_type = NULL;
    return 0;
}
