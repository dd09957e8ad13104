/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types, labels and series.
 *
 *   ProfileTypesResponse  1 profile_types   ProfileType 1 ID 2 name 4 sample_type 5 sample_unit
 *                                                       6 period_type 7 period_unit
 *   LabelNamesResponse    1 names           LabelValuesResponse 1 names
 *   SeriesResponse        2 labels_set      Labels 1 labels  LabelPair 1 name 2 value
 *
 * Labels of a set, and sets, are sorted.  Names that are no words are for clients that say they
 * take them.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "api/pyroscope_int.h"
#include "base/json.h"
#include "store/meaning.h"

#define SERIES_NAMES_MAX 256u /* labels of a series that are told */
#define VALUES_MAX       100u /* of a label that only samples have, to be one of them */

/* [a-zA-Z_][a-zA-Z0-9_]* */
static bool is_word(struct kiln_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.ptr[i];

        if (c != '_' && (c >= 0x80 || !(i ? isalnum(c) : isalpha(c))))
            return false;
    }
    return name.len > 0;
}

/* Rows of `names` (none: the names of all labels) in the answer's window. */
static int get_rows(struct kiln_pyro_call *call, const struct kiln_window *window,
                    const struct kiln_str *names, uint32_t n, struct kiln_labels **ret_labels)
{
    struct kiln_ask *ask;
    int r = kiln_pyro_ask(call, &call->request, KILN_PYRO_MATCHERS, window, &ask);

    if (r < 0)
        return r;
    r = kiln_ask_labels(ask, names, n, ret_labels, &call->err);
    kiln_pyro_ask_close(ask);
    return r;
}

/* ---- types ---- */

static void put_type(struct kiln_pb_out *w, struct kiln_str id)
{
    size_t end = kiln_pb_mark(w);
    struct kiln_type type;

    if (kiln_query_type(id, &type) < 0)
        return;
    kiln_pb_put_bytes(w, 7, type.period_unit);
    kiln_pb_put_bytes(w, 6, type.period_type);
    kiln_pb_put_bytes(w, 5, type.unit);
    kiln_pb_put_bytes(w, 4, type.type);
    kiln_pb_put_bytes(w, 2, type.name);
    kiln_pb_put_bytes(w, 1, id);
    kiln_pb_put_message(w, 1, end);
}

int kiln_pyro_profile_types(struct kiln_pyro_call *call)
{
    static const struct kiln_str name = {"__profile_type__", 16};
    struct kiln_window window = {0, 0}; /* no times at all: all that there is */
    struct kiln_labels *labels;
    int r = 0;

    if (call->request.start_ms || call->request.end_ms)
        r = kiln_pyro_window(call, &call->request, &window);
    if (r == 0)
        r = get_rows(call, &window, &name, 1, &labels);
    if (r < 0)
        return r;
    for (uint32_t i = labels->n_rows; i-- > 0;)
        put_type(&call->out, labels->rows[i].values[0]);
    kiln_labels_free(labels);
    return 0;
}

/* ---- labels ---- */

int kiln_pyro_label_names(struct kiln_pyro_call *call)
{
    struct kiln_window window;
    struct kiln_labels *labels;
    int r = kiln_pyro_window(call, &call->request, &window);

    if (r == 0)
        r = get_rows(call, &window, NULL, 0, &labels);
    if (r < 0)
        return r;
    for (uint32_t i = labels->n_rows; i-- > 0;)
        if (call->utf8_names || is_word(labels->rows[i].values[0]))
            kiln_pb_put_element(&call->out, 1, labels->rows[i].values[0]);
    kiln_labels_free(labels);
    return 0;
}

int kiln_pyro_label_values(struct kiln_pyro_call *call)
{
    struct kiln_window window;
    struct kiln_labels *labels;
    int r = kiln_pyro_window(call, &call->request, &window);

    if (r == 0 && call->request.name.len == 0)
        r = kiln_pyro_refuse(call, "name is required");
    if (r == 0)
        r = get_rows(call, &window, &call->request.name, 1, &labels);
    if (r < 0)
        return r;
    for (uint32_t i = labels->n_rows; i-- > 0;)
        if (labels->rows[i].values[0].len)
            kiln_pb_put_element(&call->out, 1, labels->rows[i].values[0]);
    kiln_labels_free(labels);
    return 0;
}

/* ---- series ---- */

void kiln_pyro_put_pairs(struct kiln_pb_out *w, uint32_t field, const struct kiln_str *names,
                         const struct kiln_str *values, uint32_t n)
{
    for (uint32_t i = n; i-- > 0;) {
        size_t end = kiln_pb_mark(w);

        if (values[i].len == 0)
            continue;
        kiln_pb_put_bytes(w, 2, values[i]);
        kiln_pb_put_bytes(w, 1, names[i]);
        kiln_pb_put_message(w, field, end);
    }
}

