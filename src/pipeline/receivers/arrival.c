/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory a batch takes is known only once it is made.  An attempt gets room for its
 * content and a budget for its batch; an attempt that hits one of them is repeated with four times
 * as much of it, until the limits: content_max, and what the pool has at all.  Almost every request
 * is done at the first attempt, and a hostile one is done after a few.
 */
#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "pipeline/gate.h"
#include "pipeline/receivers/arrival.h"

#define CONTENT_MAX_DEFAULT ((size_t)64 << 20)
#define MEMORY_PER_BYTE     6u /* of content: real profiles need 3 to 5 while decoded */
#define MEMORY_MIN          ((size_t)256 << 10)
#define MEMORY_MAX          ((size_t)1 << 30)
#define GROWTH              4u
#define SPENT_MAX           4u /* times content_max: what one request may be uncompressed to */
#define WINDOW_MAX          ((size_t)32 << 20) /* of zstd: the most that exporters ask for */
#define PAUSE_NS            (2 * KILN_NS_PER_MS)
#define PATIENCE_NS         (5 * KILN_NS_PER_S) /* senders wait for about ten */
#define BODY_SLACK          ((size_t)64 << 10)  /* headers, and others like it */
#define WAITING_MAX         1024u
#define STORED_PER_BATCH    2u /* times: the batch until it is applied, and as the log has it */

/* ---- all receivers ---- */

static const char *const kinds[KILN_N_RECEIVERS] = {"otlp", "pyroscope", "pprof", "scrape"};

static void get_counters(struct kiln_receivers *r)
{
    static const char *const names[KILN_N_RECEIVER_COUNTS][2] = {
        {"kiln_receiver_requests_total", "Requests that receivers answered, by how they ended."},
        {"kiln_receiver_profiles_total", "Profiles in them."},
        {"kiln_receiver_samples_total", "Samples in those."},
        {"kiln_receiver_bytes_total", "Bytes of their bodies as received."},
    };

    for (int kind = 0; kind < KILN_N_RECEIVERS; kind++) {
        for (int outcome = 0; outcome < KILN_N_OUTCOMES; outcome++) {
            for (int i = 0; i < KILN_N_RECEIVER_COUNTS; i++)
                r->counts[kind][outcome][i] = kiln_metric_get(
                    r->opts.metrics, KILN_COUNTER, names[i][0], names[i][1],
                    KILN_LABELS("receiver", kinds[kind], "outcome", kiln_outcome_names[outcome]));
        }
    }
    r->silent = kiln_metric_get(r->opts.metrics, KILN_COUNTER, "kiln_receiver_silent_samples_total",
                                "Samples that had neither values nor timestamps.",
                                KILN_LABELS("receiver", kinds[KILN_RECEIVER_OTLP]));
}

/* The most a pool can ever give. */
static size_t pool_size(const struct kiln_pool *pool)
{
    size_t size = SIZE_MAX;

    for (; pool; pool = pool->parent)
        size = pool->limit < size ? pool->limit : size;
    return size;
}

static int start_admission(struct kiln_receivers *r)
{
    kiln_admission_init(&r->admission,
                        &(struct kiln_admission_opts){.pool = r->opts.pool,
                                                      .has_room = r->opts.has_room,
                                                      .context = r->opts.room_context,
                                                      .again = kiln_request_again,
                                                      .patience_ns = r->opts.patience_ns,
                                                      .max = WAITING_MAX,
                                                      .metrics = r->opts.metrics});
    return kiln_admission_start(&r->admission);
}

static bool has_admission(const struct kiln_receivers *receivers)
{
    return receivers->opts.patience_ns > 0;
}

int kiln_receivers_new(const struct kiln_receivers_opts *opts,
                       struct kiln_receivers **ret_receivers)
{
    struct kiln_receivers *r = kiln_calloc(1, sizeof(*r));
    int error;

    if (!r)
        return -ENOMEM;
    r->opts = *opts;
    if (!r->opts.content_max)
        r->opts.content_max = CONTENT_MAX_DEFAULT;
    r->memory_max = pool_size(opts->pool);
    if (r->memory_max > MEMORY_MAX)
        r->memory_max = MEMORY_MAX;
    get_counters(r);
    error = has_admission(r) ? start_admission(r) : 0;
    if (error < 0)
        kiln_receivers_free(r);
    else
        *ret_receivers = r;
    return error;
}

void kiln_receivers_stop(struct kiln_receivers *receivers)
{
    if (receivers && has_admission(receivers))
        kiln_admission_stop(&receivers->admission);
}

void kiln_receivers_free(struct kiln_receivers *receivers)
{
    if (receivers && has_admission(receivers))
        kiln_admission_done(&receivers->admission);
    kiln_free(receivers);
}

