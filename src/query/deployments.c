/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All series of the store are gone through once; series of one deployment add up in one row, found
 * by a hash of what tells it.  In the order of keys the series of a service stand together, so this
 * is quick, and nothing but footers of blocks is read.
 */
#include "query/deployments.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "core/intern.h"

#define MEMORY_BYTES ((size_t)64 << 20)

/* Labels that tell a deployment, the best first. */
enum { VERSION, COMMIT, DEPLOYMENT, KINDS };
static const char *const labels[KINDS][2] = {
    [VERSION] = {"service.version", "version"},
    [COMMIT] = {"git.commit", NULL},
    [DEPLOYMENT] = {"deployment.id", "deployment_id"},
};

struct finding {
    struct kiln_deployments *list;
    struct kiln_intern index;    /* rows by everything that tells them */
    struct kiln_intern versions; /* by service and version, and by service and commit */
    int error;
};

/* ---- what a series says ---- */

struct told_by {
    struct kiln_str values[KINDS];
    const char *names[KINDS]; /* of the labels that have them */
};

static void read_labels(const struct kiln_series *series, struct told_by *ret)
{
    *ret = (struct told_by){0};
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        for (uint32_t i = 0; i < 2 && labels[kind][i] && !ret->values[kind].len; i++) {
            ret->values[kind] = kiln_series_get(series, kiln_str_of(labels[kind][i]));
            ret->names[kind] = labels[kind][i];
        }
    }
}

/* The first kind that is said; KINDS: none is. */
static uint32_t first_kind(const struct told_by *by)
{
    uint32_t kind = 0;

    while (kind < KINDS && !by->values[kind].len)
        kind++;
    return kind;
}

static bool is_same(const struct kiln_deployment *row, struct kiln_str service,
                    const struct told_by *by)
{
    uint32_t kind = first_kind(by);

    return kiln_str_eq(row->service, service) && kiln_str_eq(row->version, by->values[kind]) &&
           kiln_str_eq(row->label, kiln_str_of(by->names[kind])) &&
           kiln_str_eq(row->commit, by->values[COMMIT]) &&
           kiln_str_eq(row->deployment_id, by->values[DEPLOYMENT]);
}

static uint64_t hash_of(struct kiln_str service, const struct told_by *by)
{
    uint64_t hash = kiln_hash(service.ptr, service.len);

    for (uint32_t kind = 0; kind < KINDS; kind++)
        hash = kiln_hash_mix(hash, kiln_hash(by->values[kind].ptr, by->values[kind].len));
    return hash;
}

static uint64_t hash_version(struct kiln_str service, struct kiln_str version)
{
    return kiln_hash_mix(kiln_hash(service.ptr, service.len), kiln_hash(version.ptr, version.len));
}

/* ---- rows ---- */

static struct kiln_deployment *add_row(struct kiln_deployments *list)
{
    if (list->n == KILN_DEPLOYMENTS_MAX) {
        list->truncated = true;
        return NULL;
    }
    if (kiln_grow(&list->budget, (void **)&list->rows, &list->cap, (uint64_t)list->n + 1,
                  sizeof(*list->rows), KILN_DEPLOYMENTS_MAX) < 0)
        return NULL;
    list->rows[list->n] = (struct kiln_deployment){0};
    return &list->rows[list->n++];
}

static bool copy(struct kiln_deployments *list, struct kiln_str from, struct kiln_str *to)
{
    *to = kiln_arena_copy(&list->arena, from);
    return to->ptr != NULL;
}

/* "shop@1.2", "shop@1.2@3f9ac1": service and what tells it, joined. */
static bool make_id(struct kiln_deployments *list, struct kiln_deployment *row)
{
    const struct kiln_str parts[] = {row->service, row->version, row->commit, row->deployment_id};
    struct kiln_buf id;
    bool ok;

    kiln_buf_init(&id, (size_t)16 << 10);
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(parts); i++) {
        if (!parts[i].len || (i > 1 && kiln_str_eq(parts[i], row->version)))
            continue;
        if (i)
            kiln_buf_putc(&id, '@');
        kiln_buf_add_str(&id, parts[i]);
    }
    ok = id.error == 0 && copy(list, kiln_buf_str(&id), &row->id);
    kiln_buf_done(&id);
    return ok;
}

