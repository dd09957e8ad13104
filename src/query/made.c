/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types that others add up to (core/type.h): wall-clock time, of time on the processor and off it.
 *
 * A question about one is about its parts, but of services that sent the type themselves: these are
 * asked for first, by the same times and services.  In lists of types it stands where all of its
 * parts stand.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "query/query_int.h"

/* ---- questions ---- */

/* The services that have the type itself; rows are ascending already. */
static int keep_services(struct kiln_ask *ask, const struct kiln_labels *labels)
{
    struct kiln_str *whole;

    if (labels->n_rows == 0)
        return 0;
    whole = kiln_arena_alloc(&ask->arena, labels->n_rows * sizeof(*whole));
    if (!whole)
        return -ENOMEM;
    for (uint32_t i = 0; i < labels->n_rows; i++) {
        whole[i] = kiln_arena_copy(&ask->arena, labels->rows[i].values[0]);
        if (!whole[i].ptr)
            return -ENOMEM;
    }
    ask->question.whole = whole;
    ask->question.n_whole = labels->n_rows;
    return 0;
}

int kiln_ask_set_parts(struct kiln_ask *ask, struct kiln_err *err)
{
    const struct kiln_made_type *made = &kiln_type_wall;
    const struct kiln_listing listing = {.name = KILN_STR("service_name"), .type = made->id};
    struct kiln_labels *labels = NULL;
    int r;

    if (!kiln_str_eq(ask->question.type, made->id))
        return 0;
    r = kiln_ask_list(ask, &listing, &labels, err);
    if (r == 0)
        r = keep_services(ask, labels);
    kiln_labels_free(labels);
    if (r < 0)
        return r;
    ask->question.parts = made->parts;
    ask->question.n_parts = KILN_MADE_PARTS;
    return 0;
}

/* ---- lists of types ---- */

enum { ITSELF = KILN_MADE_PARTS, NEITHER, ALL_PARTS = (1 << KILN_MADE_PARTS) - 1 };

/* Rows that are equal but for which of the parts, or the type itself, they are of. */
struct made {
    struct kiln_label_row row;
    uint32_t kinds; /* bits: parts, ITSELF */
};

struct adding {
    struct kiln_labels *labels;
    uint32_t n, column; /* labels; which of them is the type */
    struct made *made;
    uint32_t n_made;
};

static int compare_rows(const void *a, const void *b, void *context)
{
    const struct kiln_label_row *x = a, *y = b;
    int order = 0;

    for (uint32_t i = 0; order == 0 && i < ((struct adding *)context)->n; i++)
        order = kiln_str_cmp(x->values[i], y->values[i]);
    return order;
}

static int compare_made(const void *a, const void *b, void *context)
{
    const struct made *x = a, *y = b;

    return compare_rows(&x->row, &y->row, context);
}

static uint32_t kind_of(const struct adding *a, const struct kiln_label_row *row)
{
    struct kiln_str type = row->values[a->column];
    uint32_t part = kiln_made_part(&kiln_type_wall, type);

    if (part < KILN_MADE_PARTS)
        return part;
    return kiln_str_eq(type, kiln_type_wall.id) ? ITSELF : NEITHER;
}

/* Every row of a part or of the type, as if it were of the type. */
static int copy_rows(struct adding *a)
{
    for (uint32_t i = 0; i < a->labels->n_rows; i++) {
        const struct kiln_label_row *row = &a->labels->rows[i];
        uint32_t kind = kind_of(a, row);
        struct kiln_str *values;

        if (kind == NEITHER)
            continue;
        values = kiln_arena_alloc(&a->labels->arena, a->n * sizeof(*values));
        if (!values)
            return -ENOMEM;
        memcpy(values, row->values, a->n * sizeof(*values));
        values[a->column] = kiln_type_wall.id;
        a->made[a->n_made] = (struct made){.row = *row, .kinds = 1u << kind};
        a->made[a->n_made++].row.values = values;
    }
    return 0;
}

static void join_equals(struct adding *a)
{
    uint32_t n = 0;

    if (a->n_made)
        qsort_r(a->made, a->n_made, sizeof(*a->made), compare_made, a);
    for (uint32_t i = 0; i < a->n_made; i++) {
        const struct made *next = &a->made[i];
        struct kiln_label_row *row;

        if (n == 0 || compare_made(&a->made[n - 1], next, a) != 0) {
            a->made[n++] = *next;
            continue;
        }
        row = &a->made[n - 1].row;
        row->min_ns = next->row.min_ns < row->min_ns ? next->row.min_ns : row->min_ns;
        row->max_ns = next->row.max_ns > row->max_ns ? next->row.max_ns : row->max_ns;
        row->n_profiles += next->row.n_profiles;
        a->made[n - 1].kinds |= next->kinds;
    }
    a->n_made = n;
}

/* In the place of the rows they were made of; there is room for all. */
static void put_in_place(struct adding *a)
{
    struct kiln_labels *labels = a->labels;
    uint32_t n = 0;

    for (uint32_t i = 0; i < labels->n_rows; i++) {
        if (kind_of(a, &labels->rows[i]) == NEITHER)
            labels->rows[n++] = labels->rows[i];
    }
    for (uint32_t i = 0; i < a->n_made; i++)
        labels->rows[n++] = a->made[i].row;
    labels->n_rows = n;
}

static int put_beside(struct adding *a)
{
    struct kiln_labels *labels = a->labels;
    size_t size = sizeof(*labels->rows);
    struct kiln_label_row *rows =
        kiln_realloc(labels->rows, ((size_t)labels->n_rows + a->n_made + 1) * size);

    if (!rows)
        return -ENOMEM;
    labels->rows = rows;
    for (uint32_t i = 0; i < a->n_made; i++) {
        if (a->made[i].kinds == ALL_PARTS)
            rows[labels->n_rows++] = a->made[i].row;
    }
    return 0;
}

int kiln_labels_add_made(struct kiln_labels *labels, const struct kiln_str *names, uint32_t n,
                         bool whole)
{
    struct adding a = {.labels = labels, .n = n};
    uint32_t n_before = labels->n_rows;
    int r;

    while (a.column < n && !kiln_str_eq(names[a.column], KILN_TYPE_LABEL))
        a.column++;
    if (a.column == n || labels->n_rows == 0)
        return 0;
    a.made = kiln_malloc(labels->n_rows * sizeof(*a.made));
    if (!a.made)
        return -ENOMEM;
    r = copy_rows(&a);
    if (r == 0) {
        join_equals(&a);
        if (whole)
            put_in_place(&a);
        else
            r = put_beside(&a);
    }
    if (r == 0 && (whole || labels->n_rows > n_before))
        qsort_r(labels->rows, labels->n_rows, sizeof(*labels->rows), compare_rows, &a);
    kiln_free(a.made);
    return r;
}
