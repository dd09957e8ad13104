/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/json.h"
#include "pipeline/receivers/arrival.h"

#define BODY_MAX 4096u

static const char *code_word(enum kiln_rpc_code code)
{
    switch (code) {
#define X(number, name, word, connect, http)                                                       \
    case KILN_RPC_##name:                                                                          \
        return word;
        KILN_RPC_CODE_MAP(X)
#undef X
    }
    return "unknown";
}

void kiln_receivers_reply(struct kiln_request *request, const struct kiln_outcome *outcome)
{
    struct kiln_reply reply = {.status = 200};
    char text[KILN_OUTCOME_TEXT], seconds[16];
    struct kiln_rpc_status status;
    struct kiln_json_out w;
    struct kiln_buf body;

    kiln_buf_init(&body, BODY_MAX);
    if (outcome->code < 0) {
        status = kiln_outcome_status(outcome, text, sizeof(text));
        kiln_json_out_init(&w, &body, 0);
        kiln_json_put_object(&w);
        kiln_json_put_name(&w, "code");
        kiln_json_put_str(&w, kiln_str_of(status.http_status == 429 ? "resource_exhausted"
                                                                    : code_word(status.code)));
        kiln_json_put_name(&w, "message");
        kiln_json_put_str(&w, kiln_str_of(status.message));
        kiln_json_end_object(&w);
        reply.status = status.http_status;
        reply.content_type = "application/json";
        reply.body = kiln_buf_str(&body);
        if (status.retry_after_s) {
            snprintf(seconds, sizeof(seconds), "%u", status.retry_after_s);
            reply.headers[reply.n_headers++] =
                (struct kiln_header){KILN_STR("retry-after"), kiln_str_of(seconds)};
        }
    }
    kiln_request_reply(request, &reply);
    kiln_buf_done(&body);
}
