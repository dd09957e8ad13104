/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "resolve.h"
#include "test.h"

/* ---- text ---- */

static void put_string(struct kiln_buf *out, const struct kiln_batch *batch, uint32_t string)
{
    struct kiln_str s = kiln_batch_str(batch, string);

    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < ' ' || s.ptr[i] > '~')
            kiln_buf_printf(out, "\\x%02x", (unsigned char)s.ptr[i]);
        else
            kiln_buf_putc(out, s.ptr[i]);
    }
}

static void put_value(struct kiln_buf *out, const struct kiln_batch *batch, struct kiln_value value)
{
    kiln_buf_printf(out, "%u:", value.kind);
    switch (value.kind) {
    case KILN_VALUE_STRING:
    case KILN_VALUE_BYTES:
        put_string(out, batch, (uint32_t)value.str);
        break;
    case KILN_VALUE_ARRAY:
    case KILN_VALUE_MAP:
        kiln_buf_putc(out, '[');
        for (uint32_t i = 0; i < value.n; i++) {
            const struct kiln_attr *child = &batch->dict.nested[value.first + i];

            put_string(out, batch, child->key);
            kiln_buf_putc(out, '=');
            put_value(out, batch, child->value);
            kiln_buf_putc(out, ',');
        }
        kiln_buf_putc(out, ']');
        break;
    default:
        kiln_buf_add_u64(out, value.bits);
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *take_text(struct kiln_buf *buf)
{
    char *text;
    size_t len;

    kiln_buf_putc(buf, '\0');
    assert_int_equal(buf->error, 0);
    kiln_buf_take(buf, &text, &len);
    return text;
}

/* A set has no order: its attributes are sorted by their text. */
static void put_set(struct kiln_buf *out, const struct kiln_batch *batch, uint32_t set)
{
    struct kiln_range range = batch->dict.sets[set];
    char *texts[64];

    assert_true(range.n <= 64);
    for (uint32_t i = 0; i < range.n; i++) {
        const struct kiln_attr *a = &batch->dict.attrs[batch->dict.members[range.first + i]];
        struct kiln_buf buf;

        kiln_buf_init(&buf, 1 << 20);
        put_string(&buf, batch, a->key);
        kiln_buf_putc(&buf, '=');
        put_value(&buf, batch, a->value);
        kiln_buf_putc(&buf, ' ');
        put_string(&buf, batch, a->unit);
        texts[i] = take_text(&buf);
    }
    qsort(texts, range.n, sizeof(*texts), by_text);
    kiln_buf_putc(out, '{');
    for (uint32_t i = 0; i < range.n; i++) {
        kiln_buf_printf(out, "%s;", texts[i]);
        kiln_free(texts[i]);
    }
    kiln_buf_putc(out, '}');
}

static void put_location(struct kiln_buf *out, const struct kiln_batch *batch, uint32_t location)
{
    const struct kiln_dict *d = &batch->dict;
    const struct kiln_location *l = &d->locations[location];
    const struct kiln_mapping *m = &d->mappings[l->mapping];

    kiln_buf_printf(out, "0x%" PRIx64 "@%" PRIx64 "-%" PRIx64 "+%" PRIx64 ":", l->address, m->start,
                    m->limit, m->offset);
    put_string(out, batch, m->filename);
    put_set(out, batch, m->attrs);
    put_set(out, batch, l->attrs);
    for (uint32_t i = 0; i < l->n; i++) {
        const struct kiln_line *line = &d->lines[l->first + i];
        const struct kiln_function *f = &d->functions[line->function];

        kiln_buf_putc(out, '/');
        put_string(out, batch, f->name);
        kiln_buf_putc(out, ',');
        put_string(out, batch, f->system_name);
        kiln_buf_putc(out, ',');
        put_string(out, batch, f->filename);
        kiln_buf_printf(out, "%" PRId64 ":%" PRId64 ":%" PRId64, f->start_line, line->line,
                        line->column);
    }
}

static void put_stack(struct kiln_buf *out, const struct kiln_batch *batch, uint32_t stack)
{
    struct kiln_range range = batch->dict.stacks[stack];

    for (uint32_t i = range.n; i-- > 0;) {
        put_location(out, batch, batch->dict.frames[range.first + i]);
        kiln_buf_puts(out, i ? ";" : " ");
    }
}

static void put_resource(struct kiln_buf *out, const struct kiln_batch *batch,
                         const struct kiln_resource *r)
{
    put_set(out, batch, r->attrs);
    put_string(out, batch, r->schema_url);
    for (uint32_t i = 0; i < r->n_entities; i++) {
        const struct kiln_entity *e = &batch->entities[r->first_entity + i];

        kiln_buf_puts(out, " entity ");
        put_string(out, batch, e->type);
        put_string(out, batch, e->schema_url);
        for (uint32_t k = 0; k < e->n_id_keys + e->n_description_keys; k++) {
            kiln_buf_putc(out, k == e->n_id_keys ? '/' : ',');
            put_string(out, batch, batch->entity_keys[e->first_key + k]);
        }
    }
    kiln_buf_putc(out, '|');
}

static void put_scope(struct kiln_buf *out, const struct kiln_batch *batch,
                      const struct kiln_scope *s)
{
    put_string(out, batch, s->name);
    kiln_buf_putc(out, ' ');
    put_string(out, batch, s->version);
    put_set(out, batch, s->attrs);
    put_string(out, batch, s->schema_url);
    kiln_buf_putc(out, '|');
}

static void put_profile(struct kiln_buf *out, const struct kiln_batch *batch,
                        const struct kiln_profile *p, int flags)
{
    put_string(out, batch, p->sample_type.type);
    kiln_buf_putc(out, '/');
    put_string(out, batch, p->sample_type.unit);
    kiln_buf_printf(out, " %" PRId64 " ", p->period);
    put_string(out, batch, p->period_type.type);
    kiln_buf_add_hex(out, p->id, sizeof(p->id));
    put_set(out, batch, p->attrs);
    if (!(flags & RESOLVE_NO_PROFILE_TIME))
        kiln_buf_printf(out, "%" PRIu64 "+%" PRIu64, p->time_ns, p->duration_ns);
    kiln_buf_putc(out, '|');
}

/* ---- lines ---- */

static void add_line(struct resolved *to, struct kiln_buf *head, struct kiln_buf *tail,
                     uint64_t count, int64_t sum)
{
    struct kiln_buf text;

    if (to->n == to->cap) {
        to->cap = to->cap ? to->cap * 2 : 64;
        to->lines = realloc(to->lines, to->cap * sizeof(*to->lines));
        assert_non_null(to->lines);
    }
    kiln_buf_init(&text, 1 << 20);
    kiln_buf_add_str(&text, kiln_buf_str(head));
    kiln_buf_add_str(&text, kiln_buf_str(tail));
    to->lines[to->n++] = (struct line){take_text(&text), count, sum};
}

static void add_sample(struct resolved *to, struct kiln_buf *head, const struct kiln_batch *batch,
                       const struct kiln_sample *s)
{
    const int64_t *values = kiln_sample_values(batch, s);
    const uint64_t *times = kiln_sample_times(batch, s);
    struct kiln_buf tail;
    size_t identity;

    kiln_buf_init(&tail, 1 << 20);
    put_stack(&tail, batch, s->stack);
    put_set(&tail, batch, s->attrs);
    kiln_buf_add_hex(&tail, &batch->dict.links[s->link], sizeof(struct kiln_link));
    kiln_buf_puts(&tail, values ? " v" : " ");
    identity = tail.len;
    for (uint32_t i = 0; i < s->n; i++) {
        tail.len = identity;
        if (times)
            kiln_buf_printf(&tail, "@%" PRIu64, times[i]);
        add_line(to, head, &tail, times != NULL, values ? values[i] : 1);
    }
    kiln_buf_done(&tail);
}

void resolve_add(struct resolved *to, const struct kiln_batch *batch, int flags)
{
    struct kiln_buf head, none;

    kiln_buf_init(&head, 1 << 20);
    kiln_buf_init(&none, 1);
    for (uint32_t r = 0; r < batch->n_resources; r++) {
        const struct kiln_resource *resource = &batch->resources[r];

        for (uint32_t s = 0; s < resource->n_scopes; s++) {
            const struct kiln_scope *scope = &batch->scopes[resource->first_scope + s];

            for (uint32_t p = 0; p < scope->n_profiles; p++) {
                const struct kiln_profile *profile = &batch->profiles[scope->first_profile + p];

                kiln_buf_clear(&head);
                put_resource(&head, batch, resource);
                put_scope(&head, batch, scope);
                put_profile(&head, batch, profile, flags);
                add_line(to, &head, &none, 0, 0);
                for (uint32_t i = 0; i < profile->n_samples; i++)
                    add_sample(to, &head, batch, &batch->samples[profile->first_sample + i]);
            }
        }
    }
    kiln_buf_done(&head);
}

static int by_line(const void *a, const void *b)
{
    return strcmp(((const struct line *)a)->text, ((const struct line *)b)->text);
}

char *resolve_text(struct resolved *r)
{
    struct kiln_buf out;

    kiln_buf_init(&out, 1u << 30);
    if (r->n)
        qsort(r->lines, r->n, sizeof(*r->lines), by_line);
    for (size_t i = 0; i < r->n; i++) {
        if (i + 1 < r->n && strcmp(r->lines[i].text, r->lines[i + 1].text) == 0) {
            r->lines[i + 1].count += r->lines[i].count;
            r->lines[i + 1].sum += r->lines[i].sum;
        } else {
            kiln_buf_printf(&out, "%s %" PRIu64 " %" PRId64 "\n", r->lines[i].text,
                            r->lines[i].count, r->lines[i].sum);
        }
        kiln_free(r->lines[i].text);
    }
    free(r->lines);
    *r = (struct resolved){0};
    return take_text(&out);
}

char *resolve_batch(const struct kiln_batch *batch, int flags)
{
    struct resolved lines = {0};

    resolve_add(&lines, batch, flags);
    return resolve_text(&lines);
}

/* ---- invariants ---- */

static void check_dict(const struct kiln_dict *d)
{
    CHECK_EQ(d->strings[0].len, 0);
    CHECK_EQ(d->stacks[0].n, 0);
    CHECK_EQ(d->sets[0].n, 0);
    for (uint32_t i = 0; i < d->n_functions; i++)
        CHECK(d->functions[i].name < d->n_strings && d->functions[i].filename < d->n_strings &&
              d->functions[i].system_name < d->n_strings);
    for (uint32_t i = 0; i < d->n_mappings; i++)
        CHECK(d->mappings[i].filename < d->n_strings && d->mappings[i].attrs < d->n_sets);
    for (uint32_t i = 0; i < d->n_locations; i++)
        CHECK(d->locations[i].mapping < d->n_mappings && d->locations[i].attrs < d->n_sets &&
              (uint64_t)d->locations[i].first + d->locations[i].n <= d->n_lines);
    for (uint32_t i = 0; i < d->n_lines; i++)
        CHECK(d->lines[i].function < d->n_functions);
    for (uint32_t i = 0; i < d->n_stacks; i++)
        CHECK((uint64_t)d->stacks[i].first + d->stacks[i].n <= d->n_frames);
    for (uint32_t i = 0; i < d->n_frames; i++)
        CHECK(d->frames[i] < d->n_locations);
    for (uint32_t i = 0; i < d->n_sets; i++) {
        for (uint32_t k = 1; k < d->sets[i].n; k++)
            CHECK(d->members[d->sets[i].first + k - 1] < d->members[d->sets[i].first + k]);
    }
    for (uint32_t i = 0; i < d->n_members; i++)
        CHECK(d->members[i] < d->n_attrs);
}

void check_invariants(const struct kiln_batch *batch)
{
    uint32_t at = 0;

    check_dict(&batch->dict);
    for (uint32_t i = 0; i < batch->n_profiles; i++) {
        CHECK_EQ(batch->profiles[i].first_sample, at);
        at += batch->profiles[i].n_samples;
    }
    CHECK_EQ(at, batch->n_samples);
    for (uint32_t i = 0; i < batch->n_samples; i++) {
        const struct kiln_sample *s = &batch->samples[i];

        CHECK(s->stack < batch->dict.n_stacks && s->attrs < batch->dict.n_sets &&
              s->link < batch->dict.n_links);
        CHECK((uint64_t)s->first + s->n * (s->has_values + s->has_times) <= batch->n_observations);
    }
}

/* ---- orphans ---- */

struct used {
    const struct kiln_batch *batch;
    uint8_t *strings, *functions, *mappings, *locations, *stacks, *links, *attrs, *sets;
};

static void use_value(struct used *u, struct kiln_value value)
{
    if (value.kind == KILN_VALUE_STRING || value.kind == KILN_VALUE_BYTES)
        u->strings[value.str] = 1;
    if (value.kind != KILN_VALUE_ARRAY && value.kind != KILN_VALUE_MAP)
        return;
    for (uint32_t i = 0; i < value.n; i++) {
        u->strings[u->batch->dict.nested[value.first + i].key] = 1;
        u->strings[u->batch->dict.nested[value.first + i].unit] = 1;
        use_value(u, u->batch->dict.nested[value.first + i].value);
    }
}

static void use_set(struct used *u, uint32_t set)
{
    struct kiln_range range = u->batch->dict.sets[set];

    u->sets[set] = 1;
    for (uint32_t i = 0; i < range.n; i++) {
        uint32_t attr = u->batch->dict.members[range.first + i];

        u->attrs[attr] = 1;
        u->strings[u->batch->dict.attrs[attr].key] = 1;
        u->strings[u->batch->dict.attrs[attr].unit] = 1;
        use_value(u, u->batch->dict.attrs[attr].value);
    }
}

static void use_location(struct used *u, uint32_t location)
{
    const struct kiln_dict *d = &u->batch->dict;
    const struct kiln_location *l = &d->locations[location];

    u->locations[location] = 1;
    u->mappings[l->mapping] = 1;
    u->strings[d->mappings[l->mapping].filename] = 1;
    use_set(u, d->mappings[l->mapping].attrs);
    use_set(u, l->attrs);
    for (uint32_t i = 0; i < l->n; i++) {
        uint32_t function = d->lines[l->first + i].function;

        u->functions[function] = 1;
        u->strings[d->functions[function].name] = 1;
        u->strings[d->functions[function].system_name] = 1;
        u->strings[d->functions[function].filename] = 1;
    }
}

static void use_heads(struct used *u)
{
    const struct kiln_batch *b = u->batch;

    for (uint32_t i = 0; i < b->n_resources; i++) {
        use_set(u, b->resources[i].attrs);
        u->strings[b->resources[i].schema_url] = 1;
    }
    for (uint32_t i = 0; i < b->n_entities; i++)
        u->strings[b->entities[i].schema_url] = u->strings[b->entities[i].type] = 1;
    for (uint32_t i = 0; i < b->n_entity_keys; i++)
        u->strings[b->entity_keys[i]] = 1;
    for (uint32_t i = 0; i < b->n_scopes; i++) {
        use_set(u, b->scopes[i].attrs);
        u->strings[b->scopes[i].name] = u->strings[b->scopes[i].version] = 1;
        u->strings[b->scopes[i].schema_url] = 1;
    }
    for (uint32_t i = 0; i < b->n_profiles; i++) {
        const struct kiln_profile *p = &b->profiles[i];

        use_set(u, p->attrs);
        u->strings[p->sample_type.type] = u->strings[p->sample_type.unit] = 1;
        u->strings[p->period_type.type] = u->strings[p->period_type.unit] = 1;
        u->strings[p->payload_format] = 1;
    }
}

static void check_all_used(uint8_t *used, uint32_t n, const char *table)
{
    for (uint32_t i = 1; i < n; i++) {
        if (!used[i])
            fail_msg("%s[%u] is used by nothing", table, i);
    }
    free(used);
}

void check_no_orphans(const struct kiln_batch *batch)
{
    const struct kiln_dict *d = &batch->dict;
    struct used u = {batch,
                     calloc(d->n_strings, 1),
                     calloc(d->n_functions, 1),
                     calloc(d->n_mappings, 1),
                     calloc(d->n_locations, 1),
                     calloc(d->n_stacks, 1),
                     calloc(d->n_links, 1),
                     calloc(d->n_attrs, 1),
                     calloc(d->n_sets, 1)};

    use_heads(&u);
    for (uint32_t i = 0; i < batch->n_samples; i++) {
        struct kiln_range range = d->stacks[batch->samples[i].stack];

        u.stacks[batch->samples[i].stack] = u.links[batch->samples[i].link] = 1;
        use_set(&u, batch->samples[i].attrs);
        for (uint32_t k = 0; k < range.n; k++)
            use_location(&u, d->frames[range.first + k]);
    }
    check_all_used(u.strings, d->n_strings, "strings");
    check_all_used(u.functions, d->n_functions, "functions");
    check_all_used(u.mappings, d->n_mappings, "mappings");
    check_all_used(u.locations, d->n_locations, "locations");
    check_all_used(u.stacks, d->n_stacks, "stacks");
    check_all_used(u.links, d->n_links, "links");
    check_all_used(u.attrs, d->n_attrs, "attrs");
    check_all_used(u.sets, d->n_sets, "sets");
}