void kiln_receivers_count(struct kiln_receivers *receivers, enum kiln_receiver_kind kind, int code,
                          enum kiln_receiver_count what, uint64_t n)
{
    if (n)
        kiln_metric_add(receivers->counts[kind][kiln_outcome_kind(code)][what], (int64_t)n);
}

void kiln_receivers_answered(struct kiln_receivers *receivers, enum kiln_receiver_kind kind,
                             int code, const struct kiln_request *request)
{
    kiln_receivers_count(receivers, kind, code, KILN_COUNT_REQUESTS, 1);
    kiln_receivers_count(receivers, kind, code, KILN_COUNT_BYTES, request->body.len);
}

int kiln_receivers_enter(struct kiln_receivers *receivers, struct kiln_request *request,
                         struct kiln_err *err)
{
    int r = 0;

    if (has_admission(receivers) && !kiln_admission_may_try(&receivers->admission, request))
        return kiln_err_set(err, -EAGAIN, NULL,
                            "there is no memory for this request: earlier ones wait for it");
    if (receivers->opts.gate && !request->turn.charged)
        r = kiln_gate_charge(receivers->opts.gate, request);
    request->turn.charged = true;
    return r < 0 ? kiln_err_set(err, r, NULL, "the body is larger than this tenant may send") : 0;
}

bool kiln_receivers_wait(struct kiln_receivers *receivers, struct kiln_request *request,
                         struct kiln_lack lack)
{
    return has_admission(receivers) && kiln_admission_wait(&receivers->admission, request, lack);
}

/* ---- memory ---- */

/* The most this one can ever get: the body it came in is in the same pool. */
static size_t most(const struct kiln_arrival *a)
{
    return a->owner->memory_max > a->body_bytes ? a->owner->memory_max - a->body_bytes : 0;
}

/* Who gives memory back is an exporter, which needs none of our threads for it. */
static int take_or_wait(struct kiln_arrival *a, size_t bytes, size_t total)
{
    struct kiln_pool *pool = a->owner->opts.pool;
    uint64_t until_ns = 0, now_ns;
    struct timespec pause = {.tv_nsec = PAUSE_NS};

    if (kiln_pool_take(pool, bytes) == 0)
        return 0;
    while (a->owner->opts.waits && total <= most(a)) {
        now_ns = kiln_clock_mono_ns();
        until_ns = until_ns ? until_ns : now_ns + PATIENCE_NS;
        if (now_ns >= until_ns)
            break;
        nanosleep(&pause, NULL);
        if (kiln_pool_has(pool, bytes) && kiln_pool_take(pool, bytes) == 0)
            return 0;
    }
    return KILN_E_LIMIT;
}

int kiln_arrival_grant(struct kiln_arrival *a, size_t total, struct kiln_err *err)
{
    if (total <= a->granted)
        return 0;
    if (total > a->needs.memory)
        a->needs.memory = total;
    if (a->owner->opts.pool && take_or_wait(a, total - a->granted, total) < 0) {
        if (total > most(a))
            return kiln_err_set(err, KILN_E_LIMIT, NULL,
                                "this takes %zu MiB of memory, and there are %zu MiB in all",
                                total >> 20, most(a) >> 20);
        return kiln_err_set(err, -EAGAIN, NULL, "there is no memory for this request just now");
    }
    a->granted = total;
    return 0;
}

static void give_back(struct kiln_arrival *a, size_t total)
{
    if (a->granted <= total)
        return;
    if (a->owner->opts.pool)
        kiln_pool_give(a->owner->opts.pool, a->granted - total);
    a->granted = total;
}

/* ---- content ---- */

static size_t at_most(size_t n, size_t max)
{
    return n < max ? n : max;
}

/* How much room the content gets at first. */
static size_t first_room(const struct kiln_arrival *a, enum kiln_compression compression,
                         struct kiln_str data)
{
    size_t hint = kiln_decompressed_hint(compression, data);

    return hint < a->owner->opts.content_max
               ? at_most(hint + KILN_DECOMPRESS_SLACK, a->owner->opts.content_max)
               : a->owner->opts.content_max;
}

static int too_large(const struct kiln_arrival *a, struct kiln_err *err)
{
    return kiln_err_set(err, KILN_E_LIMIT, NULL,
                        "the content is larger than %zu MiB when uncompressed",
                        a->owner->opts.content_max >> 20);
}

/* What uncompressing takes beside the content. */
static int get_window(enum kiln_compression compression, struct kiln_str data, size_t *ret_window,
                      struct kiln_err *err)
{
    size_t window = kiln_decompress_window(compression, data);

