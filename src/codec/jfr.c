/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording is one chunk behind the other, each complete in itself.  A chunk starts with 68
 * bytes, big-endian:
 *
 *    0  "FLR\0"                     32  start, ns since 1970
 *    4  major and minor version     40  duration, ns
 *    8  size of the chunk           48  start, ticks
 *   16  offset of the last pools    56  ticks a second
 *   24  offset of the metadata      64  state, 0, flags: 1 integers are compressed
 *
 * and then has events: size, type id, fields.  Two of them are special: the metadata (type 0,
 * jfr_meta.c) and constant pools (type 1, jfr_pool.c).
 *
 * While it records, the JVM rewrites the header whenever it has written whole events, pools and
 * metadata; what follows them in the file is of no use.
 */
#include <endian.h>
#include <stdio.h>

#include "codec/jfr.h"
#include "codec/jfr_int.h"

#define HEADER_BYTES 68u
#define MAGIC        KILN_STR("FLR\0")
#define MAJOR        2
#define COMPRESSED   1u

bool kiln_jfr_detect(struct kiln_str content)
{
    return kiln_str_starts(content, MAGIC);
}

static uint64_t be64_at(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return be64toh(v);
}

/* What is wrong with a header whose chunk may be cut; NULL if it is whole. */
static const char *cut_short(const struct kiln_jfr_chunk *c, size_t left)
{
    if (c->size > left)
        return "the file ends inside the chunk";
    if (c->size < HEADER_BYTES)
        return "the chunk was never completed";
    if (c->pool_offset < HEADER_BYTES || c->meta_offset < HEADER_BYTES)
        return "the chunk has no metadata and constant pools yet";
    return NULL;
}

static int read_header(struct kiln_jfr_chunk *c, struct kiln_str file, size_t offset,
                       struct kiln_err *err)
{
    const uint8_t *p = (const uint8_t *)file.ptr + offset;
    struct kiln_str rest = {file.ptr + offset, file.len - offset};
    const char *cut;

    if (!kiln_jfr_detect(rest))
        return kiln_err_set(err, KILN_E_TRUNCATED, NULL, "no chunk starts here");
    if (rest.len < HEADER_BYTES)
        return kiln_err_set(err, KILN_E_TRUNCATED, NULL, "the file ends inside the chunk's header");
    if (p[4] != 0 || p[5] != MAJOR)
        return kiln_err_set(err, KILN_E_UNSUPPORTED, NULL,
                            "version %u.%u of the format is not known", p[4] << 8 | p[5],
                            p[6] << 8 | p[7]);
    c->base = p;
    c->offset = offset;
    c->size = be64_at(p + 8);
    c->pool_offset = be64_at(p + 16);
    c->meta_offset = be64_at(p + 24);
    c->start_ns = be64_at(p + 32);
    c->duration_ns = be64_at(p + 40);
    c->ticks_per_second = be64_at(p + 56);
    cut = cut_short(c, rest.len);
    if (cut)
        return kiln_err_set(err, KILN_E_TRUNCATED, NULL, "%s", cut);
    if (c->pool_offset >= c->size || c->meta_offset >= c->size)
        return kiln_err_set(err, KILN_E_RANGE, NULL,
                            "metadata or constant pools lie outside of it");
    if (c->ticks_per_second == 0)
        return kiln_err_set(err, KILN_E_MALFORMED, NULL, "its clock has no ticks");
    if (!(p[67] & COMPRESSED))
        return kiln_err_set(err, KILN_E_UNSUPPORTED, NULL, "integers are not compressed");
    return 0;
}

static int read_chunk(struct kiln_jfr *j, struct kiln_err *err)
{
    struct kiln_jfr_chunk *c = &j->chunk;
    uint64_t end;
    int r;

    c->budget = &j->budget;
    kiln_arena_init(&c->arena, c->budget);
    r = kiln_jfr_read_metadata(c, err);
    if (r == 0)
        r = kiln_jfr_read_pools(c, err);
    if (r == 0)
        r = kiln_jfr_read_events(j, err);
    kiln_jfr_chunk_done(c);
    if (__builtin_add_overflow(c->start_ns, c->duration_ns, &end))
        end = c->start_ns;
    if (j->start_ns == 0 || c->start_ns < j->start_ns)
        j->start_ns = c->start_ns;
    if (end > j->end_ns)
        j->end_ns = end;
    return r;
}

