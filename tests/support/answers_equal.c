/* SPDX-License-Identifier: Apache-2.0 */
#include "answers_equal.h"

#include <math.h>
#include <stdlib.h>

#include "core/view.h"
#include "test.h"

static void check_str(struct kiln_str a, struct kiln_str b)
{
    if (!kiln_str_eq(a, b))
        fail_msg("\"%.*s\" is not \"%.*s\"", KILN_STR_ARG(a), KILN_STR_ARG(b));
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * (1 + fabs(a) + fabs(b));
}

#define CHECK_NEAR(a, b)                                                                           \
    do {                                                                                           \
        if (!is_near((a), (b)))                                                                    \
            fail_msg("%s is %.17g, not %.17g", #a, (double)(a), (double)(b));                      \
    } while (0)

void kiln_test_basis_equal(const struct kiln_basis *a, const struct kiln_basis *b)
{
    CHECK_EQ(a->n_profiles, b->n_profiles);
    CHECK_NEAR(a->count, b->count);
    CHECK_EQ(a->min_ns, b->min_ns);
    CHECK_EQ(a->max_ns, b->max_ns);
    CHECK_EQ(a->covered_ns, b->covered_ns);
}

/* Times may be those of profiles and pages around what was found. */
static void basis_around(const struct kiln_basis *a, const struct kiln_basis *b)
{
    CHECK_EQ(a->n_profiles, b->n_profiles);
    CHECK_NEAR(a->count, b->count);
    CHECK(a->min_ns <= b->min_ns && a->max_ns >= b->max_ns);
    CHECK_EQ(a->covered_ns, b->covered_ns);
}

/* ---- flames ---- */

static struct kiln_str name_of(const struct kiln_flame *flame, uint32_t name)
{
    CHECK(name < flame->n_names);
    return flame->names[name].name;
}

/* Preorder, ends, depths and sums are those of a tree. */
static void check_tree(const struct kiln_flame *f)
{
    for (uint32_t i = 0; i < f->n_nodes; i++) {
        const struct kiln_flame_node *node = &f->nodes[i];
        int64_t sum = node->self;
        struct kiln_str before = KILN_STR_NONE;

        CHECK(node->end > i && node->end <= f->n_nodes);
        for (uint32_t k = i + 1; k < node->end; k = f->nodes[k].end) {
            bool other = f->other && f->nodes[k].name == f->other;

            CHECK_EQ(f->nodes[k].parent, i);
            CHECK_EQ(f->nodes[k].depth, node->depth + 1);
            CHECK(other ? f->nodes[k].end == node->end
                        : !before.ptr || kiln_str_cmp(before, name_of(f, f->nodes[k].name)) < 0);
            before = name_of(f, f->nodes[k].name);
            sum += f->nodes[k].total;
        }
        CHECK_EQ(sum, node->total);
    }
}

static void nodes_equal(const struct kiln_flame *a, const struct kiln_flame *b)
{
    CHECK_EQ(a->n_nodes, b->n_nodes);
    CHECK(a->nodes_all == 0 || a->nodes_all == b->nodes_all);
    CHECK_EQ(a->other != 0, b->other != 0);
    for (uint32_t i = 0; i < a->n_nodes; i++) {
        const struct kiln_flame_node *x = &a->nodes[i], *y = &b->nodes[i];

        check_str(name_of(a, x->name), name_of(b, y->name));
        CHECK_EQ(x->depth, y->depth);
        CHECK_EQ(x->total, y->total);
        CHECK_EQ(x->self, y->self);
        CHECK_EQ(x->name == a->other && x->name, y->name == b->other && y->name);
    }
}

static void functions_equal(const struct kiln_flame *a, const struct kiln_flame *b)
{
    CHECK_EQ(a->n_functions, b->n_functions);
    for (uint32_t i = 0; i < a->n_functions; i++) {
        check_str(name_of(a, a->functions[i].name), name_of(b, b->functions[i].name));
        CHECK_EQ(a->functions[i].self, b->functions[i].self);
        CHECK_EQ(a->functions[i].total, b->functions[i].total);
    }
}

static const struct kiln_flame_function *find_function(const struct kiln_flame *f,
                                                       struct kiln_str name)
{
    static const struct kiln_flame_function none;

    for (uint32_t i = 0; i < f->n_functions; i++) {
        if (kiln_str_eq(name_of(f, f->functions[i].name), name))
            return &f->functions[i];
    }
    return &none;
}

/* What is in one of them, and how large, is so in the other, but for what rounding does. */
static void functions_near(const struct kiln_flame *a, const struct kiln_flame *b, int64_t off)
{
    for (uint32_t i = 0; i < a->n_functions; i++) {
        const struct kiln_flame_function *x = &a->functions[i];
        const struct kiln_flame_function *y = find_function(b, name_of(a, x->name));

        CHECK(llabs(x->self - y->self) <= off);
        CHECK(llabs(x->total - y->total) <= off);
    }
}

/* ---- profiles ---- */

static int by_line(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Each row of a view by address as a line, sorted; the caller frees them. */
static char **lines_of(struct kiln_batch *batch, uint32_t *ret_n)
{
    struct kiln_view_opts opts = {.granularity = KILN_BY_LINE};
    struct kiln_view *view = NULL;
    char **lines;

    CHECK_OK(kiln_view_new(batch, &opts, &view, NULL));
    lines = calloc((size_t)view->n_rows + 1, sizeof(*lines));
    for (uint32_t i = 0; i < view->n_rows; i++) {
        const struct kiln_view_row *row = &view->rows[i];
        struct kiln_buf out;

        kiln_buf_init(&out, 1 << 16);
        for (uint32_t k = 0; k < row->n; k++) {
            kiln_buf_add_str(&out, view->frames[view->path[row->first + k]].name);
            kiln_buf_putc(&out, ';');
        }
        kiln_buf_printf(&out, "%lld", (long long)row->value);
        lines[i] = strndup(out.ptr, out.len);
        kiln_buf_done(&out);
    }
    *ret_n = view->n_rows;
    kiln_view_free(view);
    qsort(lines, *ret_n, sizeof(*lines), by_line);
    return lines;
}

static void profiles_equal(struct kiln_batch *a, struct kiln_batch *b)
{
    uint32_t n, m;
    char **x = lines_of(a, &n), **y = lines_of(b, &m);

    CHECK_EQ(a->n_profiles, 1);
    CHECK_EQ(n, m);
    for (uint32_t i = 0; i < n; i++)
        CHECK_TEXT(x[i], y[i]);
    for (uint32_t i = 0; i < n; i++) {
        free(x[i]);
        free(y[i]);
    }
    free(x);
    free(y);
}

void kiln_test_merged_equal(const struct kiln_merged *a, const struct kiln_merged *b, bool loose)
{
    basis_around(&a->basis, &b->basis);
    CHECK_EQ(!a->flame, !b->flame);
    CHECK_EQ(!a->profile, !b->profile);
    if (a->flame)
        check_tree(a->flame);
    if (loose) {
        int64_t off = 2 + (b->flame ? (int64_t)b->flame->nodes_all : 1000);

        CHECK(llabs(a->total - b->total) <= off);
        if (a->flame) {
            functions_near(a->flame, b->flame, off);
            functions_near(b->flame, a->flame, off);
        }
        return;
    }
    CHECK_EQ(a->total, b->total);
    if (a->flame) {
        CHECK_EQ(a->flame->total, b->flame->total);
        nodes_equal(a->flame, b->flame);
        functions_equal(a->flame, b->flame);
    }
    if (a->profile)
        profiles_equal(a->profile, b->profile);
}

/* ---- roll-ups ---- */

/* The child of a node of the truth with this name, or 0. */
static uint32_t find_child(const struct kiln_flame *f, uint32_t node, struct kiln_str name)
{
    for (uint32_t k = node + 1; k < f->nodes[node].end; k = f->nodes[k].end) {
        if (kiln_str_eq(name_of(f, f->nodes[k].name), name))
            return k;
    }
    return 0;
}

static bool has_negative(const struct kiln_flame *f)
{
    for (uint32_t i = 0; i < f->n_nodes; i++) {
        if (f->nodes[i].self < 0)
            return true;
    }
    for (uint32_t i = 0; i < f->n_functions; i++) {
        if (f->functions[i].self < 0 || f->functions[i].total < 0)
            return true;
    }
    return false;
}

/* Nodes are not too large, nor too small by more than the bound; none that is larger is missing. */
static void nodes_within(const struct kiln_flame *a, const struct kiln_flame *truth, bool whole)
{
    uint32_t *at = calloc(a->n_nodes, sizeof(*at));
    bool *seen = calloc(truth->n_nodes, sizeof(*seen));
    bool signs = has_negative(truth);

    CHECK_EQ(a->nodes[0].total, truth->nodes[0].total);
    for (uint32_t i = 1; i < a->n_nodes; i++) {
        const struct kiln_flame_node *node = &a->nodes[i];
        int64_t total;

        if (a->other && node->name == a->other)
            continue;
        at[i] = find_child(truth, at[node->parent], name_of(a, node->name));
        CHECK(at[i]);
        seen[at[i]] = true;
        total = truth->nodes[at[i]].total;
        CHECK(signs || (node->total <= total && node->self <= truth->nodes[at[i]].self));
        CHECK(llabs(total - node->total) <= a->error_bound);
        CHECK(llabs(truth->nodes[at[i]].self - node->self) <= a->error_bound);
    }
    for (uint32_t i = 1; whole && i < truth->n_nodes; i++)
        CHECK(seen[i] || llabs(truth->nodes[i].total) <= a->error_bound);
    free(at);
    free(seen);
}

static void functions_within(const struct kiln_flame *a, const struct kiln_flame *truth)
{
    bool signs = has_negative(truth);

    for (uint32_t i = 0; i < truth->n_functions; i++) {
        const struct kiln_flame_function *is = &truth->functions[i];
        const struct kiln_flame_function *said = find_function(a, name_of(truth, is->name));

        CHECK(signs || (said->self <= is->self && said->total <= is->total));
        CHECK(llabs(is->self - said->self) <= a->functions_bound);
        CHECK(llabs(is->total - said->total) <= a->functions_bound);
    }
    for (uint32_t i = 0; i < a->n_functions; i++)
        CHECK(find_function(truth, name_of(a, a->functions[i].name))->name);
}

static void sums_within(const struct kiln_merged *a, const struct kiln_merged *truth)
{
    CHECK_EQ(a->total, truth->total);
    /* They are kept as whole numbers, span by span. */
    CHECK(fabs(a->basis.count - truth->basis.count) <= 50 + truth->basis.count / 50);
    CHECK(a->basis.n_profiles <= truth->basis.n_profiles + a->basis.n_unsure &&
          truth->basis.n_profiles <= a->basis.n_profiles + a->basis.n_unsure);
    if (a->flame)
        CHECK_EQ(a->flame->total, truth->flame->total);
}

void kiln_test_merged_pruned(const struct kiln_merged *a, const struct kiln_merged *truth,
                             bool whole)
{
    sums_within(a, truth);
    functions_within(a->flame, truth->flame);
    check_tree(a->flame);
    if (a->flame->n_nodes)
        nodes_within(a->flame, truth->flame, whole);
}

void kiln_test_merged_within(const struct kiln_merged *a, const struct kiln_merged *truth,
                             bool whole)
{
    sums_within(a, truth);
    if (!a->flame)
        return;
    functions_equal(a->flame, truth->flame);
    check_tree(a->flame);
    if (a->flame->n_nodes)
        nodes_within(a->flame, truth->flame, whole);
}

/* ---- timelines ---- */

static void exemplars_equal(const struct kiln_exemplar *a, const struct kiln_exemplar *b)
{
    CHECK_EQ(a->value, b->value);
    CHECK_EQ(a->time_ns, b->time_ns);
    assert_memory_equal(a->profile_id, b->profile_id, sizeof(a->profile_id));
    assert_memory_equal(a->trace_id, b->trace_id, sizeof(a->trace_id));
    assert_memory_equal(a->span_id, b->span_id, sizeof(a->span_id));
    check_str(a->series, b->series);
}

void kiln_test_timeline_equal(const struct kiln_timeline *a, const struct kiln_timeline *b,
                              uint32_t n_by)
{
    kiln_test_basis_equal(&a->basis, &b->basis);
    CHECK_EQ(a->n_series, b->n_series);
    CHECK_EQ(a->n_dropped, b->n_dropped);
    for (uint32_t i = 0; i < a->n_series; i++) {
        const struct kiln_timeline_series *x = &a->series[i], *y = &b->series[i];

        for (uint32_t k = 0; k < n_by; k++)
            check_str(x->labels[k], y->labels[k]);
        CHECK_EQ(x->n, y->n);
        CHECK_NEAR(x->sum, y->sum);
        for (uint32_t k = 0; k < x->n; k++) {
            const struct kiln_timeline_point *p = &a->points[x->first + k];
            const struct kiln_timeline_point *o = &b->points[y->first + k];

            CHECK_EQ(p->bucket, o->bucket);
            CHECK_NEAR(p->value, o->value);
            CHECK_NEAR(p->count, o->count);
            CHECK_EQ(p->n_profiles, o->n_profiles);
            CHECK_EQ(p->exemplar != 0, o->exemplar != 0);
            if (p->exemplar)
                exemplars_equal(&a->exemplars[p->exemplar - 1], &b->exemplars[o->exemplar - 1]);
        }
    }
}

/* ---- profiles and spans ---- */

/* The oracle may see values of one identity added up. */

void kiln_test_found_equal(const struct kiln_found *a, const struct kiln_found *b)
{
    basis_around(&a->basis, &b->basis);
    CHECK_EQ(a->n_all, b->n_all);
    CHECK_EQ(a->n_rows, b->n_rows);
    for (uint32_t i = 0; i < a->n_rows; i++) {
        const struct kiln_found_row *x = &a->rows[i], *y = &b->rows[i];

        CHECK_EQ(x->time_ns, y->time_ns);
        CHECK_EQ(x->duration_ns, y->duration_ns);
        CHECK_EQ(x->value, y->value);
        CHECK_NEAR(x->count, y->count);
        CHECK(x->n_samples >= y->n_samples);
        assert_memory_equal(x->profile_id, y->profile_id, sizeof(x->profile_id));
        assert_memory_equal(x->trace_id, y->trace_id, sizeof(x->trace_id));
        assert_memory_equal(x->span_id, y->span_id, sizeof(x->span_id));
        check_str(x->series, y->series);
    }
}

/* ---- labels ---- */

static int compare_rows(const struct kiln_label_row *a, const struct kiln_label_row *b, uint32_t n)
{
    int order = 0;

    for (uint32_t i = 0; i < n && order == 0; i++)
        order = kiln_str_cmp(a->values[i], b->values[i]);
    return order;
}

void kiln_test_labels_equal(const struct kiln_labels *a, const struct kiln_labels *b, uint32_t n)
{
    kiln_test_labels_within(a, b, n);
    kiln_test_labels_within(b, a, n);
    for (uint32_t i = 0; i < a->n_rows; i++) {
        CHECK_EQ(a->rows[i].min_ns, b->rows[i].min_ns);
        CHECK_EQ(a->rows[i].max_ns, b->rows[i].max_ns);
        CHECK_EQ(a->rows[i].n_profiles, b->rows[i].n_profiles);
    }
}

void kiln_test_labels_within(const struct kiln_labels *part, const struct kiln_labels *whole,
                             uint32_t n)
{
    uint32_t k = 0;

    for (uint32_t i = 0; i < part->n_rows; i++) {
        if (i)
            CHECK(compare_rows(&part->rows[i - 1], &part->rows[i], n) < 0);
        while (k < whole->n_rows && compare_rows(&whole->rows[k], &part->rows[i], n) < 0)
            k++;
        if (k == whole->n_rows || compare_rows(&whole->rows[k], &part->rows[i], n) != 0)
            fail_msg("the row \"%.*s\", ... is too many, or missing",
                     KILN_STR_ARG(part->rows[i].values[0]));
    }
}