static struct kiln_deployment *make_row(struct finding *f, struct kiln_str service,
                                        const struct told_by *by)
{
    struct kiln_deployments *list = f->list;
    struct kiln_deployment *row = add_row(list);
    uint32_t kind = first_kind(by);

    if (!row) {
        f->error = list->truncated ? 0 : -ENOMEM;
        return NULL;
    }
    row->label = kiln_str_of(by->names[kind]);
    row->id_label = kiln_str_of(by->values[DEPLOYMENT].len ? by->names[DEPLOYMENT] : "");
    row->name = row->text = KILN_STR("");
    row->first_ns = UINT64_MAX;
    if (!copy(list, service, &row->service) || !copy(list, by->values[kind], &row->version) ||
        !copy(list, by->values[COMMIT], &row->commit) ||
        !copy(list, by->values[DEPLOYMENT], &row->deployment_id) || !make_id(list, row)) {
        f->error = -ENOMEM;
        return NULL;
    }
    return row;
}

static int index_row(struct finding *f, uint64_t hash, const struct kiln_deployment *row)
{
    struct kiln_budget *budget = &f->list->budget;
    uint32_t at = f->list->n - 1;
    int r = kiln_intern_add(&f->index, budget, hash, at);

    if (r == 0)
        r = kiln_intern_add(&f->versions, budget, hash_version(row->service, row->version), at);
    if (r == 0 && row->commit.len && !kiln_str_eq(row->commit, row->version))
        r = kiln_intern_add(&f->versions, budget, hash_version(row->service, row->commit), at);
    return r;
}

static struct kiln_deployment *find_row(struct finding *f, struct kiln_str service,
                                        const struct told_by *by)
{
    uint64_t hash = hash_of(service, by);
    struct kiln_deployment *row;

    for (struct kiln_probe p = kiln_intern_probe(&f->index, hash);
         kiln_intern_next(&f->index, &p);) {
        if (is_same(&f->list->rows[p.entry], service, by))
            return &f->list->rows[p.entry];
    }
    row = make_row(f, service, by);
    if (row)
        f->error = index_row(f, hash, row);
    return f->error ? NULL : row;
}

static int add_series(void *context, const struct kiln_series_found *found)
{
    struct finding *f = context;
    struct kiln_deployment *row;
    struct kiln_series series;
    struct told_by by;

    if (kiln_series_parse(found->key, &series) < 0)
        return 0;
    read_labels(&series, &by);
    if (first_kind(&by) == KINDS)
        return 0;
    row = find_row(f, series.service, &by);
    if (!row)
        return f->error;
    row->first_ns = found->min_ns < row->first_ns ? found->min_ns : row->first_ns;
    row->last_ns = found->max_ns > row->last_ns ? found->max_ns : row->last_ns;
    row->n_profiles += found->n_profiles;
    row->at_ns = row->first_ns;
    return 0;
}

/* ---- what was told ---- */

static bool is_wanted(const struct kiln_deployments_query *query, struct kiln_str service)
{
    return !query->service.len || kiln_str_eq(query->service, service);
}

static bool tell(struct kiln_deployments *list, const struct kiln_deployment *told,
                 struct kiln_deployment *row)
{
    row->told = true;
    row->at_ns = told->at_ns;
    return copy(list, told->id, &row->id) && copy(list, told->name, &row->name) &&
           copy(list, told->text, &row->text);
}

