/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many bytes a sample takes at rest, and how long writing and reading a block take.
 *
 *   bench_size pprof N CHURN FILE      N times the profile, CHURN percent of its stacks are new
 *   bench_size host N CHURN FILE...    N batches like these of a host profiler
 *
 * A new stack of `pprof` ends like another one; a new stack of `host` has one frame at a new
 * address. The stacks of `host` are drawn from those of the same executable, 12 of 20 processes are
 * new in each batch, and each processor ticks on its own grid with the jitter that real ones have.
 *
 * Prints the bytes of each column of the one block that all of it makes, and CPU times.  With
 * BENCH_SIZE_NO_ROLLUPS in the environment, of one without roll-ups.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../batch.h"
#include "core/remap.h"
#include "store/block_int.h"
#include "store/rollup.h"

#define PERIOD_NS   52631578u /* 19 Hz */
#define N_CPUS      2u
#define MEMORY      ((size_t)6 << 30)
#define START_NS    UINT64_C(1794729336999895112)
#define NEW_PIDS    12u /* of 20 */
#define JITTERS_MAX 4096u
#define ROUNDS      5 /* the best counts */
#define FILES_MAX   60u

static uint64_t roll(uint64_t *state, uint64_t sides)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % sides;
}

/* ---- what is written ---- */

struct entry {
    uint32_t service, resource, scope, profile, first_sample;
};

struct work {
    struct kiln_builder *b;
    uint64_t dice;
    uint32_t churn; /* percent */
    struct entry *entries;
    uint32_t n_entries, cap_entries;
    char services[64][128];
    uint32_t n_services;
    bool one_service; /* their names are those of types */
    uint64_t n_samples, n_new;
};

static uint32_t service_of(struct work *w, struct kiln_str name)
{
    for (uint32_t i = 0; i < w->n_services; i++) {
        if (kiln_str_eq(kiln_str_of(w->services[i]), name))
            return i;
    }
    if (w->n_services == KILN_ARRAY_LEN(w->services))
        exit(1);
    snprintf(w->services[w->n_services], sizeof(w->services[0]), "%.*s", KILN_STR_ARG(name));
    return w->n_services++;
}

static void add_entry(struct work *w, struct entry e)
{
    if (w->n_entries == w->cap_entries) {
        w->cap_entries = w->cap_entries ? w->cap_entries * 2 : 1024;
        w->entries = realloc(w->entries, w->cap_entries * sizeof(*w->entries));
        if (!w->entries)
            exit(1);
    }
    w->entries[w->n_entries++] = e;
}

/* ---- pprof ---- */

/* The beginning of one stack and the end of another, from the root. */
static uint32_t graft(struct work *w, uint32_t a, uint32_t b)
{
    static uint32_t frames[1 << 17];
    const struct kiln_dict *d = &kiln_builder_peek(w->b)->dict;
    struct kiln_range x = d->stacks[a], y = d->stacks[b];
    uint32_t keep = x.n ? 1 + (uint32_t)roll(&w->dice, x.n) : 0;
    uint32_t take = y.n ? 1 + (uint32_t)roll(&w->dice, y.n < 24 ? y.n : 24) : 0;

    for (uint32_t i = 0; i < take; i++)
        frames[i] = d->frames[y.first + i];
    for (uint32_t i = 0; i < keep; i++)
        frames[take + i] = d->frames[x.first + x.n - keep + i];
    return kiln_builder_stack(w->b, frames, take + keep);
}

/* The profile that is written again and again. */
struct large {
    const struct kiln_batch *from;
    struct kiln_remap *remap;
    uint32_t *stacks; /* of its samples */
    uint32_t *now;    /* by stack: what it became in this turn; 0: not yet */
};