/* Reads chunk after chunk; from the second on, one that is cut ends the file. */
static int read_chunks(struct kiln_jfr *j, struct kiln_str raw, struct kiln_err *err)
{
    size_t offset = 0;

    for (uint32_t i = 0; offset < raw.len; i++) {
        struct kiln_err local = {0};
        int r;

        j->chunk = (struct kiln_jfr_chunk){0};
        r = read_header(&j->chunk, raw, offset, &local);
        if (r == KILN_E_TRUNCATED && i > 0) {
            snprintf(j->incomplete, sizeof(j->incomplete), "chunk[%u] at 0x%zx: %s", i, offset,
                     local.text);
            return 0;
        }
        if (r < 0)
            kiln_err_within(&local, "header at 0x%zx", offset);
        else
            r = read_chunk(j, &local);
        if (r < 0) {
            kiln_err_within(&local, "chunk[%u]", i);
            return kiln_err_set(err, r, local.where, "%s", local.text);
        }
        offset += j->chunk.size;
    }
    return 0;
}

static void add_text(struct kiln_jfr *j, uint32_t *attrs, uint32_t *n, const char *key,
                     const char *value)
{
    if (value[0])
        attrs[(*n)++] = kiln_builder_text_attr(j->b, kiln_str_of(key), kiln_str_of(value));
}

/* HotSpot says "OpenJDK 64-Bit Server VM (17.0.9+9) for linux-amd64 ..."; what counts is 17.0.9+9.
 */
static void shorten_version(char *version)
{
    struct kiln_str rest = kiln_str_of(version);
    struct kiln_str number;

    kiln_str_cut(&rest, '(');
    if (!rest.ptr)
        return;
    number = kiln_str_cut(&rest, ')');
    memmove(version, number.ptr, number.len);
    version[number.len] = '\0';
}

static void add_resource(struct kiln_jfr *j)
{
    bool async = j->profiler_version[0];
    uint32_t attrs[4], n = 0;

    if (j->pid)
        attrs[n++] = kiln_builder_attr(j->b, kiln_builder_string(j->b, KILN_STR("process.pid")),
                                       kiln_value_int((int64_t)j->pid), 0);
    add_text(j, attrs, &n, "process.runtime.name", j->jvm_name);
    if (strchr(j->jvm_version, '('))
        add_text(j, attrs, &n, "process.runtime.description", j->jvm_version);
    shorten_version(j->jvm_version);
    add_text(j, attrs, &n, "process.runtime.version", j->jvm_version);
    kiln_builder_add_resource(
        j->b, &(struct kiln_resource){.attrs = kiln_builder_set(j->b, attrs, n, NULL)});
    kiln_builder_add_scope(j->b,
                           &(struct kiln_scope){
                               .name = kiln_builder_string(j->b, async ? KILN_STR("async-profiler")
                                                                       : KILN_STR("jdk.jfr")),
                               .version = kiln_builder_string(
                                   j->b, kiln_str_of(async ? j->profiler_version : j->jvm_version)),
                           });
}

int kiln_jfr_decode(struct kiln_str raw, struct kiln_builder *b, struct kiln_err *err)
{
    struct kiln_jfr j = {
        .b = b,
        .budget.limit = kiln_builder_limits(b)->memory_bytes,
        .settings = {.interval = -1, .wall_interval = -1, .period_ns = -1, .native_period_ns = -1},
    };
    int r;

    if (!kiln_jfr_detect(raw))
        return kiln_err_set(err, KILN_E_MALFORMED, NULL, "no recording of Java Flight Recorder");
    r = kiln_jfr_samples_new(&j);
    if (r == 0)
        r = read_chunks(&j, raw, err);
    if (r == 0) {
        add_resource(&j);
        if (!kiln_builder_error(b))
            kiln_jfr_add_profiles(&j);
        r = kiln_builder_error(b);
    }
    kiln_jfr_samples_free(&j);
    kiln_array_free(&j.budget, (void **)&j.frames, &j.cap_frames, sizeof(*j.frames));
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}
