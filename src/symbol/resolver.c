/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is kept is answered at once; the rest, and what is shallow, goes to the child, 512 addresses
 * at a time.
 *
 * A file that takes too long is set aside for an hour.  One on which the child died, or stood
 * still, is asked for once more, with a new child: somebody else may have ended or stopped it; then
 * it is set aside too.  If the child said that it was at its debug information, only that is set
 * aside, and the file is asked without.  Children are not started faster than one in two seconds,
 * after the first few.
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
    CHILD_DEFAULT = 96 << 20,
    CPU_MS_DEFAULT = 2000,
    DEEP_CPU_MS_DEFAULT = 30000,
    REST_MS_DEFAULT = 60000,
    DEEP_MS_MOST = 500, /* that an ask waits for lines */
    DEEP_MS_LEAST = 5,  /* else it would not come to know what it lacks */
    DEEP_SHARE = 10,    /* of the time that passes, a tenth */
    WALL_FACTOR = 5,    /* of the CPU time: the machine may be busy; at least: */
    WALL_MS_LEAST = 2000,
    ASKS_KEPT = 64,
    KEY_SHOWN = 256,
    STARTS = 8, /* at once; then one in: */
    START_S = 2,
    TEXT_TRIES = 3, /* for an embedded source: the child had ended, or the machine is busy */
};

#define SCRATCH_MOST (UINT64_C(4) << 30)

struct counters {
    struct kiln_metric *asked, *kept, *child, *found, *missing, *shallow;
    struct kiln_metric *aside, *deep_aside, *starts, *bytes, *hidden;
    struct kiln_metric *files_found, *files_missing, *files_refused;
};

/* Whom an ask was for. */
struct asked {
    uint32_t number;
    uint64_t key; /* of its debug information */
    char name[64];
};

struct kiln_resolver {
    struct kiln_child child;
    struct kiln_name_cache cache;
    struct kiln_disk disk;
    struct kiln_aside aside;
    uint32_t asks;                 /* numbers of asks */
    struct asked asked[ASKS_KEPT]; /* the last ones, by number */
    bool patient;
    uint64_t deep_ns;    /* credit for waiting for lines */
    uint64_t deep_at_ns; /* when it was last counted */
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
        .child = kiln_metric_counter(metrics, "kiln_names_read_total",
                                     "Of these, looked for in the files themselves."),
        .found =
            kiln_metric_counter(metrics, "kiln_names_found_total", "Addresses that have a name."),
        .missing =
            kiln_metric_counter(metrics, "kiln_names_missing_total", "Addresses without a name."),
        .shallow = kiln_metric_counter(
            metrics, "kiln_names_shallow_total",
            "Addresses answered before their lines and inlined functions were found."),
        .aside = kiln_metric_counter(metrics, "kiln_names_set_aside_total",
                                     "Files set aside because reading them took too much."),
        .deep_aside = kiln_metric_counter(
            metrics, "kiln_names_debug_set_aside_total",
            "Files whose debug information was set aside because reading it took too much."),
        .files_found = kiln_metric_counter(metrics, "kiln_names_debug_files_found_total",
                                           "Separate debug files that were found."),
        .files_missing = kiln_metric_counter(metrics, "kiln_names_debug_files_missing_total",
                                             "Separate debug files that were not found."),
        .files_refused = kiln_metric_counter(
            metrics, "kiln_names_debug_files_refused_total",
            "Files taken for debug files that turned out to belong to something else."),
        .starts = kiln_metric_counter(
            metrics, "kiln_names_child_restarts_total",
            "Times that the process which reads names had to be started again."),
        .bytes =
            kiln_metric_gauge(metrics, "kiln_names_kept_bytes", "Memory of names that are kept."),
        .hidden = kiln_metric_gauge(metrics, "kiln_names_kernel_hidden",
                                    "1 if the kernel hides its addresses (kptr_restrict)."),
    };
}

static uint32_t or (uint32_t value, uint32_t otherwise)
{
    return value ? value : otherwise;
}

static struct kiln_child child_of(const struct kiln_resolver_opts *opts)
{
    struct kiln_child child = {
        .program = opts->program ? opts->program : "/proc/self/exe",
        .scratch_directory = opts->scratch_directory,
        .greeting = {.memory = opts->child_bytes ? opts->child_bytes : CHILD_DEFAULT,
                     .deep_cpu_ms = or (opts->deep_cpu_ms, DEEP_CPU_MS_DEFAULT),
                     .scratch = SCRATCH_MOST,
                     .rest_ms = or (opts->rest_ms, REST_MS_DEFAULT),
                     .eager = opts->patient},
        .cpu_ms = or (opts->file_cpu_ms, CPU_MS_DEFAULT),
        .fd = -1,
    };

