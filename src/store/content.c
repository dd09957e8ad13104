/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XXH3, 128 bits.  An entry is the hash of a record of its numbers and of the hashes of what it
 * refers to.  Where order means nothing (attributes of a set, observations of a profile, however
 * they are spread over samples), hashes are added up.
 */
#include "store/content.h"

#include <errno.h>

#include "base/err.h"
#include "base/hash.h"

#define ENTRIES_MAX (1u << 28)

static struct kiln_content_hash of_bytes(uint64_t seed, const void *data, size_t n)
{
    XXH128_hash_t h = XXH3_128bits_withSeed(data, n, seed);

    return (struct kiln_content_hash){h.low64, h.high64};
}

static void add(struct kiln_content_hash *sum, struct kiln_content_hash h)
{
    sum->hi += h.hi + __builtin_add_overflow(sum->lo, h.lo, &sum->lo);
}

void kiln_content_init(struct kiln_content *content, uint64_t seed)
{
    *content = (struct kiln_content){.seed = seed, .budget = {.limit = SIZE_MAX}};
}

static void table_done(struct kiln_content *content, struct kiln_content_table *table)
{
    kiln_array_free(&content->budget, (void **)&table->hashes, &table->cap, sizeof(*table->hashes));
    table->n = 0;
}

void kiln_content_done(struct kiln_content *content)
{
    struct kiln_content_table *tables[] = {
        &content->strings, &content->functions, &content->mappings, &content->locations,
        &content->stacks,  &content->links,     &content->attrs,    &content->sets};

    for (size_t i = 0; i < KILN_ARRAY_LEN(tables); i++)
        table_done(content, tables[i]);
    kiln_array_free(&content->budget, (void **)&content->frames, &content->cap_frames,
                    sizeof(*content->frames));
}

/* ---- dictionary entries ---- */

static struct kiln_content_hash hash_string(struct kiln_content *content,
                                            const struct kiln_batch *batch, uint32_t i)
{
    struct kiln_str s = batch->dict.strings[i];

    return of_bytes(content->seed, s.ptr, s.len);
}

static struct kiln_content_hash hash_value(const struct kiln_content *content,
                                           const struct kiln_batch *batch,
                                           const struct kiln_value *value)
{
    struct {
        uint64_t kind;
        struct kiln_content_hash what;
    } record = {value->kind | (uint64_t)value->n << 32, {value->bits, 0}};

    if (value->kind == KILN_VALUE_STRING || value->kind == KILN_VALUE_BYTES)
        record.what = content->strings.hashes[value->str];
    if (value->kind != KILN_VALUE_ARRAY && value->kind != KILN_VALUE_MAP)
        return of_bytes(content->seed, &record, sizeof(record));
    record.what = (struct kiln_content_hash){0};
    for (uint32_t i = 0; i < value->n; i++) {
        const struct kiln_attr *child = &batch->dict.nested[value->first + i];
        struct kiln_content_hash parts[4] = {record.what, content->strings.hashes[child->key],
                                             content->strings.hashes[child->unit],
                                             hash_value(content, batch, &child->value)};

        record.what = of_bytes(content->seed, parts, sizeof(parts));
    }
    return of_bytes(content->seed, &record, sizeof(record));
}

static struct kiln_content_hash hash_attr(struct kiln_content *content,
                                          const struct kiln_batch *batch, uint32_t i)
{
    const struct kiln_attr *attr = &batch->dict.attrs[i];
    struct kiln_content_hash parts[3] = {content->strings.hashes[attr->key],
                                         content->strings.hashes[attr->unit],
                                         hash_value(content, batch, &attr->value)};

    return of_bytes(content->seed, parts, sizeof(parts));
}

static struct kiln_content_hash hash_set(struct kiln_content *content,
                                         const struct kiln_batch *batch, uint32_t i)
{
    struct kiln_range set = batch->dict.sets[i];
    struct kiln_content_hash sum = {set.n, 0};

    for (uint32_t k = 0; k < set.n; k++)
        add(&sum, content->attrs.hashes[batch->dict.members[set.first + k]]);
    return of_bytes(content->seed, &sum, sizeof(sum));
}

static struct kiln_content_hash hash_function(struct kiln_content *content,
                                              const struct kiln_batch *batch, uint32_t i)
{
    const struct kiln_function *f = &batch->dict.functions[i];
    struct {
        struct kiln_content_hash name, system_name, filename;
        int64_t line;
    } record = {content->strings.hashes[f->name], content->strings.hashes[f->system_name],
                content->strings.hashes[f->filename], f->start_line};

    return of_bytes(content->seed, &record, sizeof(record));
}

static struct kiln_content_hash hash_mapping(struct kiln_content *content,
                                             const struct kiln_batch *batch, uint32_t i)
{
    const struct kiln_mapping *m = &batch->dict.mappings[i];
    struct {
        uint64_t start, limit, offset;
        struct kiln_content_hash filename, attrs;
    } record = {m->start, m->limit, m->offset, content->strings.hashes[m->filename],
                content->sets.hashes[m->attrs]};

    return of_bytes(content->seed, &record, sizeof(record));
}

static struct kiln_content_hash hash_location(struct kiln_content *content,
                                              const struct kiln_batch *batch, uint32_t i)
{
    const struct kiln_location *l = &batch->dict.locations[i];
    struct {
        uint64_t address;
        struct kiln_content_hash mapping, attrs;
    } record = {l->address, content->mappings.hashes[l->mapping], content->sets.hashes[l->attrs]};
    struct kiln_content_hash h = of_bytes(content->seed, &record, sizeof(record));

    for (uint32_t k = 0; k < l->n; k++) {
        const struct kiln_line *line = &batch->dict.lines[l->first + k];
        struct {
            struct kiln_content_hash before, function;
            int64_t line, column;
        } part = {h, content->functions.hashes[line->function], line->line, line->column};

        h = of_bytes(content->seed, &part, sizeof(part));
    }
    return h;
}