static uint32_t stack_now(struct work *w, struct large *large, uint32_t stack)
{
    uint32_t n = large->from->n_samples;

    if (large->now[stack])
        return large->now[stack];
    if (roll(&w->dice, 100) < w->churn) {
        large->now[stack] =
            graft(w, large->stacks[roll(&w->dice, n)], large->stacks[roll(&w->dice, n)]);
        w->n_new++;
    } else {
        large->now[stack] = kiln_remap_stack(large->remap, stack);
    }
    return large->now[stack];
}

static void add_type(struct work *w, struct large *large, uint32_t p, struct entry entry,
                     uint64_t time_ns)
{
    const struct kiln_batch *from = large->from;
    struct kiln_profile head = kiln_remap_profile(large->remap, p);

    head.time_ns = time_ns;
    entry.service = p;
    entry.profile = kiln_builder_add_profile(w->b, &head);
    entry.first_sample = kiln_builder_peek(w->b)->n_samples;
    add_entry(w, entry);
    for (uint32_t i = 0; i < from->profiles[p].n_samples; i++) {
        const struct kiln_sample *x = &from->samples[from->profiles[p].first_sample + i];

        kiln_builder_add_sample(w->b, entry.profile, stack_now(w, large, x->stack),
                                kiln_remap_set(large->remap, x->attrs), 0,
                                kiln_sample_values(from, x), NULL, x->n);
    }
}

static void make_pprof(struct work *w, uint32_t n, const struct kiln_batch *from)
{
    struct large large = {.from = from};
    struct kiln_err err = {0};

    large.stacks = calloc(from->n_samples, sizeof(*large.stacks));
    large.now = calloc(from->dict.n_stacks, sizeof(*large.now));
    bench_must(kiln_remap_new(w->b, from, NULL, &large.remap), "remap", &err);
    for (uint32_t i = 0; i < from->n_samples; i++)
        large.stacks[i] = kiln_remap_stack(large.remap, from->samples[i].stack);
    for (uint32_t i = 0; i < n; i++) {
        struct entry entry = {.resource = kiln_remap_add_resource(large.remap, 0)};
        struct kiln_scope scope = kiln_remap_scope(large.remap, 0);

        entry.scope = kiln_builder_add_scope(w->b, &scope);
        w->n_samples += from->profiles[0].n_samples;
        memset(large.now, 0, from->dict.n_stacks * sizeof(*large.now));
        for (uint32_t p = 0; p < from->n_profiles; p++)
            add_type(w, &large, p, entry, START_NS + i * UINT64_C(20000000000));
    }
    free(large.stacks);
    free(large.now);
    kiln_remap_free(large.remap);
}

/* ---- host ---- */

struct pool {
    uint32_t *stacks;
    uint32_t n;
};

struct host {
    struct work *w;
    struct kiln_batch **from;
    struct kiln_remap **remaps;
    uint32_t n_from;
    struct pool pools[64]; /* by service */
    uint32_t jitters[JITTERS_MAX];
    uint32_t n_jitters;
    uint64_t phase[N_CPUS];
    uint64_t time_ns, duration_ns;
    int64_t next_pid;
    uint64_t ticks_used[N_CPUS][4];
};

static const struct kiln_attr *text_attr(const struct kiln_batch *b, uint32_t set, const char *key)
{
    return kiln_set_find(b, set, kiln_str_of(key));
}

static struct kiln_str exe_of(const struct kiln_batch *b, uint32_t resource)
{
    struct kiln_str exe =
        kiln_set_text(b, b->resources[resource].attrs, KILN_STR("process.executable.name"));

    return exe.ptr ? exe : KILN_STR("unknown");
}

static int64_t cpu_of(const struct kiln_batch *b, uint32_t set)
{
    const struct kiln_attr *a = text_attr(b, set, "cpu.logical_number");

    return a ? a->value.i % (int64_t)N_CPUS : 0;
}

