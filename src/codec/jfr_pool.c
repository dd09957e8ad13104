/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constant pools come in checkpoint events:
 *
 *   size, 1, start, duration, distance to the one before (0: none), flags (a byte),
 *   number of pools, pools
 *   pool = type id, number of entries, (id, value of the type)...
 *
 * The chunk header says where the last one is; distances lead back to the first.  They must lead to
 * where they do not overlap, so that every byte is read once.  An id that occurs again means the
 * same, so the first one found stays.
 *
 * Entries of the pools that samples need are kept as they lie; names are put together, and stack
 * traces read, when a sample first asks for them.
 */
#include "base/hash.h"
#include "codec/jfr_int.h"

#define EVENT_CHECKPOINT 1

static const struct {
    struct kiln_str type;
    uint32_t entry_size;
} pool_types[KILN_JFR_POOL_COUNT] = {
#define POOL(name, entry)                                                                          \
    {                                                                                              \
        {name, sizeof(name) - 1}, sizeof(struct entry)                                             \
    }
    [KILN_JFR_SYMBOLS] = POOL("jdk.types.Symbol", kiln_jfr_name),
    [KILN_JFR_STRINGS] = POOL("java.lang.String", kiln_jfr_name),
    [KILN_JFR_FRAME_TYPES] = POOL("jdk.types.FrameType", kiln_jfr_name),
    [KILN_JFR_STATES] = POOL("jdk.types.ThreadState", kiln_jfr_name),
    [KILN_JFR_CLASSES] = POOL("java.lang.Class", kiln_jfr_class),
    [KILN_JFR_METHODS] = POOL("jdk.types.Method", kiln_jfr_method),
    [KILN_JFR_THREADS] = POOL("java.lang.Thread", kiln_jfr_thread),
    [KILN_JFR_STACKS] = POOL("jdk.types.StackTrace", kiln_jfr_stack),
#undef POOL
};

enum kiln_jfr_pool_kind kiln_jfr_pool_named(struct kiln_str type)
{
    enum kiln_jfr_pool_kind kind = 0;

    while (kind < KILN_JFR_POOL_COUNT && !kiln_str_eq(pool_types[kind].type, type))
        kind++;
    return kind;
}

static char *entry_at(const struct kiln_jfr_pool *pool, enum kiln_jfr_pool_kind kind, uint32_t i)
{
    return (char *)pool->entries + (size_t)i * pool_types[kind].entry_size;
}

void *kiln_jfr_find(const struct kiln_jfr_chunk *c, enum kiln_jfr_pool_kind kind, uint64_t id)
{
    const struct kiln_jfr_pool *pool = &c->pools[kind];

    for (struct kiln_probe p = kiln_intern_probe(&pool->index, kiln_hash_mix(0, id));
         kiln_intern_next(&pool->index, &p);) {
        char *entry = entry_at(pool, kind, p.entry);

        if (*(uint64_t *)(void *)entry == id)
            return entry;
    }
    return NULL;
}

struct kiln_jfr_name *kiln_jfr_text_entry(const struct kiln_jfr_chunk *c, struct kiln_jfr_text text)
{
    struct kiln_jfr_in in = {text.ptr, text.ptr, 0};

    if (text.encoding != KILN_JFR_REF)
        return NULL;
    in.end += text.len;
    return kiln_jfr_find(c, KILN_JFR_STRINGS, kiln_jfr_varint(&in));
}

size_t kiln_jfr_text_get(const struct kiln_jfr_chunk *c, struct kiln_jfr_text text, char *out)
{
    if (text.encoding == KILN_JFR_REF) {
        const struct kiln_jfr_name *entry = kiln_jfr_text_entry(c, text);

        if (!entry || entry->text.encoding == KILN_JFR_REF)
            return 0;
        text = entry->text;
    }
    return kiln_jfr_text_format(text, out);
}

/* Fills the entry of a pool from what was read. */
static void fill(void *entry, enum kiln_jfr_pool_kind kind, uint64_t id,
                 const struct kiln_jfr_record *r)
{
    static const uint8_t text_slots[] = {
        [KILN_JFR_SYMBOLS] = KILN_JFR_STRING,
        [KILN_JFR_STRINGS] = KILN_JFR_STRING,
        [KILN_JFR_FRAME_TYPES] = KILN_JFR_DESCRIPTION,
        [KILN_JFR_STATES] = KILN_JFR_NAME,
    };

    switch (kind) {
    case KILN_JFR_CLASSES:
        *(struct kiln_jfr_class *)entry =
            (struct kiln_jfr_class){.id = id, .name = kiln_jfr_number(r, KILN_JFR_NAME)};
        break;
    case KILN_JFR_METHODS:
        *(struct kiln_jfr_method *)entry = (struct kiln_jfr_method){
            .id = id,
            .class = kiln_jfr_number(r, KILN_JFR_TYPE),
            .name = kiln_jfr_number(r, KILN_JFR_NAME),
            .descriptor = kiln_jfr_number(r, KILN_JFR_DESCRIPTOR),
        };
        break;
    case KILN_JFR_THREADS:
        *(struct kiln_jfr_thread *)entry = (struct kiln_jfr_thread){
            .id = id,
            .os_id = kiln_jfr_number(r, KILN_JFR_OS_ID),
            .java_id = kiln_jfr_number(r, KILN_JFR_JAVA_ID),
            .os_name = kiln_jfr_text(r, KILN_JFR_OS_NAME),
            .java_name = kiln_jfr_text(r, KILN_JFR_JAVA_NAME),
        };
        break;
    case KILN_JFR_STACKS:
        *(struct kiln_jfr_stack *)entry = (struct kiln_jfr_stack){
            .id = id,
            .frames = r->arrays >> KILN_JFR_FRAMES & 1 ? r->array[KILN_JFR_FRAMES] : NULL,
        };
        break;
    default:
        *(struct kiln_jfr_name *)entry =
            (struct kiln_jfr_name){.id = id, .text = kiln_jfr_text(r, text_slots[kind])};
    }
}

