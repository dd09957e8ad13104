/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/mem.h"
#include "drawn.h"
#include "test.h"

#define DEPTH_MAX  256
#define VALUES_MAX 64

static char text[1 << 16];

/* ---- drawing ---- */

static uint32_t string(struct kiln_builder *b, const char *s)
{
    return kiln_builder_string(b, s ? kiln_str_of(s) : KILN_STR(""));
}

/* "k=v,k=v" as a set. */
static uint32_t attr_set(struct kiln_builder *b, struct kiln_str list)
{
    uint32_t attrs[16], n = 0;

    while (list.len) {
        struct kiln_str value = kiln_str_cut(&list, ',');
        uint32_t key = kiln_builder_string(b, kiln_str_cut(&value, '='));
        int64_t number;

        assert_true(n < 16);
        attrs[n++] = kiln_builder_attr(b, key,
                                       kiln_str_parse_i64(value, &number) == 0
                                           ? kiln_value_int(number)
                                           : kiln_value_string(kiln_builder_string(b, value)),
                                       0);
    }
    return kiln_builder_set(b, attrs, n, NULL);
}

/* "parse@json.c:12" */
static struct kiln_line line_of(struct kiln_builder *b, struct kiln_str drawn)
{
    struct kiln_str name = kiln_str_cut(&drawn, '@');
    struct kiln_function function = {.name = kiln_builder_string(b, name)};
    struct kiln_line line = {0};

    if (drawn.ptr) {
        function.filename = kiln_builder_string(b, kiln_str_cut(&drawn, ':'));
        if (drawn.ptr)
            assert_int_equal(kiln_str_parse_i64(drawn, &line.line), 0);
    }
    line.function = kiln_builder_function(b, &function);
    return line;
}

/* "0x1234" or "lib.so+0x1234"; the mapping is at 0x1000 to 0x100000, file offset 0. */
static bool address_of(struct kiln_builder *b, struct kiln_str drawn, struct kiln_location *ret)
{
    struct kiln_str module = KILN_STR_NONE;

    if (kiln_str_contains(drawn, KILN_STR("+0x")))
        module = kiln_str_cut(&drawn, '+');
    if (!kiln_str_starts(drawn, KILN_STR("0x")) || kiln_str_parse_hex(drawn, &ret->address) < 0)
        return false;
    if (module.ptr) {
        struct kiln_mapping mapping = {
            .start = 0x1000, .limit = 0x100000, .filename = kiln_builder_string(b, module)};

        ret->mapping = kiln_builder_mapping(b, &mapping);
        ret->address += mapping.start;
    }
    return true;
}

static uint32_t location_of(struct kiln_builder *b, struct kiln_str drawn)
{
    struct kiln_location location = {0};
    struct kiln_line outer_first[16], lines[16];
    uint32_t n = 0;

    if (address_of(b, drawn, &location))
        return kiln_builder_location(b, &location, NULL, 0);
    while (drawn.ptr) {
        assert_true(n < 16);
        outer_first[n++] = line_of(b, kiln_str_cut(&drawn, '>'));
    }
    for (uint32_t i = 0; i < n; i++)
        lines[i] = outer_first[n - 1 - i];
    return kiln_builder_location(b, &location, lines, n);
}

static uint32_t stack_of(struct kiln_builder *b, struct kiln_str drawn)
{
    uint32_t leaf_first[DEPTH_MAX], n = 0;

    if (kiln_str_eq(drawn, KILN_STR("-")))
        return 0;
    while (drawn.ptr) {
        assert_true(n < DEPTH_MAX);
        leaf_first[DEPTH_MAX - 1 - n++] = location_of(b, kiln_str_cut(&drawn, ';'));
    }
    return kiln_builder_stack(b, leaf_first + DEPTH_MAX - n, n);
}

/* "7.2": trace 7, span 2. */
static uint32_t link_of(struct kiln_builder *b, struct kiln_str drawn)
{
    struct kiln_link link = {0};
    uint64_t trace = 0, span = 0;

    assert_int_equal(kiln_str_parse_u64(kiln_str_cut(&drawn, '.'), &trace), 0);
    assert_int_equal(kiln_str_parse_u64(drawn, &span), 0);
    link.trace_id[15] = (uint8_t)trace;
    link.span_id[7] = (uint8_t)span;
    return kiln_builder_link(b, &link);
}

static void draw_line(struct kiln_builder *b, uint32_t profile, struct kiln_str line)
{
    uint32_t stack = stack_of(b, kiln_str_cut(&line, ' '));
    int64_t values[VALUES_MAX];
    uint64_t times[VALUES_MAX];
    uint32_t n_values = 0, n_times = 0, attrs = 0, link = 0;

    while (line.len) {
        struct kiln_str word = kiln_str_cut(&line, ' ');

        if (kiln_str_contains(word, KILN_STR("="))) {
            attrs = attr_set(b, word);
            continue;
        }
        if (word.ptr[0] == '^') {
            kiln_str_cut(&word, '^');
            link = link_of(b, word);
            continue;
        }
        if (word.ptr[0] != '@')
            assert_int_equal(kiln_str_parse_i64(kiln_str_cut(&word, '@'), &values[n_values++]), 0);
        else
            kiln_str_cut(&word, '@');
        if (word.ptr)
            assert_int_equal(kiln_str_parse_u64(word, &times[n_times++]), 0);
    }
    kiln_builder_add_sample(b, profile, stack, attrs, link, n_values ? values : NULL,
                            n_times ? times : NULL, n_values ? n_values : n_times);
}