static int by_text(const void *a, const void *b)
{
    return kiln_str_cmp(*(const struct kiln_str *)a, *(const struct kiln_str *)b);
}

int kiln_pyro_sort_names(struct kiln_pyro_call *call, const struct kiln_texts *texts,
                         struct kiln_texts *ret)
{
    struct kiln_str *names = kiln_arena_alloc(&call->arena, (texts->n + 1) * sizeof(*names));
    uint32_t n = 0;

    if (!names)
        return -ENOMEM;
    if (texts->n)
        memcpy(names, texts->items, texts->n * sizeof(*names));
    qsort(names, texts->n, sizeof(*names), by_text);
    for (uint32_t i = 0; i < texts->n; i++)
        if (n == 0 || !kiln_str_eq(names[n - 1], names[i]))
            names[n++] = names[i];
    *ret = (struct kiln_texts){.items = names, .n = n};
    return 0;
}

/* ---- series of the store ---- */

struct looking {
    const struct kiln_question *question;
    int (*each)(void *context, const struct kiln_series *series,
                const struct kiln_series_found *found);
    void *context;
};

/* Labels of which only attributes can tell do not matter here. */
static int look_at(void *context, const struct kiln_series_found *found)
{
    const struct looking *looking = context;
    const struct kiln_question *question = looking->question;
    struct kiln_series series;
    struct kiln_str value;
    int r = kiln_leash_check(question->leash);

    if (r < 0 || kiln_series_parse(found->key, &series) < 0)
        return r;
    if (!kiln_question_has(question, &series))
        return 0;
    r = 1;
    for (uint32_t i = 0; i < question->n_matchers && r > 0; i++)
        if (kiln_meaning_of_series(&series, question->matchers[i].name, &value))
            r = kiln_meaning_match(&question->matchers[i], value);
    return r > 0 ? looking->each(looking->context, &series, found) : r;
}

int kiln_pyro_each_series(struct kiln_pyro_call *call, const struct kiln_question *question,
                          int (*each)(void *context, const struct kiln_series *series,
                                      const struct kiln_series_found *found),
                          void *context)
{
    struct looking looking = {.question = question, .each = each, .context = context};
    struct kiln_engine *engine = call->api->engine;
    int r = 0;

    for (uint32_t i = 0; i < question->n_tenants && r == 0; i++) {
        struct kiln_selection selection = {.tenant = question->tenants[i],
                                           .n_damaged = &call->n_damaged,
                                           .leash = question->leash};

        if (question->n_windows) {
            selection.start_ns = question->windows[0].start_ns;
            selection.end_ns = question->windows[0].end_ns;
        }
        r = engine->ops->series(engine, &selection, look_at, &looking, &call->err);
    }
    return r;
}

/* Names of labels, each once. */
struct naming {
    struct kiln_pyro_call *call;
    struct kiln_texts names;
};

static bool has_name(const struct naming *naming, struct kiln_str name)
{
    for (uint32_t i = 0; i < naming->names.n; i++)
        if (kiln_str_eq(naming->names.items[i], name))
            return true;
    return false;
}

static int add_name(struct naming *naming, struct kiln_str name)
{
    struct kiln_texts *names = &naming->names;

    if (has_name(naming, name) || (!naming->call->utf8_names && !is_word(name)) ||
        names->n == SERIES_NAMES_MAX)
        return 0;
    names->items[names->n] = kiln_arena_copy(&naming->call->arena, name);
    return names->items[names->n++].ptr ? 0 : -ENOMEM;
}

static int name_series(void *context, const struct kiln_series *series,
                       const struct kiln_series_found *found)
{
    struct kiln_str labels = series->labels, name, value;
    int r = 0;

    (void)found;
    while (r == 0 && kiln_series_label(&labels, &name, &value))
        r = add_name(context, name);
    return r;
}

static bool is_number(struct kiln_str text)
{
    double number;

    return kiln_json_parse_double(text, &number) == 0;
}

/* Whether a label of samples says something of series: not numbers, and not too many texts. */
static int tells_sets(struct kiln_pyro_call *call, const struct kiln_window *window,
                      struct kiln_str name)
{
    struct kiln_labels *labels;
    int r = get_rows(call, window, &name, 1, &labels);
    bool tells = false;

    if (r < 0)
        return r;
    for (uint32_t i = 0; i < labels->n_rows && labels->n_rows <= VALUES_MAX && !tells; i++) {
        struct kiln_str value = labels->rows[i].values[0];

        tells = value.len && !is_number(value);
    }
    kiln_labels_free(labels);
    return tells;
}

