/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call, and what becomes of the request after it by the rules of OTLP: what may be tried again
 * is (429, 502, 503 and 504; of gRPC CANCELLED, DEADLINE_EXCEEDED, ABORTED, OUT_OF_RANGE,
 * UNAVAILABLE, DATA_LOSS, and RESOURCE_EXHAUSTED with RetryInfo), and so is whatever had no answer,
 * also for a wrong certificate: a person will mend that.  All other answers say that the receiver
 * will never want it.
 */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "pipeline/exporters/sender.h"

struct kiln_client_opts kiln_otlp_client_opts(const struct kiln_otlp_target *target,
                                              size_t answer_max)
{
    return (struct kiln_client_opts){
        .server = target->server,
        .ca_file = target->ca_file,
        .cert_file = target->cert_file,
        .key_file = target->key_file,
        .insecure = target->insecure,
        .checks_peer = target->checks_peer,
        .timeout_ms = target->timeout_ms,
        .answer_max = answer_max,
    };
}

struct kiln_call kiln_otlp_request(const struct kiln_otlp_target *target,
                                   const struct kiln_spooled *head, struct kiln_str body)
{
    return (struct kiln_call){
        .method = "POST",
        .path = target->path,
        .content_type = head->json ? "application/json" : "application/x-protobuf",
        .body = body,
        .encoding = head->compression,
        .headers = target->headers,
        .n_headers = target->n_headers,
    };
}

int kiln_otlp_call(const struct kiln_otlp_target *target, struct kiln_client *client,
                   const struct kiln_spooled *head, struct kiln_str body,
                   struct kiln_answer *answer, struct kiln_err *err)
{
    const struct kiln_call request = kiln_otlp_request(target, head, body);

    return target->protocol == KILN_OTLP_GRPC ? kiln_client_grpc(client, &request, answer, err)
                                              : kiln_client_call(client, &request, answer, err);
}

static bool is_success(const struct kiln_answer *answer)
{
    return answer->status >= 200 && answer->status < 300 && answer->rpc_code == 0;
}

static void judge_answer(enum kiln_otlp_protocol protocol, const struct kiln_answer *answer,
                         struct kiln_export_verdict *verdict)
{
    struct kiln_str body = kiln_buf_str(&answer->body);

    verdict->answered = true;
    if (is_success(answer)) {
        verdict->fate = KILN_EXPORT_SENT;
        if (protocol == KILN_OTLP_HTTP_JSON)
            kiln_otlp_answer_decode_json(body, &verdict->result);
        else
            kiln_otlp_answer_decode(body, &verdict->result);
        return;
    }
    verdict->fate = answer->retryable ? KILN_EXPORT_AGAIN : KILN_EXPORT_UNWANTED;
    verdict->retry_after_ns = answer->retry_after_ms * KILN_NS_PER_MS;
    if (protocol == KILN_OTLP_GRPC && answer->rpc_code)
        snprintf(verdict->reason, sizeof(verdict->reason), "gRPC status %d: %s", answer->rpc_code,
                 answer->message);
    else
        snprintf(verdict->reason, sizeof(verdict->reason), "HTTP status %d: %s", answer->status,
                 answer->message);
}

void kiln_export_judge(enum kiln_otlp_protocol protocol, int code, const struct kiln_answer *answer,
                       const struct kiln_err *err, struct kiln_export_verdict *ret_verdict)
{
    *ret_verdict = (struct kiln_export_verdict){0};
    if (code == 0) {
        judge_answer(protocol, answer, ret_verdict);
        return;
    }
    if (answer && answer->rpc_ok) { /* it has it, whatever it meant to say beside */
        ret_verdict->answered = true;
        ret_verdict->fate = KILN_EXPORT_SENT;
        snprintf(ret_verdict->result.message, sizeof(ret_verdict->result.message), "%s", err->text);
        return;
    }
    ret_verdict->answered = code == -ETIMEDOUT;
    /* An answer that is too long: of success, nobody says so much. */
    ret_verdict->fate = code == KILN_E_LIMIT ? KILN_EXPORT_UNWANTED : KILN_EXPORT_AGAIN;
    snprintf(ret_verdict->reason, sizeof(ret_verdict->reason), "%s", err->text);
}