/* The first that was found, and nobody told of yet, of this service and version (or commit). */
static struct kiln_deployment *find_untold(const struct finding *f,
                                           const struct kiln_deployment *told)
{
    uint64_t hash = hash_version(told->service, told->version);
    struct kiln_deployment *best = NULL;

    for (struct kiln_probe p = kiln_intern_probe(&f->versions, hash);
         kiln_intern_next(&f->versions, &p);) {
        struct kiln_deployment *row = &f->list->rows[p.entry];

        if (!row->told && kiln_str_eq(row->service, told->service) &&
            (kiln_str_eq(row->version, told->version) || kiln_str_eq(row->commit, told->version)) &&
            (!best || row->first_ns < best->first_ns))
            best = row;
    }
    return best;
}

static int add_told(struct finding *f, const struct kiln_deployments_query *query)
{
    struct kiln_deployments *list = f->list;

    for (uint32_t i = 0; i < query->n_told; i++) {
        const struct kiln_deployment *told = &query->told[i];
        struct kiln_deployment *row;

        if (!is_wanted(query, told->service))
            continue;
        row = find_untold(f, told);
        if (!row) {
            row = add_row(list);
            if (!row)
                return list->truncated ? 0 : -ENOMEM;
            row->label = row->id_label = row->commit = row->deployment_id = KILN_STR("");
            if (!copy(list, told->service, &row->service) ||
                !copy(list, told->version, &row->version))
                return -ENOMEM;
        }
        if (!tell(list, told, row))
            return -ENOMEM;
    }
    return 0;
}

/* ---- making ---- */

static int newest_first(const void *a, const void *b)
{
    const struct kiln_deployment *x = a, *y = b;
    int order = kiln_str_cmp(x->service, y->service);

    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? 1 : -1;
    return order ? order : kiln_str_cmp(y->version, x->version);
}

static int of_one_service(const void *a, const void *b)
{
    const struct kiln_deployment *x = a, *y = b;
    int order = kiln_str_cmp(x->service, y->service);

    return order ? order : newest_first(a, b);
}

/* Each lasts until the next of its service came. */
static void set_ends(struct kiln_deployments *list)
{
    qsort(list->rows, list->n, sizeof(*list->rows), of_one_service);
    for (uint32_t i = 1; i < list->n; i++) {
        if (kiln_str_eq(list->rows[i].service, list->rows[i - 1].service))
            list->rows[i].until_ns = list->rows[i - 1].at_ns;
    }
    qsort(list->rows, list->n, sizeof(*list->rows), newest_first);
}

static int find(struct finding *f, struct kiln_engine *engine,
                const struct kiln_deployments_query *query, struct kiln_err *err)
{
    const struct kiln_matcher service = {
        .name = KILN_STR("service.name"), .value = query->service, .op = KILN_MATCH_EQ};
    int r = 0;

    for (uint32_t i = 0; i < query->n_tenants && r == 0; i++) {
        const struct kiln_selection selection = {
            .tenant = query->tenants[i],
            .matchers = &service,
            .n_matchers = query->service.len > 0,
        };

        r = engine->ops->series(engine, &selection, add_series, f, err);
    }
    return r;
}

int kiln_deployments_find(struct kiln_engine *engine, const struct kiln_deployments_query *query,
                          struct kiln_deployments **ret_deployments, struct kiln_err *err)
{
    struct kiln_deployments *list = kiln_calloc(1, sizeof(*list));
    struct finding f = {.list = list};
    int r;

    if (!list)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    list->budget.limit = MEMORY_BYTES;
    kiln_arena_init(&list->arena, &list->budget);
    r = find(&f, engine, query, err);
    if (r == 0)
        r = add_told(&f, query);
    kiln_intern_done(&f.index, &list->budget);
    kiln_intern_done(&f.versions, &list->budget);
    if (r < 0) {
        kiln_deployments_free(list);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    if (list->n)
        set_ends(list);
    *ret_deployments = list;
    return 0;
}

void kiln_deployments_free(struct kiln_deployments *deployments)
{
    if (!deployments)
        return;
    kiln_free(deployments->rows);
    kiln_arena_done(&deployments->arena);
    kiln_free(deployments);
}
