/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is kept is answered at once; the rest goes to the child, 512 addresses at a time.
 *
 * A file that takes too long is set aside for an hour.  One on which the child died, or stood
 * still, is asked for once more, with a new child: somebody else may have ended or stopped it; then
 * it is set aside too.  Children are not started faster than one in two seconds, after the first
 * few.
 */
#include "symbol/resolver.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/metric.h"
#include "symbol/clean.h"
#include "symbol/resolver_int.h"

enum {
    CACHE_DEFAULT = 24 << 20,
    CACHE_LEAST = 1 << 20,
    CHILD_DEFAULT = 256 << 20,
    CPU_MS_DEFAULT = 2000,
    WALL_FACTOR = 5, /* of the CPU time: the machine may be busy; at least: */
    WALL_MS_LEAST = 2000,
    SUSPECTS = 1024,
    STRIKES = 2,
    ASIDE_S = 3600,
    STARTS = 8, /* at once; then one in: */
    START_S = 2,
};

/* A file that a child had trouble with. */
struct suspect {
    uint64_t key;      /* hash; 0: nobody */
    uint64_t until_ns; /* this is forgotten */
    uint32_t strikes;
};

struct counters {
    struct kiln_metric *asked, *kept, *found, *missing, *aside, *starts, *bytes, *hidden;
};

struct kiln_resolver {
    struct kiln_child child;
    struct kiln_name_cache cache;
    struct suspect suspects[SUSPECTS];
    uint32_t next_suspect;
    uint32_t asks;       /* numbers of asks */
    uint64_t starts_ns;  /* credit for starts, in time */
    uint64_t started_ns; /* when it was last counted */
    bool ever_started;
    bool said_hidden;
    struct counters counters;
    struct kiln_log *log;
};

static struct counters counters_of(struct kiln_metrics *metrics)
{
    return (struct counters){
        .asked = kiln_metric_counter(metrics, "kiln_names_asked_total",
                                     "Addresses whose name was asked for."),
        .kept = kiln_metric_counter(metrics, "kiln_names_kept_total",
                                    "Of these, answered from memory."),
        .found =
            kiln_metric_counter(metrics, "kiln_names_found_total", "Addresses that have a name."),
        .missing =
            kiln_metric_counter(metrics, "kiln_names_missing_total", "Addresses without a name."),
        .aside = kiln_metric_counter(metrics, "kiln_names_set_aside_total",
                                     "Files set aside because reading them took too much."),
        .starts = kiln_metric_counter(
            metrics, "kiln_names_child_restarts_total",
            "Times that the process which reads names had to be started again."),
        .bytes =
            kiln_metric_gauge(metrics, "kiln_names_kept_bytes", "Memory of names that are kept."),
        .hidden = kiln_metric_gauge(metrics, "kiln_names_kernel_hidden",
                                    "1 if the kernel hides its addresses (kptr_restrict)."),
    };
}

int kiln_resolver_new(const struct kiln_resolver_opts *opts, struct kiln_resolver **ret_resolver,
                      struct kiln_err *err)
{
    struct kiln_resolver *resolver = kiln_calloc(1, sizeof(*resolver));
    size_t bytes = opts->cache_bytes ? opts->cache_bytes : CACHE_DEFAULT;

    if (!resolver)
        return kiln_err_set(err, -ENOMEM, NULL, "no memory for names");
    resolver->child = (struct kiln_child){
        .program = opts->program ? opts->program : "/proc/self/exe",
        .memory_bytes = opts->child_bytes ? opts->child_bytes : CHILD_DEFAULT,
        .cpu_ms = opts->file_cpu_ms ? opts->file_cpu_ms : CPU_MS_DEFAULT,
        .fd = -1,
    };
    resolver->child.wall_ms = resolver->child.cpu_ms * WALL_FACTOR;
    if (resolver->child.wall_ms < WALL_MS_LEAST)
        resolver->child.wall_ms = WALL_MS_LEAST;
    kiln_name_cache_init(&resolver->cache, bytes > CACHE_LEAST ? bytes : CACHE_LEAST);
    resolver->counters = counters_of(opts->metrics);
    resolver->log = opts->log;
    resolver->starts_ns = STARTS * START_S * KILN_NS_PER_S;
    resolver->started_ns = kiln_clock_mono_ns();
    *ret_resolver = resolver;
    return 0;
}

void kiln_resolver_free(struct kiln_resolver *resolver)
{
    if (!resolver)
        return;
    kiln_child_end(&resolver->child);
    kiln_name_cache_done(&resolver->cache);
    kiln_free(resolver);
}

void kiln_resolver_cost(const struct kiln_resolver *resolver, uint64_t *ret_cpu_ns,
                        uint64_t *ret_bytes)
{
    *ret_cpu_ns = kiln_child_cpu_ns(&resolver->child);
    *ret_bytes = kiln_child_bytes(&resolver->child) + kiln_name_cache_bytes(&resolver->cache);
}

