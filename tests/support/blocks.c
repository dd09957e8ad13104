/* SPDX-License-Identifier: Apache-2.0 */
#include "blocks.h"

#include <inttypes.h>
#include <stdlib.h>

#include "resolve.h"
#include "test.h"

/* ---- writing ---- */

struct entry {
    char key[160];
    size_t key_len;
    uint32_t resource, scope, profile, series;
    uint64_t time_ns;
};

static int by_key_and_time(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order =
        kiln_str_cmp((struct kiln_str){x->key, x->key_len}, (struct kiln_str){y->key, y->key_len});

    if (order)
        return order;
    return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

static void make_key(const struct kiln_batch *b, struct entry *e)
{
    struct kiln_str name =
        kiln_set_text(b, b->resources[e->resource].attrs, KILN_STR("service.name"));
    struct kiln_str type = kiln_batch_str(b, b->profiles[e->profile].sample_type.type);
    int n;

    if (!name.ptr)
        name = KILN_STR("none");
    n = snprintf(e->key, sizeof(e->key), "%.*s%c%.*s%c", KILN_STR_ARG(name), 0, KILN_STR_ARG(type),
                 0);
    e->key_len = (size_t)n;
}

/* All profiles, in the order of a block; the caller frees them. */
static struct entry *entries_of(const struct kiln_batch *b)
{
    struct entry *entries = calloc(b->n_profiles + 1, sizeof(*entries));

    for (uint32_t r = 0; r < b->n_resources; r++) {
        for (uint32_t s = 0; s < b->resources[r].n_scopes; s++) {
            uint32_t scope = b->resources[r].first_scope + s;

            for (uint32_t p = 0; p < b->scopes[scope].n_profiles; p++) {
                uint32_t profile = b->scopes[scope].first_profile + p;
                struct entry *e = &entries[profile];

                *e = (struct entry){.resource = r,
                                    .scope = scope,
                                    .profile = profile,
                                    .time_ns = b->profiles[profile].time_ns};
                make_key(b, e);
            }
        }
    }
    qsort(entries, b->n_profiles, sizeof(*entries), by_key_and_time);
    return entries;
}

/* Numbers the series, and gives their keys. */
static uint32_t number_series(struct entry *entries, uint32_t n, struct kiln_str *keys)
{
    uint32_t n_keys = 0;

    for (uint32_t i = 0; i < n; i++) {
        struct kiln_str key = {entries[i].key, entries[i].key_len};

        if (n_keys == 0 || !kiln_str_eq(keys[n_keys - 1], key))
            keys[n_keys++] = key;
        entries[i].series = n_keys - 1;
    }
    return n_keys;
}

static void add(struct kiln_block_writer *w, const struct kiln_batch *b, const struct entry *e)
{
    struct kiln_block_profile p = {
        .series = e->series,
        .resource = e->resource,
        .scope = e->scope,
        .flags = e->time_ns % 7 == 1 ? KILN_PROFILE_TIME_SET : 0,
        .head = b->profiles[e->profile],
        .samples = b->samples + b->profiles[e->profile].first_sample,
        .observations = b->observations,
    };

    kiln_block_add(w, &p);
}

int block_write(struct kiln_io *io, const struct kiln_batch *b,
                const struct kiln_block_write_opts *opts, struct kiln_block_id *ret_id,
                struct kiln_err *err)
{
    struct kiln_block_write_opts usual = {.tenant = KILN_STR("t"), .memory_bytes = BLOCK_MEMORY};
    struct entry *entries = entries_of(b);
    struct kiln_str *keys = calloc(b->n_profiles + 1, sizeof(*keys));
    uint32_t n_keys = number_series(entries, b->n_profiles, keys);
    struct kiln_block_writer *w;
    int r = kiln_block_create(io, opts ? opts : &usual, b, keys, n_keys, &w, err);

    if (r == 0) {
        for (uint32_t i = 0; i < b->n_profiles; i++)
            add(w, b, &entries[i]);
        r = kiln_block_commit(w, ret_id, err);
        if (r < 0)
            kiln_block_abort(w);
    }
    free(entries);
    free(keys);
    return r;
}

const char *block_path(const struct kiln_block_id *id)
{
    static char path[128];
    int n = snprintf(path, sizeof(path), "blocks/t/");

    for (size_t i = 0; i < sizeof(id->bytes); i++)
        n += snprintf(path + n, sizeof(path) - (size_t)n, "%02x", id->bytes[i]);
    snprintf(path + n, sizeof(path) - (size_t)n, ".kb");
    return path;
}

struct kiln_block *block_of(struct kiln_io *io, const struct kiln_batch *batch)
{
    struct kiln_err err = {0};
    struct kiln_block_id id;
    struct kiln_block *block = NULL;

    if (block_write(io, batch, NULL, &id, &err) < 0 ||
        kiln_block_open(io, block_path(&id), &block, &err) < 0)
        fail_msg("%s: %s", err.where, err.text);
    return block;
}

/* ---- reading ---- */

static int read_into(struct kiln_block_reader *reader, struct kiln_builder *b, struct kiln_err *err)
{
    struct kiln_block_profile p;
    int r;

    while ((r = kiln_block_next(reader, &p, err)) > 0) {
        struct kiln_scope scope;
        uint32_t index;

        r = kiln_block_add_resource(reader, p.resource, &index);
        if (r < 0)
            return r;
        if (p.head.payload.len) {
            char *copy = kiln_builder_alloc(b, p.head.payload.len);

            if (copy)
                p.head.payload.ptr = memcpy(copy, p.head.payload.ptr, p.head.payload.len);
        }
        scope = kiln_block_scope(reader, p.scope);
        kiln_builder_add_scope(b, &scope);
        index = kiln_builder_add_profile(b, &p.head);
        if (kiln_builder_error(b))
            return kiln_builder_error(b);
        for (uint32_t i = 0; i < p.head.n_samples; i++) {
            const struct kiln_sample *s = &p.samples[i];
            const int64_t *at = p.observations + s->first;
            const int64_t *times = at + (s->has_values ? s->n : 0);

            kiln_builder_add_sample(b, index, s->stack, s->attrs, s->link,
                                    s->has_values ? at : NULL,
                                    s->has_times ? (const uint64_t *)times : NULL, s->n);
        }
    }
    return r;
}

struct kiln_batch *block_batch(struct kiln_block *block, const struct kiln_block_read_opts *opts,
                               int *ret_code, struct kiln_err *err)
{
    struct kiln_block_reader *reader = NULL;
    struct kiln_batch *batch = NULL;
    struct kiln_builder *b = NULL;
    int r = kiln_builder_new(NULL, &b);

    if (r == 0)
        r = kiln_block_read(block, opts, b, &reader, err);
    if (r == 0)
        r = read_into(reader, b, err);
    kiln_block_reader_free(reader);
    if (r == 0)
        r = kiln_builder_finish(b, &batch, err);
    else
        kiln_builder_free(b);
    if (ret_code)
        *ret_code = r;
    return batch;
}

/* ---- comparing ---- */

static int by_line(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *text_of(struct kiln_buf *buf)
{
    char *text;
    size_t len;

    kiln_buf_putc(buf, 0);
    kiln_buf_take(buf, &text, &len);
    return text;
}

/* What resolve_batch() leaves out of heads, sorted. */
static char *heads_of(const struct kiln_batch *b)
{
    char **lines = calloc(b->n_profiles + 1, sizeof(*lines));
    struct kiln_buf out;

    for (uint32_t i = 0; i < b->n_profiles; i++) {
        const struct kiln_profile *p = &b->profiles[i];
        struct kiln_buf line;

        kiln_buf_init(&line, 1 << 20);
        kiln_buf_add_hex(&line, p->id, sizeof(p->id));
        kiln_buf_printf(&line, " %" PRIu64 " dropped %u payload '%.*s' %.*s period %.*s",
                        p->time_ns, p->dropped_attrs, KILN_STR_ARG(p->payload),
                        KILN_STR_ARG(kiln_batch_str(b, p->payload_format)),
                        KILN_STR_ARG(kiln_batch_str(b, p->period_type.unit)));
        lines[i] = text_of(&line);
    }
    qsort(lines, b->n_profiles, sizeof(*lines), by_line);
    kiln_buf_init(&out, 1 << 28);
    for (uint32_t i = 0; i < b->n_profiles; i++) {
        kiln_buf_printf(&out, "%s\n", lines[i]);
        kiln_free(lines[i]);
    }
    free(lines);
    return text_of(&out);
}

void block_check_same(const struct kiln_batch *a, const struct kiln_batch *b)
{
    char *x = resolve_batch(a, 0), *y = resolve_batch(b, 0);

    assert_string_equal(x, y);
    kiln_free(x);
    kiln_free(y);
    x = heads_of(a);
    y = heads_of(b);
    assert_string_equal(x, y);
    kiln_free(x);
    kiln_free(y);
}