static struct kiln_content_hash hash_link(struct kiln_content *content,
                                          const struct kiln_batch *batch, uint32_t i)
{
    return of_bytes(content->seed, &batch->dict.links[i], sizeof(struct kiln_link));
}

static struct kiln_content_hash hash_stack(struct kiln_content *content,
                                           const struct kiln_batch *batch, uint32_t i)
{
    struct kiln_range stack = batch->dict.stacks[i];
    const uint32_t *frames = batch->dict.frames + stack.first;

    for (uint32_t k = 0; k < stack.n; k++)
        content->frames[k] = content->locations.hashes[frames[k]];
    return of_bytes(content->seed, content->frames, stack.n * sizeof(*content->frames));
}

/* ---- learning ---- */

static int room(struct kiln_content *content, struct kiln_content_table *table, uint32_t n)
{
    return kiln_grow(&content->budget, (void **)&table->hashes, &table->cap, n,
                     sizeof(*table->hashes), ENTRIES_MAX);
}

static int room_for_frames(struct kiln_content *content, const struct kiln_batch *batch)
{
    uint32_t most = 1;

    for (uint32_t i = content->stacks.n; i < batch->dict.n_stacks; i++) {
        if (batch->dict.stacks[i].n > most)
            most = batch->dict.stacks[i].n;
    }
    return kiln_grow(&content->budget, (void **)&content->frames, &content->cap_frames, most,
                     sizeof(*content->frames), ENTRIES_MAX);
}

#define LEARN(table, hash_entry)                                                                   \
    do {                                                                                           \
        int r_ = batch->dict.n_##table > content->table.n                                          \
                     ? room(content, &content->table, batch->dict.n_##table)                       \
                     : 0;                                                                          \
                                                                                                   \
        if (r_ < 0)                                                                                \
            return r_;                                                                             \
        for (uint32_t i_ = content->table.n; i_ < batch->dict.n_##table; i_++)                     \
            content->table.hashes[i_] = hash_entry(content, batch, i_);                            \
        content->table.n = batch->dict.n_##table;                                                  \
    } while (0)

int kiln_content_learn(struct kiln_content *content, const struct kiln_batch *batch)
{
    int r = batch->dict.n_stacks > content->stacks.n ? room_for_frames(content, batch) : 0;

    if (r < 0)
        return r;
    LEARN(strings, hash_string);
    LEARN(attrs, hash_attr);
    LEARN(sets, hash_set);
    LEARN(functions, hash_function);
    LEARN(mappings, hash_mapping);
    LEARN(locations, hash_location);
    LEARN(links, hash_link);
    LEARN(stacks, hash_stack);
    return 0;
}

/* ---- profiles ---- */

static void add_observations(const struct kiln_content *content, const struct kiln_batch *batch,
                             const struct kiln_sample *s, struct kiln_content_hash *sum)
{
    const int64_t *values = kiln_sample_values(batch, s);
    const uint64_t *times = kiln_sample_times(batch, s);
    struct kiln_content_hash parts[3] = {content->stacks.hashes[s->stack],
                                         content->sets.hashes[s->attrs],
                                         content->links.hashes[s->link]};
    struct {
        struct kiln_content_hash identity;
        uint64_t shape, value, time;
    } record = {of_bytes(content->seed, parts, sizeof(parts)),
                s->has_values | (uint64_t)s->has_times << 1, 0, 0};

    for (uint32_t i = 0; i < s->n; i++) {
        record.value = values ? (uint64_t)values[i] : 0;
        record.time = times ? times[i] : 0;
        add(sum, of_bytes(content->seed, &record, sizeof(record)));
    }
}

struct kiln_content_hash kiln_content_profile(const struct kiln_content *content,
                                              const struct kiln_batch *batch, uint32_t profile,
                                              const struct kiln_content_place *place)
{
    const struct kiln_profile *p = &batch->profiles[profile];
    const struct kiln_resource *resource = &batch->resources[place->resource];
    const struct kiln_scope *scope = &batch->scopes[place->scope];
    const struct kiln_content_hash *strings = content->strings.hashes, *sets = content->sets.hashes;
    struct {
        struct kiln_content_hash texts[10], sets[3], payload;
        uint64_t period, time_ns, duration_ns;
        uint8_t id[16];
        struct kiln_content_hash observations;
    } record = {
        .texts = {strings[p->sample_type.type], strings[p->sample_type.unit],
                  strings[p->period_type.type], strings[p->period_type.unit],
                  strings[p->payload_format], strings[resource->schema_url], strings[scope->name],
                  strings[scope->version], strings[scope->schema_url]},
        .sets = {sets[p->attrs], sets[resource->attrs], sets[scope->attrs]},
        .payload = of_bytes(content->seed, p->payload.ptr, p->payload.len),
        .period = (uint64_t)p->period,
        .time_ns = p->time_ns,
        .duration_ns = p->duration_ns,
    };

    memcpy(record.id, p->id, sizeof(record.id));
    for (uint32_t i = 0; i < p->n_samples; i++)
        add_observations(content, batch, &batch->samples[place->first_sample + i],
                         &record.observations);
    return of_bytes(content->seed, &record, sizeof(record));
}