/* ---- who is set aside ---- */

static uint64_t key_of(const struct kiln_source *source)
{
    uint64_t hash = source->key.len ? kiln_hash(source->key.ptr, source->key.len)
                                    : kiln_hash_mix(source->kind, source->id);

    return hash ? hash : 1;
}

static struct suspect *suspect_of(struct kiln_resolver *resolver, const struct kiln_source *source)
{
    uint64_t key = key_of(source);

    for (uint32_t i = 0; i < SUSPECTS; i++) {
        struct suspect *suspect = resolver->suspects + i;

        if (suspect->key == key && suspect->until_ns > kiln_clock_mono_ns())
            return suspect;
    }
    return NULL;
}

static bool is_aside(struct kiln_resolver *resolver, const struct kiln_source *source)
{
    const struct suspect *suspect = suspect_of(resolver, source);

    return suspect && suspect->strikes >= STRIKES;
}

/* True: that was one too many. */
static bool strike(struct kiln_resolver *resolver, const struct kiln_source *source,
                   uint32_t strikes, const char *why)
{
    struct suspect *suspect = suspect_of(resolver, source);
    char key[128];

    if (!suspect) {
        suspect = resolver->suspects + resolver->next_suspect++ % SUSPECTS;
        *suspect = (struct suspect){.key = key_of(source)};
    }
    suspect->strikes += strikes;
    suspect->until_ns = kiln_clock_mono_ns() + ASIDE_S * KILN_NS_PER_S;
    if (suspect->strikes < STRIKES)
        return false;
    kiln_metric_add(resolver->counters.aside, 1);
    (void)snprintf(key, sizeof(key), "%.*s",
                   source->key.len < sizeof(key) ? (int)source->key.len : (int)sizeof(key) - 1,
                   source->key.ptr ? source->key.ptr : "");
    kiln_log(resolver->log, KILN_LOG_WARN, "a file's names are set aside", "key", "%s", key, "why",
             "%s", why, NULL);
    return true;
}

/* ---- asking the child ---- */

static int need_child(struct kiln_resolver *resolver)
{
    const uint64_t most = STARTS * START_S * KILN_NS_PER_S;
    uint64_t now = kiln_clock_mono_ns();
    int r;

    if (kiln_child_is_well(&resolver->child))
        return 0;
    kiln_child_end(&resolver->child);
    resolver->starts_ns += now - resolver->started_ns;
    resolver->started_ns = now;
    if (resolver->starts_ns > most)
        resolver->starts_ns = most;
    if (resolver->starts_ns < START_S * KILN_NS_PER_S)
        return -EAGAIN;
    resolver->starts_ns -= START_S * KILN_NS_PER_S;
    r = kiln_child_start(&resolver->child);
    if (r == 0 && resolver->ever_started)
        kiln_metric_add(resolver->counters.starts, 1);
    resolver->ever_started |= r == 0;
    return r;
}

/* Addresses of one ask, and where their names go. */
struct chunk {
    struct kiln_resolver *resolver;
    const struct kiln_source *source;
    struct kiln_name *names;
    uint32_t n;
    uint64_t addresses[KILN_WIRE_ADDRESSES];
    uint32_t places[KILN_WIRE_ADDRESSES];
    struct kiln_name_frame frames[KILN_NAME_FRAMES_MAX];
    size_t n_texts;
    char texts[3 * KILN_WIRE_PACKET]; /* a byte that is no text becomes three */
};

static struct kiln_str clean(struct chunk *chunk, struct kiln_str text)
{
    size_t left = sizeof(chunk->texts) - chunk->n_texts;
    char *to = chunk->texts + chunk->n_texts;
    size_t n = kiln_name_clean(text, to, left < KILN_WIRE_TEXT ? left : KILN_WIRE_TEXT);

    chunk->n_texts += n;
    return n ? (struct kiln_str){to, n} : KILN_STR_NONE;
}

static struct kiln_name_frame clean_frame(struct chunk *chunk, const struct kiln_name_frame *frame)
{
    struct kiln_name_frame cleaned = *frame;

    cleaned.function = clean(chunk, frame->function);
    cleaned.system_name = clean(chunk, frame->system_name);
    cleaned.file = clean(chunk, frame->file);
    return cleaned;
}

/* Ids are only unique among sources of a kind. */
static struct kiln_kept_key kept_key(const struct kiln_source *source, uint64_t address)
{
    return (struct kiln_kept_key){source->id ^ (uint64_t)source->kind << 62, source->version,
                                  address};
}

static int keep(struct chunk *chunk, uint32_t i, const struct kiln_name *name)
{
    const struct kiln_kept_key key = kept_key(chunk->source, chunk->addresses[i]);

    return kiln_name_cache_put(&chunk->resolver->cache, &key, name,
                               chunk->names + chunk->places[i]);
}