/* How far real timestamps are behind the earliest of their processor's grid. */
static void learn_jitter(struct host *h, const struct kiln_batch *b)
{
    for (int64_t cpu = 0; cpu < (int64_t)N_CPUS; cpu++) {
        int64_t base = 0, least = 0;

        for (int pass = 0; pass < 2; pass++) {
            for (uint32_t i = 0; i < b->n_samples; i++) {
                const uint64_t *times = kiln_sample_times(b, &b->samples[i]);

                for (uint32_t k = 0; times && k < b->samples[i].n; k++) {
                    int64_t off;

                    if (cpu_of(b, b->samples[i].attrs) != cpu)
                        continue;
                    base = base ? base : (int64_t)times[k];
                    off = ((int64_t)times[k] - base) % PERIOD_NS;
                    off = off > PERIOD_NS / 2             ? off - PERIOD_NS
                          : off < -(int64_t)PERIOD_NS / 2 ? off + PERIOD_NS
                                                          : off;
                    if (off < least)
                        least = off;
                    if (pass == 1 && h->n_jitters < JITTERS_MAX)
                        h->jitters[h->n_jitters++] = (uint32_t)(off - least);
                }
            }
        }
    }
}

static void learn(struct host *h)
{
    struct kiln_err err = {0};

    for (uint32_t f = 0; f < h->n_from; f++) {
        const struct kiln_batch *b = h->from[f];

        bench_must(kiln_remap_new(h->w->b, b, NULL, &h->remaps[f]), "remap", &err);
        learn_jitter(h, b);
        for (uint32_t r = 0; r < b->n_resources; r++) {
            struct pool *pool = &h->pools[service_of(h->w, exe_of(b, r))];
            const struct kiln_scope *s = &b->scopes[b->resources[r].first_scope];
            const struct kiln_profile *p = &b->profiles[s->first_profile];

            pool->stacks = realloc(pool->stacks, (pool->n + p->n_samples) * sizeof(uint32_t));
            for (uint32_t i = 0; i < p->n_samples; i++)
                pool->stacks[pool->n++] =
                    kiln_remap_stack(h->remaps[f], b->samples[p->first_sample + i].stack);
        }
    }
}

/* The stack with one frame at a new address. */
static uint32_t move_frame(struct work *w, uint32_t stack)
{
    static uint32_t frames[1 << 17];
    const struct kiln_dict *d = &kiln_builder_peek(w->b)->dict;
    struct kiln_range range = d->stacks[stack];
    struct kiln_line lines[64];
    struct kiln_location l;
    uint32_t at;

    if (range.n == 0)
        return stack;
    at = (uint32_t)roll(&w->dice, range.n);
    memcpy(frames, d->frames + range.first, range.n * sizeof(*frames));
    l = d->locations[frames[at]];
    if (l.n > 64)
        return stack;
    memcpy(lines, d->lines + l.first, l.n * sizeof(*lines));
    l.address += 1 + roll(&w->dice, 65536);
    frames[at] = kiln_builder_location(w->b, &l, lines, l.n);
    w->n_new++;
    return kiln_builder_stack(w->b, frames, range.n);
}

/* A tick that this processor has not had in this batch. */
static uint64_t draw_time(struct host *h, uint32_t cpu)
{
    uint64_t n_ticks = h->duration_ns / PERIOD_NS;
    uint64_t first = (h->time_ns - h->phase[cpu] + PERIOD_NS - 1) / PERIOD_NS;
    uint64_t tick = roll(&h->w->dice, n_ticks);

    for (int tries = 0; tries < 64 && (h->ticks_used[cpu][tick / 64 % 4] >> tick % 64 & 1); tries++)
        tick = roll(&h->w->dice, n_ticks);
    h->ticks_used[cpu][tick / 64 % 4] |= UINT64_C(1) << tick % 64;
    return h->phase[cpu] + (first + tick) * PERIOD_NS + h->jitters[roll(&h->w->dice, h->n_jitters)];
}