void kiln_test_draw(struct kiln_builder *b, uint32_t profile, const char *stacks)
{
    struct kiln_str rest = kiln_str_of(stacks);

    while (rest.len)
        draw_line(b, profile, kiln_str_cut(&rest, '\n'));
}

static void add_drawn(struct kiln_builder *b, const struct kiln_drawn *d, bool first)
{
    struct kiln_resource resource = {.attrs = attr_set(b, kiln_str_of(d->resource))};
    struct kiln_scope scope = {.name = string(b, d->scope),
                               .attrs = attr_set(b, kiln_str_of(d->scope_attrs))};
    struct kiln_profile profile = {
        .sample_type = {string(b, d->type ? d->type : "samples"),
                        string(b, d->type ? d->unit : "count")},
        .period_type = {string(b, d->period_type), string(b, d->period_unit)},
        .period = d->period,
        .time_ns = d->time_ns,
        .duration_ns = d->duration_ns,
        .id[15] = d->id,
        .attrs = attr_set(b, kiln_str_of(d->attrs)),
    };

    if (first || d->resource)
        kiln_builder_add_resource(b, &resource);
    if (first || d->resource || d->scope)
        kiln_builder_add_scope(b, &scope);
    kiln_test_draw(b, kiln_builder_add_profile(b, &profile), d->stacks ? d->stacks : "");
}

struct kiln_batch *kiln_test_batch(const struct kiln_drawn *profiles, uint32_t n)
{
    struct kiln_builder *b;
    struct kiln_batch *batch;

    assert_int_equal(kiln_builder_new(NULL, &b), 0);
    for (uint32_t i = 0; i < n; i++)
        add_drawn(b, &profiles[i], i == 0);
    assert_int_equal(kiln_builder_finish(b, &batch, NULL), 0);
    return batch;
}

struct kiln_batch *kiln_test_stacks(const char *stacks)
{
    return kiln_test_batch(&(struct kiln_drawn){.stacks = stacks}, 1);
}

struct kiln_view *kiln_test_view(struct kiln_batch *batch, const struct kiln_view_opts *opts)
{
    struct kiln_err err = {0};
    struct kiln_view *view;

    if (kiln_view_new(batch, opts ? opts : &(struct kiln_view_opts){0}, &view, &err) < 0)
        fail_msg("no view: %s", err.text);
    kiln_batch_unref(batch);
    return view;
}

/* ---- printing ---- */

static const char *give(struct kiln_buf *out)
{
    assert_true(out->len < sizeof(text));
    if (out->len)
        memcpy(text, out->ptr, out->len);
    text[out->len] = '\0';
    kiln_buf_done(out);
    return text;
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorts the lines of a text. */
static const char *sorted(struct kiln_buf *out)
{
    char *copy = strdup(give(out)), *lines[1024], *save = NULL;
    struct kiln_buf again;
    size_t n = 0;

    for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        assert_true(n < 1024);
        lines[n++] = line;
    }
    qsort(lines, n, sizeof(*lines), compare_lines);
    kiln_buf_init(&again, sizeof(text));
    for (size_t i = 0; i < n; i++)
        kiln_buf_printf(&again, "%s\n", lines[i]);
    free(copy);
    return give(&again);
}

const char *kiln_test_view_text(const struct kiln_view *view)
{
    struct kiln_buf out;

    kiln_buf_init(&out, sizeof(text));
    for (uint32_t i = 0; i < view->n_rows; i++) {
        const struct kiln_view_row *row = &view->rows[i];

        for (uint32_t k = 0; k < row->n; k++) {
            if (k)
                kiln_buf_putc(&out, ';');
            kiln_buf_add_str(&out, view->frames[view->path[row->first + k]].name);
        }
        kiln_buf_printf(&out, "%s %lld\n", row->n ? "" : "-", (long long)row->value);
    }
    return sorted(&out);
}

static void print_node(struct kiln_buf *out, const struct kiln_tree *tree,
                       const struct kiln_tree_node *node)
{
    struct kiln_str name =
        node->frame == KILN_TREE_ROOT ? KILN_STR("root") : tree->frames[node->frame].name;

    kiln_buf_printf(out, "%*s%.*s ", (int)node->depth * 2, "", KILN_STR_ARG(name));
    if (tree->is_diff)
        kiln_buf_printf(out, "%lld->%lld %lld->%lld\n", (long long)node->total_a,
                        (long long)node->total_b, (long long)node->self_a, (long long)node->self_b);
    else
        kiln_buf_printf(out, "%lld %lld\n", (long long)node->total_b, (long long)node->self_b);
}

const char *kiln_test_tree_text(const struct kiln_tree *tree)
{
    struct kiln_buf out;

    kiln_buf_init(&out, sizeof(text));
    for (uint32_t i = 0; i < tree->n_nodes; i++)
        print_node(&out, tree, &tree->nodes[i]);
    return give(&out);
}

const char *kiln_test_top_text(const struct kiln_view *view, enum kiln_top_order order)
{
    struct kiln_top_row *rows;
    struct kiln_buf out;
    uint32_t n;

    assert_int_equal(kiln_top(view, order, &rows, &n), 0);
    kiln_buf_init(&out, sizeof(text));
    for (uint32_t i = 0; i < n; i++)
        kiln_buf_printf(&out, "%.*s %lld %lld\n", KILN_STR_ARG(view->frames[rows[i].frame].name),
                        (long long)rows[i].self, (long long)rows[i].total);
    kiln_free(rows);
    return give(&out);
}
