/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One try, and what becomes of a request after it, by the rules of OTLP: what may be tried again
 * is (429, 502, 503 and 504; of gRPC CANCELLED, DEADLINE_EXCEEDED, ABORTED, OUT_OF_RANGE,
 * UNAVAILABLE, DATA_LOSS, and RESOURCE_EXHAUSTED with RetryInfo), and so is whatever had no answer,
 * also for a wrong certificate: a person will mend that.  All other answers say that the receiver
 * will never want it.
 */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "codec/otlp_answer.h"
#include "pipeline/exporters/otlp_int.h"

#define ANSWER_MAX       ((size_t)1 << 20)
#define RETRY_AFTER_MOST (10 * 60 * KILN_NS_PER_S) /* longer, nobody means */

int kiln_export_open(struct kiln_exporter *x, struct kiln_err *err)
{
    const struct kiln_otlp_target *target = &x->target;
    struct kiln_client_opts opts = {
        .server = target->server,
        .ca_file = target->ca_file,
        .cert_file = target->cert_file,
        .key_file = target->key_file,
        .insecure = target->insecure,
        .timeout_ms = target->timeout_ms,
        .answer_max = ANSWER_MAX,
        .cancel = &x->cancel,
    };

    return kiln_client_new(&opts, &x->client, err);
}

/* Between half of `ns` and all of it, so that many agents do not come back together. */
static uint64_t about(struct kiln_exporter *x, uint64_t ns)
{
    x->noise = (x->noise + kiln_clock_mono_ns()) * UINT64_C(0x9e3779b97f4a7c15) + 1;
    return ns / 2 + (uint64_t)((double)(ns / 2) * (double)(x->noise >> 40) / (1 << 24));
}

void kiln_export_back_off(struct kiln_exporter *x, uint64_t at_least_ns, const char *reason)
{
    uint64_t now = kiln_clock_mono_ns();
    uint64_t wait = x->away ? 2 * x->wait_ns : x->retry_ns;

    if (!x->away) {
        x->away_since_ns = now;
        kiln_log(x->log, KILN_LOG_WARN, "the receiver of profiles is away", "endpoint", "%s",
                 x->target.server, "reason", "%s", reason, NULL);
    }
    x->away = true;
    x->wait_ns = wait < x->retry_max_ns ? wait : x->retry_max_ns;
    wait = about(x, x->wait_ns);
    if (at_least_ns > RETRY_AFTER_MOST)
        at_least_ns = RETRY_AFTER_MOST;
    x->next_ns = now + (wait > at_least_ns ? wait : at_least_ns);
    kiln_metric_add(x->count.failed, 1);
    kiln_metric_set(x->count.up, 0);
}

static void came_back(struct kiln_exporter *x)
{
    if (x->away)
        kiln_log(x->log, KILN_LOG_INFO, "the receiver of profiles is back", "endpoint", "%s",
                 x->target.server, "after_s", "%.1f",
                 (double)(kiln_clock_mono_ns() - x->away_since_ns) / 1e9, "spooled", "%u",
                 x->spool ? kiln_spool_files(x->spool) : 0, NULL);
    x->away = false;
    x->at = 0;
    x->next_ns = 0;
    kiln_metric_set(x->count.up, 1);
}

static void read_success(struct kiln_exporter *x)
{
    struct kiln_str body = kiln_buf_str(&x->answer.body);
    struct kiln_export_result said;

    if (x->target.protocol == KILN_OTLP_HTTP_JSON)
        kiln_otlp_answer_decode_json(body, &said);
    else
        kiln_otlp_answer_decode(body, &said);
    kiln_metric_add(x->count.rejected,
                    said.rejected > INT32_MAX ? INT32_MAX : (int64_t)said.rejected);
    if ((said.rejected || said.message[0]) && kiln_log_every(&x->said_partial, KILN_EXPORT_SAY_S))
        kiln_log(x->log, KILN_LOG_WARN, "the receiver did not take all profiles", "rejected",
                 "%llu", (unsigned long long)said.rejected, "reason", "%s", said.message, NULL);
}

static int call(struct kiln_exporter *x, const struct kiln_spooled *head, struct kiln_str body,
                struct kiln_err *err)
{
    const struct kiln_call request = {
        .method = "POST",
        .path = x->target.path,
        .content_type = head->json ? "application/json" : "application/x-protobuf",
        .body = body,
        .encoding = head->compression,
        .headers = x->target.headers,
        .n_headers = x->target.n_headers,
    };

    return x->target.protocol == KILN_OTLP_GRPC
               ? kiln_client_grpc(x->client, &request, &x->answer, err)
               : kiln_client_call(x->client, &request, &x->answer, err);
}

static bool is_success(const struct kiln_answer *answer)
{
    return answer->status >= 200 && answer->status < 300 && answer->rpc_code == 0;
}

static enum kiln_export_fate read_answer(struct kiln_exporter *x, const struct kiln_spooled *head,
                                         size_t bytes)
{
    const struct kiln_answer *answer = &x->answer;
    char reason[320];

    x->answered = true;
    if (is_success(answer)) {
        came_back(x);
        read_success(x);
        kiln_metric_add(x->count.sent, 1);
        kiln_metric_add(x->count.sent_samples, (int64_t)head->samples);
        kiln_metric_add(x->count.sent_bytes, (int64_t)bytes);
        return KILN_EXPORT_SENT;
    }
    if (x->target.protocol == KILN_OTLP_GRPC && answer->rpc_code)
        snprintf(reason, sizeof(reason), "gRPC status %d: %s", answer->rpc_code, answer->message);
    else
        snprintf(reason, sizeof(reason), "HTTP status %d: %s", answer->status, answer->message);
    if (answer->retryable) {
        kiln_export_back_off(x, answer->retry_after_ms * KILN_NS_PER_MS, reason);
        return KILN_EXPORT_AGAIN;
    }
    came_back(x);
    kiln_metric_add(x->count.failed, 1);
    kiln_export_dropped(x, KILN_EXPORT_REFUSED, head, reason);
    return KILN_EXPORT_UNWANTED;
}

enum kiln_export_fate kiln_export_try(struct kiln_exporter *x, const struct kiln_spooled *head,
                                      struct kiln_str body)
{
    uint64_t start = kiln_clock_mono_ns();
    struct kiln_err err = {0};
    int r;

    if (head->json && x->target.protocol == KILN_OTLP_GRPC) {
        kiln_export_dropped(x, KILN_EXPORT_REFUSED, head, "JSON of an earlier run, and gRPC now");
        return KILN_EXPORT_UNWANTED;
    }
    if (x->away)
        kiln_metric_add(x->count.retried, 1);
    r = call(x, head, body, &err);
    kiln_metric_observe(x->count.seconds, (double)(kiln_clock_mono_ns() - start) / 1e9);
    if (r == 0)
        return read_answer(x, head, body.len);
    if (r == -ECANCELED) /* it is ending */
        return KILN_EXPORT_AGAIN;
    x->answered = r == -ETIMEDOUT;
    if (r == KILN_E_LIMIT) { /* of an answer of success, nobody says so much */
        kiln_export_dropped(x, KILN_EXPORT_REFUSED, head, err.text);
        return KILN_EXPORT_UNWANTED;
    }
    kiln_export_back_off(x, 0, err.text);
    return KILN_EXPORT_AGAIN;
}