/* A set with other numbers for process and thread. */
static uint32_t with_ids(struct host *h, uint32_t f, uint32_t set, int64_t shift)
{
    const struct kiln_batch *b = h->from[f];
    struct kiln_builder *to = h->w->b;
    struct kiln_range range = b->dict.sets[set];
    uint32_t attrs[64];

    for (uint32_t i = 0; i < range.n && i < 64; i++) {
        struct kiln_attr a = b->dict.attrs[b->dict.members[range.first + i]];
        struct kiln_str key = b->dict.strings[a.key];

        a.key = kiln_builder_string(to, key);
        if (a.value.kind == KILN_VALUE_STRING)
            a.value.str = kiln_builder_string(to, b->dict.strings[a.value.str]);
        else if (kiln_str_eq(key, KILN_STR("process.pid")) ||
                 kiln_str_eq(key, KILN_STR("thread.id")))
            a.value.i += shift;
        attrs[i] = kiln_builder_attr(to, a.key, a.value, 0);
    }
    return kiln_builder_set(to, attrs, range.n, NULL);
}

static void add_process(struct host *h, uint32_t f, uint32_t r)
{
    struct work *w = h->w;
    const struct kiln_batch *b = h->from[f];
    const struct kiln_scope *scope = &b->scopes[b->resources[r].first_scope];
    const struct kiln_profile *p = &b->profiles[scope->first_profile];
    uint32_t service = service_of(w, exe_of(b, r));
    const struct pool *pool = &h->pools[service];
    const struct kiln_attr *pid = text_attr(b, b->resources[r].attrs, "process.pid");
    bool fresh = pid && roll(&w->dice, 20) < NEW_PIDS;
    int64_t shift = fresh ? h->next_pid - pid->value.i : 0;
    struct kiln_resource resource = {.attrs = with_ids(h, f, b->resources[r].attrs, shift)};
    struct kiln_scope s = kiln_remap_scope(h->remaps[f], b->resources[r].first_scope);
    struct kiln_profile head = kiln_remap_profile(h->remaps[f], scope->first_profile);
    uint32_t ri, si, pi;

    h->next_pid += fresh ? 1 + (int64_t)roll(&w->dice, 3) : 0;
    head.time_ns = h->time_ns;
    head.duration_ns = h->duration_ns;
    ri = kiln_builder_add_resource(w->b, &resource);
    si = kiln_builder_add_scope(w->b, &s);
    pi = kiln_builder_add_profile(w->b, &head);
    add_entry(w, (struct entry){service, ri, si, pi, kiln_builder_peek(w->b)->n_samples});
    for (uint32_t i = 0; i < p->n_samples; i++) {
        const struct kiln_sample *x = &b->samples[p->first_sample + i];
        uint32_t stack = pool->stacks[roll(&w->dice, pool->n)];
        uint64_t times[64];

        if (roll(&w->dice, 100) < w->churn)
            stack = move_frame(w, stack);
        for (uint32_t k = 0; k < x->n && k < 64; k++)
            times[k] = draw_time(h, (uint32_t)cpu_of(b, x->attrs));
        kiln_builder_add_sample(w->b, pi, stack, with_ids(h, f, x->attrs, shift), 0, NULL, times,
                                x->n);
        w->n_samples++;
    }
}

static void make_host(struct work *w, uint32_t n, struct kiln_batch **from, uint32_t n_from)
{
    struct host h = {.w = w, .from = from, .n_from = n_from, .next_pid = 24000};

    h.remaps = calloc(n_from, sizeof(*h.remaps));
    learn(&h);
    for (uint32_t cpu = 0; cpu < N_CPUS; cpu++)
        h.phase[cpu] = START_NS - PERIOD_NS + roll(&w->dice, PERIOD_NS);
    h.time_ns = START_NS;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t f = (uint32_t)roll(&w->dice, n_from);

        h.duration_ns = UINT64_C(4600000000) + roll(&w->dice, 1000000000);
        memset(h.ticks_used, 0, sizeof(h.ticks_used));
        for (uint32_t r = 0; r < from[f]->n_resources; r++)
            add_process(&h, f, r);
        h.time_ns += h.duration_ns + roll(&w->dice, 200000);
    }
    for (uint32_t i = 0; i < n_from; i++)
        kiln_remap_free(h.remaps[i]);
    free(h.remaps);
}

