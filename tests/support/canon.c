/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each dictionary entry becomes a text, in which what it refers to stands as text or as the hash of
 * its text; what has no order is sorted.
 */
#include "canon.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define TEXT_MAX ((size_t)1 << 30)
#define AHEAD_NS (600 * UINT64_C(1000000000))

struct work {
    const struct kiln_batch *batch;
    struct kiln_buf text;
    struct canon_hash *sets, *locations, *stacks; /* by index */
};

static struct canon_hash hash_of(struct kiln_buf *text)
{
    XXH128_hash_t h = XXH3_128bits(text->len ? text->ptr : "", text->len);

    kiln_buf_clear(text);
    return (struct canon_hash){h.low64, h.high64};
}

static int by_hash(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct canon_hash));
}

/* ---- texts ---- */

static void put_number(struct kiln_buf *text, const char *name, uint64_t number)
{
    kiln_buf_puts(text, name);
    kiln_buf_add_u64(text, number);
}

static void put_hash(struct kiln_buf *text, const char *name, struct canon_hash hash)
{
    kiln_buf_puts(text, name);
    kiln_buf_add_hex(text, (const uint8_t *)&hash, sizeof(hash));
}

static void put_string(struct kiln_buf *text, const struct kiln_batch *batch, const char *name,
                       uint32_t string)
{
    struct kiln_str s = kiln_batch_str(batch, string);

    put_number(text, name, s.len);
    kiln_buf_putc(text, ':');
    kiln_buf_add_str(text, s);
}

static void put_value(struct kiln_buf *text, const struct kiln_batch *batch,
                      const struct kiln_value *value)
{
    put_number(text, " kind ", value->kind);
    switch (value->kind) {
    case KILN_VALUE_STRING:
    case KILN_VALUE_BYTES:
        put_string(text, batch, " ", (uint32_t)value->str);
        break;
    case KILN_VALUE_ARRAY:
    case KILN_VALUE_MAP:
        put_number(text, " of ", value->n);
        for (uint32_t i = 0; i < value->n; i++) {
            const struct kiln_attr *child = &batch->dict.nested[value->first + i];

            put_string(text, batch, " key ", child->key);
            put_string(text, batch, " unit ", child->unit);
            put_value(text, batch, &child->value);
        }
        break;
    default:
        put_number(text, " ", value->bits);
    }
}

static struct canon_hash set_hash(struct work *w, uint32_t index)
{
    struct kiln_range set = w->batch->dict.sets[index];
    struct canon_hash *members = calloc(set.n + 1, sizeof(*members));

    for (uint32_t i = 0; i < set.n; i++) {
        const struct kiln_attr *attr = &w->batch->dict.attrs[w->batch->dict.members[set.first + i]];

        put_string(&w->text, w->batch, "key ", attr->key);
        put_string(&w->text, w->batch, " unit ", attr->unit);
        put_value(&w->text, w->batch, &attr->value);
        members[i] = hash_of(&w->text);
    }
    qsort(members, set.n, sizeof(*members), by_hash);
    for (uint32_t i = 0; i < set.n; i++)
        put_hash(&w->text, " ", members[i]);
    free(members);
    return hash_of(&w->text);
}

/* Whether a mapping says which code it holds. */
static bool is_code(const struct work *w, const struct kiln_mapping *m)
{
    const struct kiln_dict *d = &w->batch->dict;
    struct kiln_str file = kiln_batch_str(w->batch, m->filename);

    for (uint32_t i = 0; i < d->sets[m->attrs].n; i++) {
        uint32_t attr = d->members[d->sets[m->attrs].first + i];

        if (kiln_str_starts(kiln_batch_str(w->batch, d->attrs[attr].key),
                            KILN_STR("process.executable.build_id.")))
            return true;
    }
    return kiln_str_starts(file, KILN_STR("/")) && !kiln_str_starts(file, KILN_STR("//"));
}

/* Code is kept where its file has it, and addresses in it move along. */
static void move_to_file(const struct work *w, struct kiln_mapping *m, uint64_t *address)
{
    uint64_t size = m->limit - m->start;

    if (m->limit <= m->start || m->offset > UINT64_MAX - size || !is_code(w, m))
        return;
    if (*address >= m->start && *address < m->limit && *address)
        *address += m->offset - m->start;
    m->start = m->offset;
    m->limit = m->offset + size;
}