static int take_name(void *context, uint32_t i, const struct kiln_name *name)
{
    struct chunk *chunk = context;
    struct kiln_name cleaned = {.frames = chunk->frames, .n = name->n, .shallow = name->shallow};

    chunk->n_texts = 0;
    cleaned.module = clean(chunk, name->module);
    for (uint32_t f = 0; f < name->n; f++)
        chunk->frames[f] = clean_frame(chunk, name->frames + f);
    if (name->n == 0 && name->begin <= chunk->addresses[i])
        cleaned.begin = name->begin;
    return keep(chunk, i, &cleaned);
}

/* The file has no names, and will have none. */
static int keep_nothing(struct chunk *chunk)
{
    static const struct kiln_name none;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < chunk->n; i++)
        r = keep(chunk, i, &none);
    return r;
}

static int take_status(struct chunk *chunk, int status)
{
    struct kiln_resolver *resolver = chunk->resolver;

    if (chunk->source->kind == KILN_SOURCE_KERNEL && (status == 0 || status == -EACCES))
        kiln_metric_set(resolver->counters.hidden, status == -EACCES);
    if (status == -EACCES && !resolver->said_hidden) {
        resolver->said_hidden = true;
        kiln_log(resolver->log, KILN_LOG_WARN,
                 "the kernel hides its addresses: its functions have no names", "setting", "%s",
                 "kernel.kptr_restrict", NULL);
    }
    /* Not open, or no memory: another time it may be. */
    if (status == 0 || status == -ENOENT || status == -ENOMEM)
        return 0;
    return keep_nothing(chunk);
}

/* Negative: memory, or no child. */
static int ask_child(struct chunk *chunk)
{
    struct kiln_resolver *resolver = chunk->resolver;
    const struct kiln_source *source = chunk->source;
    const struct kiln_child_sink sink = {take_name, chunk};

    for (;;) {
        const struct kiln_names_ask ask = {.number = ++resolver->asks,
                                           .kind = source->kind,
                                           .id = source->id,
                                           .version = source->version,
                                           .n = chunk->n};
        int status = 0;
        uint32_t cpu_ms = 0;
        int r = need_child(resolver);

        if (r < 0)
            return r;
        r = kiln_child_ask(&resolver->child, &ask, chunk->addresses, source->fd, &sink, &status,
                           &cpu_ms);
        if (r == 0 && cpu_ms > resolver->child.cpu_ms)
            (void)strike(resolver, source, STRIKES, "it took too long");
        if (r == 0)
            return take_status(chunk, status);
        if (r != -EPIPE && r != -ETIME && r != -EBADMSG)
            return r;
        if (strike(resolver, source, r == -ETIME && cpu_ms >= resolver->child.cpu_ms ? STRIKES : 1,
                   r == -ETIME ? "it took too long" : "the process that read it died"))
            return 0;
    }
}

/* ---- what is asked ---- */

static void count(struct kiln_resolver *resolver, const struct kiln_name *names, uint32_t n)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < n; i++)
        found += names[i].n > 0;
    kiln_metric_add(resolver->counters.asked, n);
    kiln_metric_add(resolver->counters.found, found);
    kiln_metric_add(resolver->counters.missing, n - found);
    kiln_metric_set(resolver->counters.bytes, (double)kiln_name_cache_bytes(&resolver->cache));
}

static int ask_chunk(struct chunk *chunk)
{
    int r = 0;

    if (chunk->n > 0 && !is_aside(chunk->resolver, chunk->source))
        r = ask_child(chunk);
    chunk->n = 0;
    return r;
}

static int ask_all(struct chunk *chunk, const uint64_t *addresses, uint32_t n)
{
    int r = 0;

    for (uint32_t i = 0; i < n; i++) {
        const struct kiln_kept_key key = kept_key(chunk->source, addresses[i]);

        r = kiln_name_cache_get(&chunk->resolver->cache, &key, chunk->names + i);
        if (r < 0)
            return r;
        if (r == 1) {
            kiln_metric_add(chunk->resolver->counters.kept, 1);
            continue;
        }
        chunk->addresses[chunk->n] = addresses[i];
        chunk->places[chunk->n++] = i;
        if (chunk->n < KILN_WIRE_ADDRESSES)
            continue;
        r = ask_chunk(chunk);
        if (r < 0)
            return r;
    }
    return ask_chunk(chunk);
}

int kiln_resolver_ask(struct kiln_resolver *resolver, const struct kiln_source *source,
                      const uint64_t *addresses, uint32_t n, struct kiln_name *names)
{
    struct chunk *chunk = kiln_malloc(sizeof(*chunk));
    int r;

    if (!chunk)
        return -ENOMEM;
    kiln_name_cache_turn(&resolver->cache);
    memset(names, 0, n * sizeof(*names));
    chunk->resolver = resolver;
    chunk->source = source;
    chunk->names = names;
    chunk->n = 0;
    r = ask_all(chunk, addresses, n);
    count(resolver, names, n);
    kiln_free(chunk);
    return r;
}
