/* SPDX-License-Identifier: Apache-2.0 */
#include "answers.h"

#include "base/buf.h"
#include "test.h"

static char text[1 << 16];

static const char *give(struct kiln_buf *out)
{
    assert_true(out->len < sizeof(text));
    if (out->len)
        memcpy(text, out->ptr, out->len);
    text[out->len] = '\0';
    kiln_buf_done(out);
    return text;
}

struct kiln_question kiln_test_question(void)
{
    static const struct kiln_str tenant = {"anonymous", 9};
    static struct kiln_leash leash;

    leash = (struct kiln_leash){0};
    return (struct kiln_question){.tenants = &tenant, .n_tenants = 1, .leash = &leash};
}

/* ---- printing ---- */

const char *kiln_test_flame_text(const struct kiln_flame *flame)
{
    struct kiln_buf out;

    kiln_buf_init(&out, sizeof(text));
    for (uint32_t i = 0; i < flame->n_nodes; i++) {
        const struct kiln_flame_node *node = &flame->nodes[i];

        kiln_buf_printf(&out, "%*s%.*s %lld %lld\n", (int)node->depth * 2, "",
                        KILN_STR_ARG(flame->names[node->name].name), (long long)node->total,
                        (long long)node->self);
    }
    for (uint32_t i = 0; i < flame->n_functions; i++) {
        const struct kiln_flame_function *f = &flame->functions[i];

        kiln_buf_printf(&out, "%.*s %lld %lld\n", KILN_STR_ARG(flame->names[f->name].name),
                        (long long)f->self, (long long)f->total);
    }
    return give(&out);
}

static void print_list(struct kiln_buf *out, const struct kiln_str *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        kiln_buf_printf(out, i ? ",%.*s" : "%.*s", KILN_STR_ARG(list[i]));
}

const char *kiln_test_timeline_text(const struct kiln_timeline *timeline, uint32_t n_by)
{
    struct kiln_buf out;

    kiln_buf_init(&out, sizeof(text));
    for (uint32_t i = 0; i < timeline->n_series; i++) {
        const struct kiln_timeline_series *series = &timeline->series[i];

        print_list(&out, series->labels, n_by);
        kiln_buf_putc(&out, ':');
        for (uint32_t k = 0; k < series->n; k++) {
            const struct kiln_timeline_point *p = &timeline->points[series->first + k];

            kiln_buf_printf(&out, " %llu=%g", (unsigned long long)p->bucket, p->value);
            if (p->exemplar) {
                const struct kiln_exemplar *e = &timeline->exemplars[p->exemplar - 1];

                kiln_buf_printf(&out, "(%lld of %u %u.%u)", (long long)e->value, e->profile_id[15],
                                e->trace_id[15], e->span_id[7]);
            }
        }
        kiln_buf_putc(&out, '\n');
    }
    return give(&out);
}

const char *kiln_test_labels_text(const struct kiln_labels *labels, uint32_t n)
{
    struct kiln_buf out;

    kiln_buf_init(&out, sizeof(text));
    for (uint32_t i = 0; i < labels->n_rows; i++) {
        print_list(&out, labels->rows[i].values, n);
        kiln_buf_putc(&out, '\n');
    }
    return give(&out);
}

const char *kiln_test_found_text(const struct kiln_found *found)
{
    struct kiln_buf out;

    kiln_buf_init(&out, sizeof(text));
    for (uint32_t i = 0; i < found->n_rows; i++) {
        const struct kiln_found_row *row = &found->rows[i];

        kiln_buf_printf(&out, "%llu+%llu %lld %llu ", (unsigned long long)row->time_ns,
                        (unsigned long long)row->duration_ns, (long long)row->value,
                        (unsigned long long)row->n_samples);
        if (row->span_id[7])
            kiln_buf_printf(&out, "%u.%u\n", row->trace_id[15], row->span_id[7]);
        else
            kiln_buf_printf(&out, "%u\n", row->profile_id[15]);
    }
    return give(&out);
}

/* ---- asking ---- */

static void check(int r, const struct kiln_err *err)
{
    if (r < 0)
        fail_msg("no answer: %s: %s", err->where, err->text);
}

const char *kiln_test_merge(struct kiln_engine *engine, const struct kiln_question *q,
                            const struct kiln_merge_wants *wants)
{
    struct kiln_merged *merged = NULL;
    struct kiln_err err = {0};

    check(engine->ops->merge(engine, q, wants, &merged, &err), &err);
    kiln_test_flame_text(merged->flame);
    kiln_merged_free(merged);
    return text;
}

const char *kiln_test_timeline(struct kiln_engine *engine, const struct kiln_question *q,
                               const struct kiln_timeline_opts *opts)
{
    struct kiln_timeline *timeline = NULL;
    struct kiln_err err = {0};

    check(engine->ops->timeline(engine, q, opts, &timeline, &err), &err);
    kiln_test_timeline_text(timeline, opts->n_by);
    kiln_timeline_free(timeline);
    return text;
}

const char *kiln_test_labels(struct kiln_engine *engine, const struct kiln_question *q,
                             const struct kiln_str *names, uint32_t n)
{
    struct kiln_labels *labels = NULL;
    struct kiln_err err = {0};

    check(engine->ops->labels(engine, q, names, n, &labels, &err), &err);
    kiln_test_labels_text(labels, n ? n : 1);
    kiln_labels_free(labels);
    return text;
}

const char *kiln_test_found(struct kiln_engine *engine, const struct kiln_question *q,
                            const struct kiln_found_opts *opts)
{
    struct kiln_found *found = NULL;
    struct kiln_err err = {0};

    check(engine->ops->found(engine, q, opts, &found, &err), &err);
    kiln_test_found_text(found);
    kiln_found_free(found);
    return text;
}
