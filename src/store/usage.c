/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every series of every block and head adds to a row.  In the order of keys those of one service
 * and type stand together, so each block gives few parts; parts are collected unsorted, with the
 * names behind each other in one buffer, and sorted and added up at the end.
 */
#include "store/usage.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "core/series.h"
#include "store/store_int.h"

#define MEMORY_BYTES ((size_t)64 << 20)

/* A row whose texts are places in the buffer while that grows. */
struct place {
    size_t tenant, service, type;
    uint32_t tenant_len, service_len, type_len;
};

struct collect {
    struct kiln_usage_list *list;
    struct place *places; /* parallel to rows */
    uint32_t cap_places;
    struct kiln_str tenant;
    size_t tenant_at;
};

/* ---- collecting ---- */

static struct kiln_str at(const struct kiln_buf *texts, size_t start, uint32_t len)
{
    return (struct kiln_str){texts->ptr + start, len};
}

/* The part of this service and type that was made last, or a new one. */
static struct kiln_usage *part(struct collect *c, uint32_t first, const struct kiln_series *s)
{
    struct kiln_usage_list *list = c->list;
    struct kiln_buf *texts = &list->texts;
    struct place *p = list->n > first ? &c->places[list->n - 1] : NULL;

    if (p && kiln_str_eq(at(texts, p->service, p->service_len), s->service) &&
        kiln_str_eq(at(texts, p->type, p->type_len), s->type))
        return &list->rows[list->n - 1];
    if (kiln_grow(&list->budget, (void **)&list->rows, &list->cap, (uint64_t)list->n + 1,
                  sizeof(*list->rows), UINT32_MAX) < 0 ||
        kiln_grow(&list->budget, (void **)&c->places, &c->cap_places, (uint64_t)list->n + 1,
                  sizeof(*c->places), UINT32_MAX) < 0)
        return NULL;
    p = &c->places[list->n];
    *p = (struct place){.tenant = c->tenant_at,
                        .service = texts->len,
                        .type = texts->len + s->service.len,
                        .tenant_len = (uint32_t)c->tenant.len,
                        .service_len = (uint32_t)s->service.len,
                        .type_len = (uint32_t)s->type.len};
    kiln_buf_add_str(texts, s->service);
    kiln_buf_add_str(texts, s->type);
    list->rows[list->n] = (struct kiln_usage){.min_ns = UINT64_MAX};
    return texts->error ? NULL : &list->rows[list->n++];
}

static void widen(struct kiln_usage *u, uint64_t min_ns, uint64_t max_ns)
{
    u->min_ns = min_ns < u->min_ns ? min_ns : u->min_ns;
    u->max_ns = max_ns > u->max_ns ? max_ns : u->max_ns;
}

static int collect_series(struct collect *c, uint32_t first, const struct kiln_block_series *s)
{
    struct kiln_series parsed;
    struct kiln_usage *u;
    int r = kiln_series_parse(s->key, &parsed);

    if (r < 0)
        return r;
    u = part(c, first, &parsed);
    if (!u)
        return -ENOMEM;
    u->series++;
    u->profiles += s->n_profiles;
    u->samples += s->n_samples;
    u->observations += s->n_observations;
    u->bytes += s->bytes;
    widen(u, s->min_ns, s->max_ns);
    return 0;
}

/* What a block has beside its samples is shared out, the last part takes what rounding left. */
static void share_out(struct kiln_usage *parts, uint32_t n, const struct kiln_block_info *info)
{
    uint64_t level = info->level < KILN_USAGE_LEVELS ? info->level : KILN_USAGE_LEVELS - 1;
    uint64_t sum = 0, all, rest;

    for (uint32_t i = 0; i < n; i++)
        sum += parts[i].bytes;
    all = rest = info->bytes > sum ? info->bytes - sum : 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t share =
            sum ? (uint64_t)((double)all * (double)parts[i].bytes / (double)sum) : rest;

        share = i + 1 == n || share > rest ? rest : share;
        parts[i].bytes += share;
        parts[i].levels[level]++;
        rest -= share;
    }
}