    child.wall_ms = child.cpu_ms * WALL_FACTOR;
    if (child.wall_ms < WALL_MS_LEAST)
        child.wall_ms = WALL_MS_LEAST;
    return child;
}

int kiln_resolver_new(const struct kiln_resolver_opts *opts, struct kiln_resolver **ret_resolver,
                      struct kiln_err *err)
{
    struct kiln_resolver *resolver = kiln_calloc(1, sizeof(*resolver));
    size_t bytes = opts->cache_bytes ? opts->cache_bytes : CACHE_DEFAULT;

    if (!resolver)
        return kiln_err_set(err, -ENOMEM, NULL, "no memory for names");
    resolver->child = child_of(opts);
    kiln_name_cache_init(&resolver->cache, bytes > CACHE_LEAST ? bytes : CACHE_LEAST);
    kiln_disk_open(opts, &resolver->disk);
    resolver->counters = counters_of(opts->metrics);
    resolver->log = opts->log;
    resolver->patient = opts->patient;
    resolver->deep_ns = DEEP_MS_MOST * KILN_NS_PER_MS;
    resolver->starts_ns = STARTS * START_S * KILN_NS_PER_S;
    resolver->started_ns = resolver->deep_at_ns = kiln_clock_mono_ns();
    *ret_resolver = resolver;
    return 0;
}

void kiln_resolver_free(struct kiln_resolver *resolver)
{
    if (!resolver)
        return;
    kiln_child_end(&resolver->child);
    kiln_disk_close(&resolver->disk);
    kiln_name_cache_done(&resolver->cache);
    kiln_free(resolver);
}

void kiln_resolver_cost(const struct kiln_resolver *resolver, struct kiln_resolver_cost *ret_cost)
{
    *ret_cost = (struct kiln_resolver_cost){
        .cpu_ns = kiln_child_cpu_ns(&resolver->child),
        .child_bytes = kiln_child_bytes(&resolver->child),
        .kept_bytes = kiln_name_cache_bytes(&resolver->cache) +
                      (resolver->disk.shelf ? kiln_shelf_bytes(resolver->disk.shelf) : 0)};
}

/* ---- who is set aside ---- */

static uint64_t key_of(const struct kiln_source *source)
{
    uint64_t hash = source->key.len ? kiln_hash(source->key.ptr, source->key.len)
                                    : kiln_hash_mix(source->kind, source->id);

    return hash ? hash : 1;
}

/* Its debug information may be set aside without the file. */
static uint64_t deep_key_of(const struct kiln_source *source)
{
    return kiln_hash_mix(key_of(source), 1) | 1;
}

bool kiln_resolver_is_aside(const struct kiln_resolver *resolver, const struct kiln_source *source)
{
    return kiln_aside_has(&resolver->aside, key_of(source));
}

static void strike(struct kiln_resolver *resolver, const struct kiln_source *source,
                   uint32_t strikes, const char *why)
{
    char key[KEY_SHOWN];

    if (!kiln_aside_strike(&resolver->aside, key_of(source), strikes))
        return;
    kiln_metric_add(resolver->counters.aside, 1);
    snprintf(key, sizeof(key), "%.*s", KILN_STR_ARG(source->key));
    kiln_log(resolver->log, KILN_LOG_WARN, "a file's names are set aside", "key", "%s", key, "why",
             "%s", why, NULL);
}

/* The debug information that it is said to have been at. */
static void strike_deep(struct kiln_resolver *resolver, uint32_t number, uint32_t strikes,
                        const char *why)
{
    const struct asked *asked = &resolver->asked[number % ASKS_KEPT];

    if (asked->number != number || kiln_aside_has(&resolver->aside, asked->key) ||
        !kiln_aside_strike(&resolver->aside, asked->key, strikes))
        return;
    kiln_metric_add(resolver->counters.deep_aside, 1);
    kiln_log(resolver->log, KILN_LOG_WARN, "a file's debug information is set aside", "key", "%s",
             asked->name, "why", "%s", why, NULL);
}

/* ---- asking the child ---- */

/* It ended while nobody asked: by itself, or at somebody's debug information. */
static void bury(struct kiln_resolver *resolver)
{
    struct kiln_child *child = &resolver->child;

    if (child->pid <= 0)
        return;
    kiln_child_end(child);
    if (child->working && !child->rested)
        strike_deep(resolver, child->working, 1, "the process that read it died");
}