static struct canon_hash location_hash(struct work *w, uint32_t index)
{
    const struct kiln_dict *d = &w->batch->dict;
    const struct kiln_location *l = &d->locations[index];
    struct kiln_mapping m = d->mappings[l->mapping];
    uint64_t address = l->address;

    move_to_file(w, &m, &address);
    put_number(&w->text, "at ", address);
    put_hash(&w->text, " ", w->sets[l->attrs]);
    put_string(&w->text, w->batch, " mapping ", m.filename);
    put_number(&w->text, " ", m.start);
    put_number(&w->text, " ", m.limit);
    put_number(&w->text, " ", m.offset);
    put_hash(&w->text, " ", w->sets[m.attrs]);
    for (uint32_t i = 0; i < l->n; i++) {
        const struct kiln_line *line = &d->lines[l->first + i];
        const struct kiln_function *f = &d->functions[line->function];

        put_string(&w->text, w->batch, " function ", f->name);
        put_string(&w->text, w->batch, " ", f->system_name);
        put_string(&w->text, w->batch, " ", f->filename);
        put_number(&w->text, " ", (uint64_t)f->start_line);
        put_number(&w->text, " line ", (uint64_t)line->line);
        put_number(&w->text, " ", (uint64_t)line->column);
    }
    return hash_of(&w->text);
}

static struct canon_hash stack_hash(struct work *w, uint32_t index)
{
    struct kiln_range stack = w->batch->dict.stacks[index];

    for (uint32_t i = 0; i < stack.n; i++)
        put_hash(&w->text, " ", w->locations[w->batch->dict.frames[stack.first + i]]);
    return hash_of(&w->text);
}

static void begin(struct work *w, const struct kiln_batch *batch)
{
    const struct kiln_dict *d = &batch->dict;

    *w = (struct work){.batch = batch};
    kiln_buf_init(&w->text, TEXT_MAX);
    w->sets = calloc(d->n_sets + 1, sizeof(*w->sets));
    w->locations = calloc(d->n_locations + 1, sizeof(*w->locations));
    w->stacks = calloc(d->n_stacks + 1, sizeof(*w->stacks));
    for (uint32_t i = 0; i < d->n_sets; i++)
        w->sets[i] = set_hash(w, i);
    for (uint32_t i = 0; i < d->n_locations; i++)
        w->locations[i] = location_hash(w, i);
    for (uint32_t i = 0; i < d->n_stacks; i++)
        w->stacks[i] = stack_hash(w, i);
}

static void end(struct work *w)
{
    kiln_buf_done(&w->text);
    free(w->sets);
    free(w->locations);
    free(w->stacks);
}

/* ---- profiles ---- */

static void put_head(struct work *w, const struct kiln_profile *p, uint64_t time_ns)
{
    struct kiln_buf *text = &w->text;

    put_string(text, w->batch, "profile of ", p->sample_type.type);
    put_string(text, w->batch, " ", p->sample_type.unit);
    put_string(text, w->batch, " each ", p->period_type.type);
    put_string(text, w->batch, " ", p->period_type.unit);
    put_number(text, " ", (uint64_t)p->period);
    put_number(text, " at ", time_ns);
    put_number(text, " for ", p->duration_ns);
    put_number(text, " payload ", p->payload.len);
    kiln_buf_putc(text, ':');
    kiln_buf_add_str(text, p->payload);
    put_string(text, w->batch, " ", p->payload_format);
    kiln_buf_puts(text, " id ");
    kiln_buf_add_hex(text, p->id, sizeof(p->id));
    put_hash(text, " ", w->sets[p->attrs]);
}

static void put_place(struct work *w, const struct kiln_resource *resource,
                      const struct kiln_scope *scope)
{
    struct kiln_buf *text = &w->text;

    put_hash(text, " resource ", w->sets[resource->attrs]);
    put_string(text, w->batch, " ", resource->schema_url);
    put_string(text, w->batch, " scope ", scope->name);
    put_string(text, w->batch, " ", scope->version);
    put_string(text, w->batch, " ", scope->schema_url);
    put_hash(text, " ", w->sets[scope->attrs]);
}

static void put_rest(struct work *w, const struct kiln_resource *resource,
                     const struct kiln_scope *scope, const struct kiln_profile *p)
{
    put_number(&w->text, " dropped ", resource->dropped_attrs);
    put_number(&w->text, " ", scope->dropped_attrs);
    put_number(&w->text, " ", p->dropped_attrs);
    for (uint32_t i = 0; i < resource->n_entities; i++) {
        const struct kiln_entity *e = &w->batch->entities[resource->first_entity + i];

        put_string(&w->text, w->batch, " entity ", e->schema_url);
        put_string(&w->text, w->batch, " ", e->type);
        put_number(&w->text, " ", e->n_id_keys);
        for (uint32_t k = 0; k < e->n_id_keys + e->n_description_keys; k++)
            put_string(&w->text, w->batch, " ", w->batch->entity_keys[e->first_key + k]);
    }
}

