/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/out/send.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

#define RETRY_NS         (KILN_NS_PER_S / 2)
#define RETRY_MAX_NS     (30 * KILN_NS_PER_S)
#define RETRY_AFTER_MOST (10 * 60 * KILN_NS_PER_S) /* longer, nobody means */

/* ---- where to ---- */

static const char *stated(const char *text)
{
    return text[0] ? text : NULL;
}

/* The settings have been made of variables and options already: they stand for OTEL_*. */
static char *variable(const char *name)
{
    static const char general[] = "OTEL_EXPORTER_OTLP_", own[] = "PROFILES_";
    const struct kiln_in_settings *s = &kiln_in_settings;
    bool is_own;

    name += sizeof(general) - 1;
    is_own = strncmp(name, own, sizeof(own) - 1) == 0;
    if (is_own)
        name += sizeof(own) - 1;
    if (strcmp(name, "ENDPOINT") == 0)
        return is_own == !s->endpoint_is_base ? (char *)(uintptr_t)stated(s->endpoint) : NULL;
    if (!is_own && strcmp(name, "PROTOCOL") == 0)
        return (char *)(uintptr_t)stated(s->protocol);
    if (!is_own && strcmp(name, "HEADERS") == 0)
        return (char *)(uintptr_t)stated(s->headers);
    if (!is_own && strcmp(name, "COMPRESSION") == 0)
        return (char *)(uintptr_t)stated(s->compression);
    if (!is_own && strcmp(name, "CERTIFICATE") == 0)
        return (char *)(uintptr_t)stated(s->certificate);
    if (strcmp(name, "CLIENT_CERTIFICATE") == 0 || strcmp(name, "CLIENT_KEY") == 0 ||
        strcmp(name, "INSECURE") == 0)
        return getenv(name - (is_own ? sizeof(own) - 1 : 0) - (sizeof(general) - 1));
    return NULL;
}

int kiln_in_sender_init(struct kiln_in_sender *sender, const char *address,
                        const _Atomic uint64_t *end_ns, struct kiln_err *err)
{
    const struct kiln_otlp_target_opts opts = {
        .endpoint = address,
        .timeout_ns = kiln_in_settings.timeout_ms * KILN_NS_PER_MS,
    };
    int r;

    *sender = (struct kiln_in_sender){.end_ns = end_ns, .noise = kiln_clock_mono_ns()};
    kiln_in_queue_init(&sender->queue, KILN_IN_QUEUE_BYTES);
    r = kiln_otlp_target_find(&opts, variable, &sender->target, err);
    kiln_in_caller_init(&sender->caller, &sender->target);
    if (r < 0)
        return r;
    if (sender->target.protocol == KILN_OTLP_HTTP_JSON) {
        kiln_in_say(true, "http/json is not spoken here: profiles go as http/protobuf");
        sender->target.protocol = KILN_OTLP_HTTP;
    }
    if (sender->target.compression == KILN_ZSTD)
        sender->target.compression = KILN_GZIP;
    return 0;
}

void kiln_in_sender_done(struct kiln_in_sender *sender)
{
    kiln_in_caller_done(&sender->caller);
    kiln_in_queue_done(&sender->queue);
    kiln_otlp_target_done(&sender->target);
}

/* ---- what becomes of a try ---- */

/* Between half of `ns` and all of it, so that many programs do not come back together. */
static uint64_t about(struct kiln_in_sender *sender, uint64_t ns)
{
    sender->noise = (sender->noise + kiln_clock_mono_ns()) * UINT64_C(0x9e3779b97f4a7c15) + 1;
    return ns / 2 + (uint64_t)((double)(ns / 2) * (double)(sender->noise >> 40) / (1 << 24));
}

static void put_off(struct kiln_in_sender *sender, uint32_t at_least_ms, const char *why)
{
    uint64_t wait = sender->away ? 2 * sender->wait_ns : RETRY_NS;
    uint64_t at_least = at_least_ms * KILN_NS_PER_MS;

    if (!sender->away)
        kiln_in_say(false, "the receiver of profiles %s is away: %s", sender->target.server, why);
    sender->away = true;
    sender->wait_ns = wait < RETRY_MAX_NS ? wait : RETRY_MAX_NS;
    wait = about(sender, sender->wait_ns);
    if (at_least > RETRY_AFTER_MOST)
        at_least = RETRY_AFTER_MOST;
    sender->told_ns = kiln_clock_mono_ns() + at_least;
    sender->next_ns = kiln_clock_mono_ns() + (wait > at_least ? wait : at_least);
    sender->counts.tries++;
}

static void came_back(struct kiln_in_sender *sender)
{
    if (sender->away)
        kiln_in_say(false, "the receiver of profiles %s is back", sender->target.server);
    sender->away = false;
    sender->next_ns = 0;
}

static void was_taken(struct kiln_in_sender *sender, const struct kiln_in_verdict *verdict)
{
    const struct kiln_export_result *result = &verdict->result;

    came_back(sender);
    sender->last_error = 0;
    sender->counts.requests++;
    sender->counts.bytes += sender->queue.first->len;
    sender->counts.rejected += result->rejected;
    if ((result->rejected || result->message[0]) && !sender->said_partial) {
        sender->said_partial = true;
        kiln_in_say(false, "%s did not take %llu profiles: %s", sender->target.server,
                    (unsigned long long)result->rejected, result->message);
    }
}

static void was_refused(struct kiln_in_sender *sender, const struct kiln_in_verdict *verdict)
{
    came_back(sender);
    sender->last_error = -EBADMSG;
    sender->counts.refused++;
    if (!sender->said_refused)
        kiln_in_say(true, "%s does not take profiles: %s", sender->target.server,
                    verdict->result.message);
    sender->said_refused = true;
}

/* True: the first in the queue is done with. */
static bool try_first(struct kiln_in_sender *sender)
{
    const struct kiln_in_deadline until = {
        .at_ns = kiln_clock_mono_ns() + sender->target.timeout_ms * KILN_NS_PER_MS,
        .end_ns = sender->end_ns,
    };
    struct kiln_str body = {sender->queue.first->body, sender->queue.first->len};
    struct kiln_in_verdict verdict;
    struct kiln_err err = {0};
    int r = kiln_in_call(&sender->caller, body, sender->target.compression == KILN_GZIP, &until,
                         &verdict, &err);

    if (r < 0) {
        sender->last_error = r;
        put_off(sender, 0, err.text);
        return false;
    }
    if (verdict.taken) {
        was_taken(sender, &verdict);
    } else if (verdict.retryable) {
        sender->last_error = -EAGAIN;
        put_off(sender, verdict.retry_after_ms, verdict.result.message);
        return false;
    } else {
        was_refused(sender, &verdict);
    }
    return true;
}

void kiln_in_sender_run(struct kiln_in_sender *sender, bool now)
{
    if (now)
        sender->next_ns = sender->told_ns;
    while (sender->queue.first && kiln_clock_mono_ns() >= sender->next_ns) {
        uint64_t end = atomic_load(sender->end_ns);

        if (end && kiln_clock_mono_ns() >= end)
            return;
        if (!try_first(sender))
            return;
        kiln_in_queue_drop(&sender->queue);
    }
}