static int need_child(struct kiln_resolver *resolver)
{
    const uint64_t most = STARTS * START_S * KILN_NS_PER_S;
    uint64_t now = kiln_clock_mono_ns();
    bool rested;
    int r;

    if (kiln_child_is_well(&resolver->child))
        return 0;
    bury(resolver);
    resolver->starts_ns += now - resolver->started_ns;
    resolver->started_ns = now;
    if (resolver->starts_ns > most)
        resolver->starts_ns = most;
    if (resolver->starts_ns < START_S * KILN_NS_PER_S)
        return -EAGAIN;
    resolver->starts_ns -= START_S * KILN_NS_PER_S;
    rested = resolver->child.rested;
    r = kiln_child_start(&resolver->child);
    if (r == 0 && resolver->ever_started && !rested)
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
    bool deep; /* what is answered is all that there is to know */
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
    if (chunk->deep)
        kiln_disk_put(&chunk->resolver->disk, chunk->source, chunk->addresses[i], &cleaned);
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

static int open_wanted(void *context, const struct kiln_wanted *wanted, int *ret_fd)
{
    const struct chunk *chunk = context;
    const struct kiln_source *source = chunk->source;
    const struct counters *counters = &chunk->resolver->counters;
    int r = source->open ? source->open(source->context, wanted, ret_fd) : -ENOENT;

    if (wanted->attempt > 0)
        kiln_metric_add(counters->files_refused, 1);
    kiln_metric_add(r < 0 ? counters->files_missing : counters->files_found, 1);
    return r;
}

/* How long the next ask may wait for lines. */
static uint32_t patience_ms(struct kiln_resolver *resolver)
{
    uint64_t now = kiln_clock_mono_ns();

    if (resolver->patient)
        return DEEP_MS_MOST;
    resolver->deep_ns += (now - resolver->deep_at_ns) / DEEP_SHARE;
    resolver->deep_at_ns = now;
    if (resolver->deep_ns > DEEP_MS_MOST * KILN_NS_PER_MS)
        resolver->deep_ns = DEEP_MS_MOST * KILN_NS_PER_MS;
    if (resolver->deep_ns < DEEP_MS_LEAST * KILN_NS_PER_MS)
        return DEEP_MS_LEAST;
    return (uint32_t)(resolver->deep_ns / KILN_NS_PER_MS);
}

static void waited(struct kiln_resolver *resolver, uint64_t ns)
{
    resolver->deep_ns -= ns < resolver->deep_ns ? ns : resolver->deep_ns;
}

static struct kiln_names_ask next_ask(const struct chunk *chunk)
{
    struct kiln_resolver *resolver = chunk->resolver;
    const struct kiln_source *source = chunk->source;
    uint32_t number = ++resolver->asks ? resolver->asks : ++resolver->asks;
    struct asked *asked = &resolver->asked[number % ASKS_KEPT];
    size_t n = source->key.len < sizeof(asked->name) ? source->key.len : sizeof(asked->name) - 1;

    *asked = (struct asked){.number = number, .key = deep_key_of(source)};
    if (n)
        memcpy(asked->name, source->key.ptr, n);
    return (struct kiln_names_ask){.number = number,
                                   .kind = source->kind,
                                   .id = source->id,
                                   .version = source->version,
                                   .n = chunk->n,
                                   .deep_ms = patience_ms(resolver),
                                   .deep = source->kind == KILN_SOURCE_ELF &&
                                           !kiln_aside_has(&resolver->aside, asked->key)};
}

/* What of it is to blame. */
static void blame(struct chunk *chunk, uint32_t strikes, const char *why)
{
    uint32_t working = chunk->resolver->child.working;

    if (working)
        strike_deep(chunk->resolver, working, strikes, why);
    else
        strike(chunk->resolver, chunk->source, strikes, why);
}

/* Asks once.  -EAGAIN: once more; other negative: memory, or no child. */
static int ask_once(struct chunk *chunk)
{
    struct kiln_resolver *resolver = chunk->resolver;
    struct kiln_child *child = &resolver->child;
    struct kiln_child_ask ask = {.head = next_ask(chunk),
                                 .addresses = chunk->addresses,
                                 .fd = chunk->source->fd,
                                 .take = take_name,
                                 .open = open_wanted,
                                 .context = chunk};
    uint64_t began_ns = kiln_clock_mono_ns();
    int r;

    chunk->deep = ask.head.deep;
    r = kiln_child_ask(child, &ask);
    waited(resolver, kiln_clock_mono_ns() - began_ns);
    if (r == 0 && ask.gave_up)
        strike_deep(resolver, ask.head.number, KILN_ASIDE_STRIKES, "it took too long");
    if (r == 0 && ask.cpu_ms > child->cpu_ms)
        blame(chunk, KILN_ASIDE_STRIKES, "it took too long");
    if (r == 0)
        return take_status(chunk, ask.status);
    if (r == -ESHUTDOWN)
        return -EAGAIN;
    if (r != -EPIPE && r != -ETIME && r != -EBADMSG)
        return r;
    blame(chunk, r == -ETIME && ask.cpu_ms >= child->cpu_ms ? KILN_ASIDE_STRIKES : 1,
          r == -ETIME ? "it took too long" : "the process that read it died");
    return -EAGAIN;
}

/* Negative: memory, or no child. */
static int ask_child(struct chunk *chunk)
{
    int r = -EAGAIN;

    while (r == -EAGAIN && !kiln_aside_has(&chunk->resolver->aside, key_of(chunk->source))) {
        r = need_child(chunk->resolver);
        if (r < 0)
            return r;
        r = ask_once(chunk);
    }
    return r == -EAGAIN ? 0 : r;
}

/* ---- what is asked ---- */

static void count(struct kiln_resolver *resolver, const struct kiln_name *names, uint32_t n)
{
    uint32_t found = 0, shallow = 0;

    for (uint32_t i = 0; i < n; i++) {
        found += names[i].n > 0;
        shallow += names[i].shallow;
    }
    kiln_metric_add(resolver->counters.asked, n);
    kiln_metric_add(resolver->counters.shallow, shallow);
    kiln_metric_add(resolver->counters.found, found);
    kiln_metric_add(resolver->counters.missing, n - found);
    kiln_metric_set(resolver->counters.bytes, (double)kiln_name_cache_bytes(&resolver->cache));
}

static int ask_chunk(struct chunk *chunk)
{
    int r = 0;

    kiln_metric_add(chunk->resolver->counters.child, chunk->n);
    if (chunk->n > 0)
        r = ask_child(chunk);
    chunk->n = 0;
    return r;
}

static int ask_all(struct chunk *chunk, const uint64_t *addresses, uint32_t n)
{
    struct kiln_name name;
    int r = 0;

    for (uint32_t i = 0; i < n; i++) {
        const struct kiln_kept_key key = kept_key(chunk->source, addresses[i]);

        r = kiln_name_cache_get(&chunk->resolver->cache, &key, chunk->names + i);
        if (r < 0)
            return r;
        if (r == 1 && !chunk->names[i].shallow) {
            kiln_metric_add(chunk->resolver->counters.kept, 1);
            continue;
        }
        chunk->addresses[chunk->n] = addresses[i];
        chunk->places[chunk->n] = i;
        if (kiln_disk_get(&chunk->resolver->disk, chunk->source, addresses[i], &name))
            r = keep(chunk, chunk->n, &name);
        else if (++chunk->n == KILN_WIRE_ADDRESSES)
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
    if (!kiln_child_is_well(&resolver->child))
        bury(resolver);
    kiln_name_cache_turn(&resolver->cache);
    kiln_disk_begin(&resolver->disk, source);
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

/* ---- embedded sources ---- */

static int add_text(void *context, struct kiln_str text)
{
    struct kiln_buf *out = context;

    if (text.len > KILN_TEXT_MAX)
        return KILN_E_LIMIT;
    kiln_buf_add(out, text.ptr, text.len);
    return out->error;
}

/* Asks once.  -EAGAIN: the child had ended by itself, or did not come to its end in time. */
static int ask_text(struct chunk *chunk, uint32_t name, struct kiln_buf *out)
{
    struct kiln_resolver *resolver = chunk->resolver;
    struct kiln_child_ask ask = {.head = next_ask(chunk),
                                 .addresses = chunk->addresses,
                                 .fd = chunk->source->fd,
                                 .take_text = add_text,
                                 .context = out};
    int r = need_child(resolver);

    if (r < 0)
        return r;
    if (!ask.head.deep)
        return -ENOENT;
    ask.head.name = name;
    ask.head.deep_ms = resolver->child.cpu_ms / 4 * 3;
    r = kiln_child_ask(&resolver->child, &ask);
    if (r == 0)
        return ask.status;
    if (r == -EPIPE || r == -ETIME || r == -EBADMSG) {
        blame(chunk, 1, "the process that read it died, or took too long");
        return -ENOENT;
    }
    return r == -ESHUTDOWN ? -EAGAIN : r;
}

int kiln_resolver_text(struct kiln_resolver *resolver, const struct kiln_source *source,
                       struct kiln_str file, struct kiln_buf *out)
{
    struct chunk *chunk;
    size_t before = out->len;
    int r = -EAGAIN;

    if (file.len == 0 || file.len > KILN_WIRE_TEXT ||
        kiln_aside_has(&resolver->aside, key_of(source)))
        return -ENOENT;
    chunk = kiln_calloc(1, sizeof(*chunk));
    if (!chunk)
        return -ENOMEM;
    chunk->resolver = resolver;
    chunk->source = source;
    chunk->n = (uint32_t)(file.len + 7) / 8;
    memcpy(chunk->addresses, file.ptr, file.len);
    for (int i = 0; i < TEXT_TRIES && r == -EAGAIN; i++) {
        out->len = before;
        r = ask_text(chunk, (uint32_t)file.len, out);
    }
    kiln_free(chunk);
    if (r < 0)
        out->len = before;
    return r < 0 && r != -ENOMEM ? -ENOENT : r;
}