static int add_entry(struct kiln_jfr_chunk *c, enum kiln_jfr_pool_kind kind, uint64_t id,
                     const struct kiln_jfr_record *record)
{
    struct kiln_jfr_pool *pool = &c->pools[kind];
    int r;

    if (kiln_jfr_find(c, kind, id))
        return 0;
    r = kiln_grow(c->budget, &pool->entries, &pool->cap, (uint64_t)pool->n + 1,
                  pool_types[kind].entry_size, UINT32_MAX);
    if (r == 0)
        r = kiln_intern_add(&pool->index, c->budget, kiln_hash_mix(0, id), pool->n);
    if (r == 0)
        fill(entry_at(pool, kind, pool->n++), kind, id, record);
    return r;
}

static int read_pool(struct kiln_jfr_chunk *c, struct kiln_jfr_in *in, struct kiln_err *err)
{
    uint64_t id = kiln_jfr_varint(in);
    uint64_t n = kiln_jfr_count(in);
    struct kiln_jfr_type *type = kiln_jfr_find_type(c, id);
    struct kiln_jfr_record record;
    int r = in->error;

    if (r == 0 && !type)
        return kiln_err_set(err, KILN_E_RANGE, NULL, "a pool of the unknown type %llu",
                            (unsigned long long)id);
    if (r == 0)
        r = kiln_jfr_compile(c, type);
    for (; n && r == 0; n--) {
        id = kiln_jfr_varint(in);
        kiln_jfr_run(c, in, type, type->pool ? &record : NULL);
        r = in->error;
        if (r == 0 && type->pool)
            r = add_entry(c, type->pool - 1, id, &record);
    }
    if (r < 0)
        kiln_err_set(err, r, NULL, "%s, in the pool of %.*s", kiln_err_text(r),
                     type ? (int)type->name.len : 1, type ? type->name.ptr : "?");
    return r;
}

/* Reads the checkpoint at `offset`, which ends by `end`; gives where the one before it is. */
static int read_checkpoint(struct kiln_jfr_chunk *c, uint64_t offset, uint64_t end,
                           uint64_t *ret_before, struct kiln_err *err)
{
    struct kiln_jfr_in in = {c->base + offset, c->base + end, 0};
    uint64_t size = kiln_jfr_varint(&in);
    uint64_t distance, n;
    int r = 0;

    if (!in.error && size <= end - offset && size >= (uint64_t)(in.at - c->base) - offset)
        in.end = c->base + offset + size;
    else
        kiln_jfr_in_fail(&in, KILN_E_TRUNCATED);
    if (kiln_jfr_varint(&in) != EVENT_CHECKPOINT)
        kiln_jfr_in_fail(&in, KILN_E_MALFORMED);
    kiln_jfr_varint(&in); /* start */
    kiln_jfr_varint(&in); /* duration */
    distance = kiln_jfr_varint(&in);
    kiln_jfr_skip(&in, 1);
    n = kiln_jfr_varint(&in);
    if (in.error)
        return kiln_err_set(err, in.error, NULL, "%s", kiln_err_text(in.error));
    for (; n && r == 0; n--)
        r = read_pool(c, &in, err);
    *ret_before = distance ? offset + distance : 0; /* the distance is negative */
    return r;
}

int kiln_jfr_read_pools(struct kiln_jfr_chunk *c, struct kiln_err *err)
{
    uint64_t offset = c->pool_offset, end = c->size, before = 0;

    for (uint32_t i = 0; offset; i++) {
        int r = 0;

        if (offset >= end)
            r = kiln_err_set(err, KILN_E_MALFORMED, NULL,
                             "the constant pools do not lie one behind the other");
        else
            r = read_checkpoint(c, offset, end, &before, err);
        if (r < 0) {
            kiln_err_within(err, "constant_pool[%u] at 0x%zx", i, c->offset + (size_t)offset);
            return r;
        }
        end = offset;
        offset = before;
    }
    return 0;
}

void kiln_jfr_chunk_done(struct kiln_jfr_chunk *c)
{
    for (uint32_t i = 0; i < KILN_JFR_POOL_COUNT; i++) {
        kiln_intern_done(&c->pools[i].index, c->budget);
        kiln_array_free(c->budget, &c->pools[i].entries, &c->pools[i].cap,
                        pool_types[i].entry_size);
        c->pools[i].n = 0;
    }
    kiln_intern_done(&c->functions, c->budget);
    kiln_intern_done(&c->type_index, c->budget);
    kiln_array_free(c->budget, (void **)&c->types, &c->cap_types, sizeof(*c->types));
    kiln_array_free(c->budget, (void **)&c->fields, &c->cap_fields, sizeof(*c->fields));
    kiln_array_free(c->budget, (void **)&c->ops, &c->cap_ops, sizeof(*c->ops));
    kiln_arena_done(&c->arena);
}