/* Adds labels that series do not have, but their samples. */
static int name_samples(struct naming *naming, const struct kiln_window *window)
{
    struct kiln_labels *labels;
    int r = get_rows(naming->call, window, NULL, 0, &labels);

    if (r < 0)
        return r;
    for (uint32_t i = 0; i < labels->n_rows && r >= 0 && naming->names.n < SERIES_NAMES_MAX; i++) {
        struct kiln_str name = labels->rows[i].values[0];

        if (has_name(naming, name) || (!naming->call->utf8_names && !is_word(name)))
            continue;
        r = tells_sets(naming->call, window, name);
        if (r > 0)
            r = add_name(naming, name);
    }
    kiln_labels_free(labels);
    return r < 0 ? r : 0;
}

/* Labels that series have, and of those that only samples have what does not make thousands. */
static int all_names(struct kiln_pyro_call *call, const struct kiln_window *window,
                     struct kiln_texts *ret)
{
    struct naming naming = {.call = call};
    struct kiln_ask *ask;
    int r = kiln_pyro_ask(call, &call->request, KILN_PYRO_MATCHERS, window, &ask);

    if (r < 0)
        return r;
    naming.names.items =
        kiln_arena_alloc(&call->arena, SERIES_NAMES_MAX * sizeof(*naming.names.items));
    if (!naming.names.items)
        r = -ENOMEM;
    for (uint32_t i = 0; r == 0 && kiln_pseudo_label(i); i++)
        r = add_name(&naming, kiln_str_of(kiln_pseudo_label(i)));
    if (r == 0)
        r = kiln_pyro_each_series(call, &ask->question, name_series, &naming);
    kiln_pyro_ask_close(ask);
    if (r == 0)
        r = name_samples(&naming, window);
    return r < 0 ? r : kiln_pyro_sort_names(call, &naming.names, ret);
}

static int series_names(struct kiln_pyro_call *call, const struct kiln_window *window,
                        struct kiln_texts *ret)
{
    uint32_t n = 0;
    int r;

    if (call->request.label_names.n == 0)
        return all_names(call, window, ret);
    r = kiln_pyro_sort_names(call, &call->request.label_names, ret);
    for (uint32_t i = 0; r == 0 && i < ret->n; i++)
        if (call->utf8_names || is_word(ret->items[i]))
            ret->items[n++] = ret->items[i];
    ret->n = n;
    if (r == 0 && n > SERIES_NAMES_MAX)
        return kiln_pyro_refuse(call, "more than %u label names", SERIES_NAMES_MAX);
    return r;
}

/* The next label of a set that has a value; names->n behind the last. */
static uint32_t next_pair(const struct kiln_label_row *row, const struct kiln_texts *names,
                          uint32_t i)
{
    while (i < names->n && row->values[i].len == 0)
        i++;
    return i;
}

/* By their pairs: a name comes before another name, whatever it says. */
static int by_pairs(const void *left, const void *right, void *context)
{
    const struct kiln_label_row *a = left, *b = right;
    const struct kiln_texts *names = context;
    uint32_t i = next_pair(a, names, 0), k = next_pair(b, names, 0);

    while (i < names->n && i == k) {
        int order = kiln_str_cmp(a->values[i], b->values[i]);

        if (order)
            return order;
        i = next_pair(a, names, i + 1);
        k = next_pair(b, names, k + 1);
    }
    if (i == k)
        return 0;
    if (i == names->n || k == names->n) /* the shorter one */
        return i == names->n ? -1 : 1;
    return i < k ? -1 : 1;
}

int kiln_pyro_series(struct kiln_pyro_call *call)
{
    struct kiln_window window;
    struct kiln_labels *labels;
    struct kiln_texts names;
    int r = kiln_pyro_window(call, &call->request, &window);

    if (r == 0)
        r = series_names(call, &window, &names);
    if (r < 0 || names.n == 0)
        return r;
    r = get_rows(call, &window, names.items, names.n, &labels);
    if (r < 0)
        return r;
    if (labels->n_rows)
        qsort_r(labels->rows, labels->n_rows, sizeof(*labels->rows), by_pairs, &names);
    for (uint32_t i = labels->n_rows; i-- > 0;) {
        size_t end = kiln_pb_mark(&call->out);

        kiln_pyro_put_pairs(&call->out, 1, names.items, labels->rows[i].values, names.n);
        if (kiln_pb_mark(&call->out) != end)
            kiln_pb_put_message(&call->out, 2, end);
    }
    kiln_labels_free(labels);
    return 0;
}