/* ---- writing, reading ---- */

static struct work *sorted_work;

static int by_series_and_time(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    const struct kiln_profile *p = kiln_builder_peek(sorted_work->b)->profiles;
    int order = strcmp(sorted_work->services[x->service], sorted_work->services[y->service]);

    if (order)
        return order;
    if (p[x->profile].time_ns != p[y->profile].time_ns)
        return p[x->profile].time_ns < p[y->profile].time_ns ? -1 : 1;
    return x->profile < y->profile ? -1 : 1;
}

static struct kiln_str keys[64];
static uint32_t n_keys;

/* Keys of the services that have profiles, in order; sets each entry's service to its series. */
static uint32_t make_keys(struct work *w)
{
    static char text[64][160];
    uint32_t n = 0, last = UINT32_MAX;

    for (uint32_t i = 0; i < w->n_entries; i++) {
        if (w->entries[i].service != last) {
            last = w->entries[i].service;
            keys[n] = (struct kiln_str){
                text[n], (size_t)snprintf(text[n], sizeof(text[n]), "%s%c%s%c",
                                          w->one_service ? "large" : w->services[last], 0,
                                          w->services[last], 0)};
            n++;
        }
        w->entries[i].service = n - 1;
    }
    return n;
}

static void sort_entries(struct work *w)
{
    sorted_work = w;
    qsort(w->entries, w->n_entries, sizeof(*w->entries), by_series_and_time);
    n_keys = make_keys(w);
}

static void write_block(struct work *w, struct kiln_io *io, struct kiln_block_id *ret_id)
{
    /* As compaction writes it: a fresh block is written quickly, not small. */
    struct kiln_block_write_opts opts = {
        .tenant = KILN_STR("anonymous"), .level = 1, .memory_bytes = MEMORY};
    const struct kiln_batch *batch = kiln_builder_peek(w->b);
    struct kiln_block_writer *writer;
    struct kiln_err err = {0};

    bench_must(kiln_block_create(io, &opts, batch, keys, n_keys, &writer, &err), "create", &err);
    for (uint32_t i = 0; i < w->n_entries; i++) {
        const struct entry *e = &w->entries[i];

        kiln_block_add(writer, &(struct kiln_block_profile){
                                   .series = e->service,
                                   .resource = e->resource,
                                   .scope = e->scope,
                                   .head = batch->profiles[e->profile],
                                   .samples = batch->samples + e->first_sample,
                                   .observations = batch->observations,
                               });
    }
    bench_must(kiln_block_commit(writer, ret_id, &err), "commit", &err);
}

static const char *path_of(const struct kiln_block_id *id)
{
    static char path[128];
    size_t n = (size_t)snprintf(path, sizeof(path), "blocks/anonymous/");

    for (size_t i = 0; i < sizeof(id->bytes); i++)
        n += (size_t)snprintf(path + n, sizeof(path) - n, "%02x", id->bytes[i]);
    snprintf(path + n, sizeof(path) - n, ".kb");
    return path;
}

static void read_block(struct kiln_block *block)
{
    struct kiln_limits limits = kiln_limits_default;
    struct kiln_block_reader *reader;
    struct kiln_block_profile p;
    struct kiln_err err = {0};
    struct kiln_builder *b;
    int r;

    limits.memory_bytes = MEMORY;
    bench_must(kiln_builder_new(&limits, &b), "builder", &err);
    bench_must(kiln_block_read(block, &(struct kiln_block_read_opts){.memory_bytes = MEMORY / 2}, b,
                               &reader, &err),
               "read", &err);
    while ((r = kiln_block_next(reader, &p, &err)) > 0)
        ;
    bench_must(r, "next", &err);
    kiln_block_reader_free(reader);
    kiln_builder_free(b);
}