static int collect_block(struct collect *c, const struct kiln_block *block)
{
    const struct kiln_block_info *info = kiln_block_info(block);
    uint32_t first = c->list->n;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < info->n_series; i++) {
        struct kiln_block_series s;

        r = kiln_block_series(block, i, &s);
        s.max_ns = r == 0 ? kiln_block_newest(info, s.max_ns, kiln_clock_unix_ns()) : 0;
        if (r == 0)
            r = collect_series(c, first, &s);
    }
    if (r == 0)
        share_out(c->list->rows + first, c->list->n - first, info);
    return r;
}

/* Series of a head are in no order: each is a part of its own. */
static int collect_head(struct collect *c, const struct kiln_head *head)
{
    uint32_t n = head ? kiln_head_info(head)->n_series : 0;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < n; i++) {
        const struct kiln_head_series *h = kiln_head_series(head, i);
        struct kiln_block_series s = {.key = h->key,
                                      .min_ns = h->min_ns,
                                      .max_ns = h->max_ns,
                                      .n_profiles = h->n_profiles,
                                      .n_samples = h->n_samples,
                                      .n_observations = h->n_observations};

        r = collect_series(c, c->list->n, &s);
        if (r == 0)
            c->list->rows[c->list->n - 1].in_head = h->n_profiles;
    }
    return r;
}

static int collect_tenant(struct collect *c, struct kiln_tenant *tenant)
{
    struct kiln_block_list blocks;
    int r = kiln_catalog_list(tenant, &blocks);

    if (r < 0)
        return r;
    c->tenant = kiln_str_of(tenant->name);
    c->tenant_at = c->list->texts.len;
    kiln_buf_add_str(&c->list->texts, c->tenant);
    for (uint32_t i = 0; r == 0 && i < blocks.n; i++)
        r = collect_block(c, blocks.blocks[i]);
    kiln_block_list_done(&blocks);
    pthread_mutex_lock(&tenant->lock);
    if (r == 0)
        r = collect_head(c, tenant->cutting);
    if (r == 0)
        r = collect_head(c, tenant->head);
    pthread_mutex_unlock(&tenant->lock);
    return r;
}

/* ---- adding up ---- */

static int by_names(const void *a, const void *b)
{
    const struct kiln_usage *x = a, *y = b;
    int order = kiln_str_cmp(x->tenant, y->tenant);

    if (order == 0)
        order = kiln_str_cmp(x->service, y->service);
    return order ? order : kiln_str_cmp(x->type, y->type);
}

static void add(struct kiln_usage *to, const struct kiln_usage *from)
{
    to->series += from->series;
    to->profiles += from->profiles;
    to->samples += from->samples;
    to->observations += from->observations;
    to->bytes += from->bytes;
    to->in_head += from->in_head;
    for (uint32_t i = 0; i < KILN_USAGE_LEVELS; i++)
        to->levels[i] += from->levels[i];
    widen(to, from->min_ns, from->max_ns);
}

static void add_up(struct collect *c)
{
    struct kiln_usage_list *list = c->list;
    const struct kiln_buf *texts = &list->texts;
    uint32_t n = 0;

    for (uint32_t i = 0; i < list->n; i++) {
        const struct place *p = &c->places[i];

        list->rows[i].tenant = at(texts, p->tenant, p->tenant_len);
        list->rows[i].service = at(texts, p->service, p->service_len);
        list->rows[i].type = at(texts, p->type, p->type_len);
    }
    if (list->n)
        qsort(list->rows, list->n, sizeof(*list->rows), by_names);
    for (uint32_t i = 0; i < list->n; i++) {
        if (n && by_names(&list->rows[n - 1], &list->rows[i]) == 0)
            add(&list->rows[n - 1], &list->rows[i]);
        else
            list->rows[n++] = list->rows[i];
    }
    list->n = n;
}