static uint32_t count_observations(const struct kiln_batch *batch, const struct kiln_profile *p)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->n_samples; i++)
        n += batch->samples[p->first_sample + i].n;
    return n;
}

static bool is_ahead(const struct kiln_profile *p, uint64_t arrival_ns)
{
    return arrival_ns &&
           (p->time_ns == 0 || (p->time_ns > arrival_ns && p->time_ns - arrival_ns > AHEAD_NS));
}

/* When a sample counts that arrives with the timestamp `at`: within its profile.  Without
 * `arrival_ns` it has been stored, and its timestamp is the time that counts. */
static uint64_t time_within(const struct kiln_profile *p, uint64_t at, uint64_t arrival_ns)
{
    uint64_t own = p->time_ns ? p->time_ns : arrival_ns;
    uint64_t start = is_ahead(p, arrival_ns) ? arrival_ns : own;
    uint64_t longest = arrival_ns + AHEAD_NS - start;
    uint64_t offset = at > own ? at - own : 0;

    if (!arrival_ns)
        return at;
    if (p->duration_ns && p->duration_ns < longest)
        longest = p->duration_ns;
    return start + (offset < longest ? offset : longest);
}

/* The hash of each observation, with what it is of; sorted. */
static struct canon_hash observations_hash(struct work *w, const struct kiln_profile *p,
                                           uint64_t arrival_ns)
{
    uint32_t n = count_observations(w->batch, p), at = 0;
    struct canon_hash *all = calloc(n + 1, sizeof(*all));
    struct {
        struct canon_hash stack, attrs;
        struct kiln_link link;
        uint64_t has, value, time;
    } row;
    XXH128_hash_t h;

    for (uint32_t i = 0; i < p->n_samples; i++) {
        const struct kiln_sample *s = &w->batch->samples[p->first_sample + i];
        const int64_t *values = kiln_sample_values(w->batch, s);
        const uint64_t *times = kiln_sample_times(w->batch, s);

        for (uint32_t k = 0; k < s->n && (values || times); k++) {
            memset(&row, 0, sizeof(row));
            row.stack = w->stacks[s->stack];
            row.attrs = w->sets[s->attrs];
            row.link = w->batch->dict.links[s->link];
            row.has = (values != NULL) + 2 * (times != NULL);
            row.value = values ? (uint64_t)values[k] : 0;
            row.time = times ? time_within(p, times[k], arrival_ns) : 0;
            h = XXH3_128bits(&row, sizeof(row));
            all[at++] = (struct canon_hash){h.low64, h.high64};
        }
    }
    qsort(all, at, sizeof(*all), by_hash);
    h = XXH3_128bits(all, at * sizeof(*all));
    free(all);
    return (struct canon_hash){h.low64, h.high64};
}

static struct canon_profile profile_of(struct work *w, const struct kiln_resource *resource,
                                       const struct kiln_scope *scope, uint32_t number,
                                       uint64_t arrival_ns)
{
    const struct kiln_profile *p = &w->batch->profiles[number];
    struct canon_hash observations = observations_hash(w, p, arrival_ns);
    struct canon_profile made = {.number = number, .arrived = is_ahead(p, arrival_ns)};

    put_head(w, p, made.arrived ? arrival_ns : p->time_ns);
    put_place(w, resource, scope);
    put_hash(&w->text, " observations ", observations);
    made.what = hash_of(&w->text);
    put_hash(&w->text, "", made.what);
    put_rest(w, resource, scope, p);
    made.whole = hash_of(&w->text);
    return made;
}

static int by_profile(const void *a, const void *b)
{
    const struct canon_profile *x = a, *y = b;
    int order = by_hash(&x->what, &y->what);

    return order ? order : by_hash(&x->whole, &y->whole);
}

struct canon canon_of(const struct kiln_batch *batch, uint64_t arrival_ns)
{
    struct canon c = {.profiles = calloc(batch->n_profiles + 1, sizeof(*c.profiles))};
    struct work w;

