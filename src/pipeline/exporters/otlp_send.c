/* SPDX-License-Identifier: Apache-2.0 */
/* One try, and what it means for the next (judge.c). */
#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "pipeline/exporters/otlp_int.h"

#define ANSWER_MAX        ((size_t)1 << 20)
#define REQUEST_BYTES_MAX ((size_t)64 << 20)
#define RETRY_AFTER_MOST  (10 * 60 * KILN_NS_PER_S) /* longer, nobody means */

int kiln_export_open(struct kiln_exporter *x, struct kiln_err *err)
{
    struct kiln_client_opts opts = kiln_otlp_client_opts(&x->target, ANSWER_MAX);

    opts.cancel = &x->cancel;
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

static void note_success(struct kiln_exporter *x, const struct kiln_spooled *head, size_t bytes,
                         const struct kiln_export_result *said)
{
    kiln_metric_add(x->count.sent, 1);
    kiln_metric_add(x->count.sent_samples, (int64_t)head->samples);
    kiln_metric_add(x->count.sent_bytes, (int64_t)bytes);
    kiln_metric_add(x->count.rejected,
                    said->rejected > INT32_MAX ? INT32_MAX : (int64_t)said->rejected);
    if ((said->rejected || said->message[0]) && kiln_log_every(&x->said_partial, KILN_EXPORT_SAY_S))
        kiln_log(x->log, KILN_LOG_WARN, "the receiver did not take all profiles", "rejected",
                 "%llu", (unsigned long long)said->rejected, "reason", "%s", said->message, NULL);
}

static void follow(struct kiln_exporter *x, const struct kiln_spooled *head, size_t bytes,
                   const struct kiln_export_verdict *verdict)
{
    x->answered = verdict->answered;
    if (verdict->fate == KILN_EXPORT_AGAIN) {
        kiln_export_back_off(x, verdict->retry_after_ns, verdict->reason);
        return;
    }
    if (verdict->answered)
        came_back(x);
    if (verdict->fate == KILN_EXPORT_SENT) {
        note_success(x, head, bytes, &verdict->result);
    } else {
        kiln_metric_add(x->count.failed, 1);
        kiln_export_dropped(x, KILN_EXPORT_REFUSED, head, verdict->reason);
    }
}

static int call(struct kiln_exporter *x, const struct kiln_spooled *head, struct kiln_str body,
                struct kiln_export_verdict *verdict)
{
    struct kiln_err err = {0};
    int r = kiln_otlp_call(&x->target, x->client, head, body, &x->answer, &err);

    kiln_export_judge(x->target.protocol, r, &x->answer, &err, verdict);
    if (verdict->fate != KILN_EXPORT_AGAIN)
        x->takes_zstd = verdict->fate == KILN_EXPORT_SENT && x->answer.takes_zstd;
    return r;
}

/* Somebody else than said that he takes zstd answers now: the same as everybody takes it. */
static int call_with_gzip(struct kiln_exporter *x, const struct kiln_spooled *head,
                          struct kiln_str body, struct kiln_export_verdict *verdict)
{
    struct kiln_spooled as_gzip = *head;
    struct kiln_buf plain, packed;
    int r;

    as_gzip.compression = KILN_GZIP;
    kiln_buf_init(&plain, REQUEST_BYTES_MAX);
    kiln_buf_init(&packed, REQUEST_BYTES_MAX);
    r = kiln_decompress(KILN_ZSTD, body, &plain, NULL);
    if (r == 0)
        r = kiln_compress(KILN_GZIP, 0, kiln_buf_str(&plain), &packed);
    kiln_buf_done(&plain);
    if (r == 0)
        r = call(x, &as_gzip, kiln_buf_str(&packed), verdict);
    kiln_buf_done(&packed);
    return r;
}

/* JSON of an earlier run, and gRPC now. */
static enum kiln_export_fate try_as_protobuf(struct kiln_exporter *x,
                                             const struct kiln_spooled *head, struct kiln_str body)
{
    enum kiln_export_fate fate = KILN_EXPORT_AGAIN;
    struct kiln_spooled as_protobuf = *head;
    struct kiln_err err = {0};
    struct kiln_buf other;
    int r;

    as_protobuf.json = false;
    kiln_buf_init(&other, REQUEST_BYTES_MAX);
    r = kiln_export_from_json(head, body, &other, &err);
    if (r == 0) {
        fate = kiln_export_try(x, &as_protobuf, kiln_buf_str(&other));
    } else if (r != -ENOMEM) {
        kiln_export_dropped(x, KILN_EXPORT_REFUSED, head, err.text);
        fate = KILN_EXPORT_UNWANTED;
    }
    kiln_buf_done(&other);
    return fate;
}

enum kiln_export_fate kiln_export_try(struct kiln_exporter *x, const struct kiln_spooled *head,
                                      struct kiln_str body)
{
    uint64_t start = kiln_clock_mono_ns();
    struct kiln_export_verdict verdict;
    int r;

    if (head->json && x->target.protocol == KILN_OTLP_GRPC)
        return try_as_protobuf(x, head, body);
    if (x->away)
        kiln_metric_add(x->count.retried, 1);
    r = call(x, head, body, &verdict);
    if (verdict.fate == KILN_EXPORT_UNWANTED && head->compression == KILN_ZSTD &&
        !x->target.is_compression_said)
        r = call_with_gzip(x, head, body, &verdict);
    kiln_metric_observe(x->count.seconds, (double)(kiln_clock_mono_ns() - start) / 1e9);
    if (r == -ECANCELED) /* it is ending */
        return KILN_EXPORT_AGAIN;
    follow(x, head, body.len, &verdict);
    return verdict.fate;
}