/* ---- the account ---- */

static uint64_t get_varint(const unsigned char **at)
{
    uint64_t v = 0;

    for (unsigned shift = 0;; shift += 7) {
        unsigned char byte = *(*at)++;

        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return v;
    }
}

struct column_account {
    uint64_t bytes, numbers, ways[8];
};

/* Adds up the columns of a section's pages. */
static void account(struct kiln_block *block, const struct kiln_section *s,
                    struct column_account *columns)
{
    struct kiln_budget budget = {.limit = MEMORY};
    struct kiln_page_in in;
    struct kiln_err err = {0};

    bench_must(kiln_page_in_init(&in, &budget), "page", &err);
    for (uint32_t i = 0; i < s->n_pages; i++) {
        const struct kiln_page_ref *ref = &block->footer.pages[s->first_page + i];
        const unsigned char *at;

        bench_must(kiln_page_load(&in, block->io, block->fd, ref->offset, ref->size, &err), "page",
                   &err);
        at = in.at;
        for (uint32_t c = 0; at < in.end; c++) {
            const unsigned char *start = at;
            unsigned tag = *at++;
            uint64_t n = get_varint(&at), plain = get_varint(&at);

            at += tag & 0x80 ? get_varint(&at) : plain;
            columns[c].bytes += (uint64_t)(at - start);
            columns[c].numbers += n;
            columns[c].ways[tag & 7]++;
        }
    }
    kiln_page_in_done(&in);
}

static const char *const rows_columns[] = {"head",  "series", "origin", "moment",  "shape", "count",
                                           "extra", "stack",  "attrs",  "link",    "value", "time",
                                           "tick",  "off",    "ids",    "payloads"};

static void print_account(struct kiln_block *block, double samples)
{
    const struct kiln_footer *f = &block->footer;

    for (uint32_t kind = 1; kind < KILN_SECTION_ROLLUP_END; kind++) {
        struct column_account columns[KILN_PAGE_COLUMNS] = {0};
        uint64_t bytes = 0, entries = 0;

        if (kind == KILN_N_SECTIONS)
            kind = KILN_SECTION_ROLLUP;
        for (uint32_t i = 0; i < f->n_sections; i++) {
            if (f->sections[i].kind != kind)
                continue;
            account(block, &f->sections[i], columns);
            entries += f->sections[i].n_entries;
        }
        for (uint32_t c = 0; c < KILN_PAGE_COLUMNS; c++)
            bytes += columns[c].bytes;
        printf("%-16s %9.4f  %10llu entries\n", kiln_section_name(kind), (double)bytes / samples,
               (unsigned long long)entries);
        for (uint32_t c = 0; c < KILN_PAGE_COLUMNS; c++) {
            if ((double)columns[c].bytes / samples < 0.002)
                continue;
            printf("    %-8s %2u %9.4f  %10llu numbers, %.2f bytes each; pages by packing:",
                   kind == KILN_SECTION_ROWS ? rows_columns[c] : "", c,
                   (double)columns[c].bytes / samples, (unsigned long long)columns[c].numbers,
                   (double)columns[c].bytes / (double)columns[c].numbers);
            for (int k = 0; k < 8; k++)
                printf(" %llu", (unsigned long long)columns[c].ways[k]);
            printf("\n");
        }
    }
}