int kiln_usage_collect(struct kiln_engine *engine, struct kiln_str tenant,
                       struct kiln_usage_list *ret_list, struct kiln_err *err)
{
    struct kiln_store *store = kiln_store_of(engine);
    struct kiln_usage_list list = {.budget.limit = MEMORY_BYTES};
    struct collect c = {.list = &list};
    int r = kiln_store_settle_within(store, NULL, err);

    if (r < 0)
        return r;
    kiln_buf_init(&list.texts, MEMORY_BYTES);
    for (struct kiln_tenant *t = kiln_tenant_next(store, NULL); t && r == 0;
         t = kiln_tenant_next(store, t)) {
        if (tenant.len == 0 || kiln_str_eq(tenant, kiln_str_of(t->name)))
            r = collect_tenant(&c, t);
    }
    if (r == 0)
        add_up(&c);
    kiln_free(c.places);
    if (r < 0) {
        kiln_usage_done(&list);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    engine->ops->stats(engine, tenant, &list.total);
    *ret_list = list;
    return 0;
}

void kiln_usage_done(struct kiln_usage_list *list)
{
    kiln_buf_done(&list->texts);
    kiln_free(list->rows);
    list->rows = NULL;
    list->n = list->cap = 0;
}

/* ---- JSON ---- */

static void put_number(struct kiln_json_out *w, const char *name, uint64_t number)
{
    kiln_json_put_name(w, name);
    kiln_json_put_u64(w, number);
}

static void put_text(struct kiln_json_out *w, const char *name, struct kiln_str text)
{
    kiln_json_put_name(w, name);
    kiln_json_put_str(w, text);
}

static void put_row(struct kiln_json_out *w, const struct kiln_usage *u)
{
    kiln_json_put_object(w);
    put_text(w, "tenant", u->tenant);
    put_text(w, "service", u->service);
    put_text(w, "type", u->type);
    put_number(w, "series", u->series);
    put_number(w, "profiles", u->profiles);
    put_number(w, "samples", u->samples);
    put_number(w, "observations", u->observations);
    put_number(w, "bytes", u->bytes);
    put_number(w, "oldest_ns", u->min_ns);
    put_number(w, "newest_ns", u->max_ns);
    put_number(w, "in_memory", u->in_head);
    kiln_json_put_name(w, "levels");
    kiln_json_put_array(w);
    for (uint32_t i = 0; i < KILN_USAGE_LEVELS; i++)
        kiln_json_put_u64(w, u->levels[i]);
    kiln_json_end_array(w);
    kiln_json_end_object(w);
}

void kiln_usage_format(const struct kiln_usage_list *list, struct kiln_buf *out)
{
    struct kiln_json_out w;

    kiln_json_out_init(&w, out, 2);
    kiln_json_put_object(&w);
    put_number(&w, "blocks", list->total.blocks);
    put_number(&w, "block_bytes", list->total.block_bytes);
    put_number(&w, "log_bytes", list->total.log_bytes);
    put_number(&w, "head_bytes", list->total.head_bytes);
    put_number(&w, "series", list->total.series);
    put_number(&w, "profiles", list->total.profiles);
    put_number(&w, "samples", list->total.samples);
    put_number(&w, "observations", list->total.observations);
    put_number(&w, "oldest_ns", list->total.oldest_ns);
    put_number(&w, "newest_ns", list->total.newest_ns);
    put_number(&w, "set_aside", list->total.set_aside);
    kiln_json_put_name(&w, "rows");
    kiln_json_put_array(&w);
    for (uint32_t i = 0; i < list->n; i++)
        put_row(&w, &list->rows[i]);
    kiln_json_end_array(&w);
    kiln_json_end_object(&w);
    kiln_buf_putc(out, '\n');
}