    if (window > WINDOW_MAX)
        return kiln_err_set(err, KILN_E_LIMIT, NULL,
                            "the zstd window is %zu MiB, and may be %zu MiB: compress with a "
                            "smaller window (no --long, no --ultra)",
                            window >> 20, WINDOW_MAX >> 20);
    *ret_window = window;
    return 0;
}

static int uncompress(enum kiln_compression compression, struct kiln_str data, size_t room,
                      struct kiln_buf *out, struct kiln_err *err)
{
    struct kiln_err why = {0};
    int r;

    kiln_buf_init(out, room);
    r = kiln_decompress(compression, data, out, &why);
    if (r < 0)
        kiln_buf_done(out);
    if (r < 0 && r != KILN_E_LIMIT)
        kiln_err_set(err, r, NULL, "%s", why.text[0] ? why.text : kiln_err_text(r));
    return r;
}

int kiln_arrival_content(struct kiln_arrival *a, enum kiln_compression compression,
                         struct kiln_str data, struct kiln_buf *out, struct kiln_err *err)
{
    size_t room = first_room(a, compression, data), window;
    int r = get_window(compression, data, &window, err);

    kiln_buf_init(out, 0);
    if (r < 0)
        return r;
    for (;; room = at_most(room * GROWTH, a->owner->opts.content_max)) {
        r = kiln_arrival_grant(a, a->held + room + window, err);
        if (r == 0)
            r = uncompress(compression, data, room, out, err);
        if (r != KILN_E_LIMIT || room >= a->owner->opts.content_max)
            break;
    }
    if (r < 0)
        kiln_buf_init(out, 0);
    else
        a->held += out->cap;
    return r == KILN_E_LIMIT ? too_large(a, err) : r;
}

void kiln_arrival_release(struct kiln_arrival *a)
{
    a->held = 0;
    give_back(a, 0);
}

/* ---- the batch ---- */

static int decode(struct kiln_arrival *a, const struct kiln_source *source,
                  struct kiln_buf *content, size_t memory, struct kiln_err *err)
{
    struct kiln_limits limits = kiln_limits_default;
    struct kiln_str text = kiln_buf_str(content);
    struct kiln_builder *b;
    char *bytes;
    size_t len;
    int r;

    limits.memory_bytes = memory;
    r = kiln_builder_new(&limits, &b);
    if (r < 0)
        return r;
    if (source->keeps) {
        kiln_buf_take(content, &bytes, &len);
        kiln_builder_adopt(b, bytes, len);
    }
    r = kiln_builder_error(b);
    if (r == 0)
        r = source->decode(source->context, text, b, err);
    if (r == 0)
        return kiln_builder_finish(b, &a->delivery.batch, err);
    kiln_builder_free(b);
    return r;
}

/* A request of small parts that each grow large would take a worker for minutes. */
static int check_spent(const struct kiln_arrival *a, struct kiln_err *err)
{
    uint64_t most_spent = (uint64_t)a->owner->opts.content_max * SPENT_MAX;

    if (!a->spent || *a->spent < most_spent)
        return 0;
    return kiln_err_set(err, KILN_E_LIMIT, NULL,
                        "all in one request are larger than %llu MiB when uncompressed",
                        (unsigned long long)(most_spent >> 20));
}

/* One attempt; *ret_decoding tells which of the two was not enough. */
static int attempt(struct kiln_arrival *a, const struct kiln_source *source, size_t room,
                   size_t memory, bool *ret_decoding, struct kiln_err *err)
{
    struct kiln_buf content;
    size_t window;
    int r = get_window(source->compression, source->data, &window, err);

    *ret_decoding = false;
    if (r == 0) /* the window is free again when decoding begins */
        r = kiln_arrival_grant(a, a->held + room + (memory > window ? memory : window), err);
    if (r == 0)
        r = check_spent(a, err);
    if (r < 0)
        return r;
    r = uncompress(source->compression, source->data, room, &content, err);
    if (a->spent && source->compression != KILN_PLAIN)
        *a->spent += r < 0 ? room : content.len;
    if (r < 0)
        return r;
    *ret_decoding = true;
    r = decode(a, source, &content, memory, err);
    kiln_buf_done(&content);
    return r;
}

/* What a batch may get beside the room for its content. */
static size_t memory_max(const struct kiln_arrival *a, size_t room)
{
    size_t all = most(a), other = room + a->held;

    return all > other + MEMORY_MIN ? all - other : MEMORY_MIN;
}

static size_t first_memory(const struct kiln_arrival *a, size_t room)
{
    size_t memory = room * MEMORY_PER_BYTE;

    return at_most(memory < MEMORY_MIN ? MEMORY_MIN : memory, memory_max(a, room));
}