/* Removes the folder of the store, but for the block. */
static void remove_store(const char *root)
{
    static const char *const names[] = {"blocks/anonymous", "blocks", "LOCK", ""};
    char path[256];

    for (size_t i = 0; i < KILN_ARRAY_LEN(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", root, names[i]);
        if (remove(path) < 0)
            perror(path);
    }
}

/* Fills the builder with what the arguments ask for. */
static void make(struct work *w, int argc, char **argv)
{
    uint32_t n = (uint32_t)strtoul(argv[2], NULL, 10);
    struct kiln_limits limits = kiln_limits_default;
    struct kiln_batch *from[FILES_MAX];
    struct kiln_err err = {0};

    w->churn = (uint32_t)strtoul(argv[3], NULL, 10);
    for (int i = 4; i < argc; i++)
        from[i - 4] = bench_load(argv[i]);
    limits.memory_bytes = MEMORY;
    bench_must(kiln_builder_new(&limits, &w->b), "builder", &err);
    if (strcmp(argv[1], "pprof") == 0) {
        w->one_service = true;
        for (; w->n_services < from[0]->n_profiles; w->n_services++)
            snprintf(w->services[w->n_services], sizeof(w->services[0]), "%u", w->n_services);
        make_pprof(w, n, from[0]);
    } else {
        make_host(w, n, from, (uint32_t)argc - 4);
    }
    bench_must(kiln_builder_error(w->b), "builder", &err);
    for (int i = 4; i < argc; i++)
        kiln_batch_unref(from[i - 4]);
    sort_entries(w);
}

static double time_writing(struct work *w, struct kiln_io *io, struct kiln_block_id *ret_id)
{
    struct kiln_err err = {0};
    double best = 1e9;

    for (int i = 0; i < ROUNDS; i++) {
        double start;

        if (i)
            bench_must(io->unlink(io, path_of(ret_id)), "unlink", &err);
        start = bench_cpu_s();
        write_block(w, io, ret_id);
        start = bench_cpu_s() - start;
        best = start < best ? start : best;
    }
    return best;
}

static double time_reading(struct kiln_block *block)
{
    double best = 1e9;

    for (int i = 0; i < ROUNDS; i++) {
        double start = bench_cpu_s();

        read_block(block);
        start = bench_cpu_s() - start;
        best = start < best ? start : best;
    }
    return best;
}

int main(int argc, char **argv)
{
    struct work w = {.dice = 1};
    struct kiln_err err = {0};
    char root[] = "/tmp/bench_size.XXXXXX";
    struct kiln_block_id id;
    struct kiln_block *block;
    struct kiln_io *io;
    double n, bytes, wrote, read;

    if (argc < 5 || argc - 4 > (int)FILES_MAX) {
        fprintf(stderr, "usage: bench_size pprof|host N CHURN FILE...\n");
        return 2;
    }
    kiln_mem_keep((size_t)1 << 30, (size_t)1 << 30); /* as a server that runs for days has it */
    if (getenv("BENCH_SIZE_NO_ROLLUPS"))
        kiln_rollup_limits.rows_min = UINT64_MAX;
    make(&w, argc, argv);
    if (!mkdtemp(root))
        return 1;
    bench_must(kiln_io_open(root, false, &io), root, &err);
    wrote = time_writing(&w, io, &id);
    kiln_builder_free(w.b);
    bench_must(kiln_block_open(io, path_of(&id), &block, &err), "open", &err);
    read = time_reading(block);
    print_account(block, (double)w.n_samples);
    n = strtod(argv[2], NULL);
    bytes = (double)kiln_block_info(block)->bytes;
    printf("%s %.0f, %u %% new: %llu samples, %u profiles, %llu new stacks; %.2f MB\n", argv[1], n,
           w.churn, (unsigned long long)w.n_samples, w.n_entries, (unsigned long long)w.n_new,
           bytes / 1e6);
    printf("%.3f bytes a sample; write %.1f us, read %.1f us a batch\n",
           bytes / (double)w.n_samples, wrote * 1e6 / n, read * 1e6 / n);
    kiln_block_unref(block);
    bench_must(io->unlink(io, path_of(&id)), "unlink", &err);
    kiln_io_close(io);
    remove_store(root);
    free(w.entries);
    return 0;
}