    begin(&w, batch);
    for (uint32_t r = 0; r < batch->n_resources; r++) {
        const struct kiln_resource *resource = &batch->resources[r];

        for (uint32_t s = 0; s < resource->n_scopes; s++) {
            const struct kiln_scope *scope = &batch->scopes[resource->first_scope + s];

            for (uint32_t p = 0; p < scope->n_profiles; p++)
                c.profiles[c.n++] =
                    profile_of(&w, resource, scope, scope->first_profile + p, arrival_ns);
        }
    }
    end(&w);
    for (uint32_t i = 0; i < c.n; i++)
        c.n_arrived += c.profiles[i].arrived;
    qsort(c.profiles, c.n, sizeof(*c.profiles), by_profile);
    return c;
}

void canon_add(struct canon *c, const struct canon *more)
{
    c->profiles = realloc(c->profiles, (c->n + more->n + 1) * sizeof(*c->profiles));
    memcpy(c->profiles + c->n, more->profiles, more->n * sizeof(*more->profiles));
    c->n += more->n;
    qsort(c->profiles, c->n, sizeof(*c->profiles), by_profile);
}

void canon_done(struct canon *c)
{
    free(c->profiles);
    *c = (struct canon){0};
}

/* The resource and the scope of a profile. */
static void find_place(const struct kiln_batch *batch, uint32_t profile,
                       const struct kiln_resource **ret_resource,
                       const struct kiln_scope **ret_scope)
{
    for (uint32_t r = 0; r < batch->n_resources; r++) {
        const struct kiln_resource *resource = &batch->resources[r];

        for (uint32_t s = 0; s < resource->n_scopes; s++) {
            const struct kiln_scope *scope = &batch->scopes[resource->first_scope + s];

            if (profile >= scope->first_profile &&
                profile - scope->first_profile < scope->n_profiles) {
                *ret_resource = resource;
                *ret_scope = scope;
            }
        }
    }
}

void canon_print(const struct kiln_batch *batch, uint32_t profile, struct kiln_buf *out)
{
    const struct kiln_profile *p = &batch->profiles[profile];
    const struct kiln_resource *resource = NULL;
    const struct kiln_scope *scope = NULL;
    struct canon_hash observations;
    struct work w;

    find_place(batch, profile, &resource, &scope);
    begin(&w, batch);
    observations = observations_hash(&w, p, 0);
    put_head(&w, p, p->time_ns);
    put_place(&w, resource, scope);
    put_rest(&w, resource, scope, p);
    put_hash(&w.text, " observations ", observations);
    put_number(&w.text, ", ", count_observations(batch, p));
    kiln_buf_add_str(out, kiln_buf_str(&w.text));
    end(&w);
}

/* The profiles from `at` on that are the same. */
static uint32_t group_end(const struct canon *c, uint32_t at)
{
    uint32_t end = at;

    while (end < c->n && by_hash(&c->profiles[end].what, &c->profiles[at].what) == 0)
        end++;
    return end;
}

/* How often a store keeps them: those with the time of arrival cannot be recognised. */
static uint32_t kept_times(const struct canon *c, uint32_t from, uint32_t to)
{
    uint32_t arrived = 0;

    for (uint32_t i = from; i < to; i++)
        arrived += c->profiles[i].arrived;
    return arrived + (arrived < to - from);
}

/* Whether one of the profiles is wholly equal. */
static bool is_whole(const struct canon *sent, uint32_t from, uint32_t to,
                     const struct canon_profile *got)
{
    for (uint32_t i = from; i < to; i++) {
        if (by_hash(&sent->profiles[i].whole, &got->whole) == 0)
            return true;
    }
    return false;
}

bool canon_same(const struct canon *sent, const struct canon *got, uint32_t *ret_sent,
                uint32_t *ret_got)
{
    uint32_t i = 0, k = 0;
    bool same = true;

    while (same && (i < sent->n || k < got->n)) {
        uint32_t i_end = group_end(sent, i), k_end = group_end(got, k);

        same = i < sent->n && k < got->n &&
               by_hash(&sent->profiles[i].what, &got->profiles[k].what) == 0 &&
               kept_times(sent, i, i_end) == k_end - k;
        for (uint32_t n = k; same && n < k_end; n++)
            same = is_whole(sent, i, i_end, &got->profiles[n]);
        if (same) {
            i = i_end;
            k = k_end;
        }
    }
    *ret_sent = i < sent->n ? sent->profiles[i].number : UINT32_MAX;
    *ret_got = k < got->n ? got->profiles[k].number : UINT32_MAX;
    return same;
}