int kiln_arrival_take(struct kiln_arrival *a, const struct kiln_source *source,
                      struct kiln_err *err)
{
    size_t content_max = a->owner->opts.content_max;
    size_t room = first_room(a, source->compression, source->data), memory = first_memory(a, room);
    struct kiln_err why = {0};
    bool decoding;
    int r;

    for (;;) {
        r = attempt(a, source, room, memory, &decoding, &why);
        if (r != KILN_E_LIMIT ||
            (decoding ? memory >= memory_max(a, room) : room >= content_max || why.text[0]))
            break;
        if (decoding) {
            memory = at_most(memory * GROWTH, memory_max(a, room));
        } else {
            room = at_most(room * GROWTH, content_max);
            memory = first_memory(a, room);
        }
        why = (struct kiln_err){0};
    }
    if (r == KILN_E_LIMIT && !decoding && !why.text[0])
        return too_large(a, err);
    if (r < 0)
        return kiln_err_set(err, r, why.where[0] ? why.where : NULL, "%s",
                            why.text[0] ? why.text : kiln_err_text(r));
    a->n_profiles = a->delivery.batch->n_profiles;
    a->n_samples = a->delivery.batch->n_samples;
    give_back(a, kiln_batch_bytes(a->delivery.batch));
    return 0;
}

void kiln_arrival_keep(struct kiln_arrival *a, const struct kiln_recipe *recipe,
                       struct kiln_str body, enum kiln_compression compression)
{
    kiln_buf_init(&a->recipe, KILN_RECIPE_MAX);
    if (kiln_recipe_encode(recipe, &a->recipe) < 0 || a->recipe.len == 0)
        return;
    a->delivery.recipe = kiln_buf_str(&a->recipe);
    a->delivery.body = body;
    a->delivery.body_compression = compression;
}

/* ---- coming and going ---- */

void kiln_arrival_init(struct kiln_arrival *a, struct kiln_receivers *receivers,
                       enum kiln_receiver_kind kind, const struct kiln_request *request)
{
    *a = (struct kiln_arrival){
        .delivery = {.tenant = request->tenant[0] ? request->tenant : "anonymous",
                     .remote = {.headers = request->headers,
                                .n_headers =
                                    receivers->opts.include_metadata ? request->n_headers : 0,
                                .address = request->peer.address,
                                .authorization = receivers->opts.authenticated
                                                     ? kiln_request_header(request, "authorization")
                                                     : KILN_STR_NONE},
                     .received_ns = request->received_ns},
        .owner = receivers,
        .next = receivers->opts.next,
        .kind = kind,
        .body_bytes = 2 * request->body.len + BODY_SLACK,
    };
}

/* False: it will be tried again. */
static bool is_final(struct kiln_arrival *a, const struct kiln_outcome *outcome)
{
    return outcome->code != -EAGAIN || !a->waits ||
           !kiln_receivers_wait(a->owner, a->waits, a->needs);
}

static void count(struct kiln_arrival *a, const struct kiln_outcome *outcome)
{
    uint64_t rejected = outcome->code == 0 ? (uint64_t)outcome->rejected : 0;

    rejected = rejected < a->n_profiles ? rejected : a->n_profiles;
    kiln_receivers_count(a->owner, a->kind, outcome->code, KILN_COUNT_PROFILES,
                         a->n_profiles - rejected);
    kiln_receivers_count(a->owner, a->kind, KILN_E_MALFORMED, KILN_COUNT_PROFILES,
                         rejected + a->delivery.rejected);
    kiln_receivers_count(a->owner, a->kind,
                         a->n_profiles && rejected == a->n_profiles ? KILN_E_MALFORMED
                                                                    : outcome->code,
                         KILN_COUNT_SAMPLES, a->n_samples);
}

static void end(struct kiln_delivery *delivery, const struct kiln_outcome *outcome)
{
    struct kiln_arrival *a = (struct kiln_arrival *)delivery;
    bool final = is_final(a, outcome);

    if (final)
        count(a, outcome);
    kiln_buf_done(&a->recipe);
    a->finish(a, final ? outcome : NULL);
}

void kiln_arrival_send(struct kiln_arrival *a)
{
    if (a->delivery.batch)
        a->needs.store = STORED_PER_BATCH * kiln_batch_bytes(a->delivery.batch);
    a->delivery.pool = a->owner->opts.pool;
    a->delivery.charged = a->granted;
    a->granted = 0;
    a->delivery.done = end;
    kiln_hand_on(a->next, &a->delivery);
}

void kiln_arrival_refuse(struct kiln_arrival *a, int code, const struct kiln_err *err)
{
    struct kiln_outcome outcome = {.code = code};

    if (err)
        outcome.err = *err;
    kiln_batch_unref(a->delivery.batch);
    a->delivery.batch = NULL;
    give_back(a, 0);
    end(&a->delivery, &outcome);
}
