/* SPDX-License-Identifier: Apache-2.0 */
/* What is there: labels, their values, series, types. */
#include <errno.h>

#include "api/native_int.h"
#include "store/meaning.h"

/* About as many has a row beside its texts; and so much more is asked for a list at a time. */
enum { ROW_BYTES = 128, STEP_BYTES = 1 << 20, NAMES_MAX = 64 };

static uint32_t many(const struct kiln_native_call *call)
{
    return kiln_native_most(call, KILN_NATIVE_MANY_ROWS_DEFAULT);
}

static void end(struct kiln_native_call *call)
{
    kiln_json_end_object(&call->w);
    kiln_buf_putc(&call->body, '\n');
}

static void put_row_facts(struct kiln_native_call *call, uint64_t n_profiles, uint64_t min_ns,
                          uint64_t max_ns)
{
    kiln_native_put_u64(call, "profiles", n_profiles);
    kiln_native_put_time(call, "first", min_ns);
    kiln_native_put_time(call, "last", max_ns);
}

/* Asks for combinations of labels and has them written. */
struct asking {
    const struct kiln_str *names;
    uint32_t n;
    bool sparse;    /* labels that a combination has not are left out of it */
    bool truncated; /* not all names are asked for */
    void (*put)(struct kiln_native_call *call, const struct asking *asking,
                const struct kiln_labels *labels);
};

static int put_labels(struct kiln_native_call *call, struct kiln_ask *ask,
                      const struct asking *asking)
{
    struct kiln_labels *labels;
    int r = kiln_ask_labels(ask, asking->names, asking->n, &labels, &call->err);

    if (r < 0)
        return r;
    kiln_native_note_damaged(call, labels->n_damaged);
    r = kiln_native_room(call, ask, labels->budget.used + labels->n_rows * (size_t)ROW_BYTES);
    if (r == 0)
        asking->put(call, asking, labels);
    kiln_labels_free(labels);
    return r;
}

static int ask_labels(struct kiln_native_call *call, const struct asking *asking)
{
    const struct kiln_native_wish wish = {.any_type = true};
    struct kiln_ask *ask;
    int r = kiln_native_ask(call, &wish, &ask);

    if (r < 0)
        return r;
    r = put_labels(call, ask, asking);
    kiln_native_close(call, ask);
    return r;
}

/* ---- names ---- */

static void put_names(struct kiln_native_call *call, const struct asking *asking,
                      const struct kiln_labels *labels)
{
    (void)asking;
    kiln_json_put_object(&call->w);
    kiln_json_put_name(&call->w, "labels");
    kiln_json_put_array(&call->w);
    for (uint32_t i = 0; i < labels->n_rows; i++)
        kiln_json_put_str(&call->w, labels->rows[i].values[0]);
    kiln_json_end_array(&call->w);
    kiln_native_put_flag(call, "truncated", labels->truncated);
    end(call);
}

int kiln_native_run_labels(struct kiln_native_call *call)
{
    return ask_labels(call, &(struct asking){.put = put_names});
}

/* ---- values ---- */

static void put_value(struct kiln_native_call *call, const struct kiln_label_row *row)
{
    kiln_json_put_object(&call->w);
    kiln_native_put_text(call, "value", row->values[0]);
    put_row_facts(call, row->n_profiles, row->min_ns, row->max_ns);
    kiln_json_end_object(&call->w);
}

/* The empty value stands for what has no such label, and is none. */
static bool is_wanted(const struct kiln_native_call *call, struct kiln_str value)
{
    return value.len && kiln_native_matches(call, value);
}

static void put_values(struct kiln_native_call *call, const struct asking *asking,
                       const struct kiln_labels *labels)
{
    uint32_t all = 0;

    kiln_json_put_object(&call->w);
    kiln_native_put_text(call, "name", asking->names[0]);
    kiln_json_put_name(&call->w, "values");
    kiln_json_put_array(&call->w);
    for (uint32_t i = 0; i < labels->n_rows; i++)
        if (is_wanted(call, labels->rows[i].values[0]) && all++ < many(call))
            put_value(call, &labels->rows[i]);
    kiln_json_end_array(&call->w);
    kiln_native_put_u64(call, "all", all);
    kiln_native_put_flag(call, "truncated", labels->truncated || all > many(call));
    end(call);
}

int kiln_native_run_values(struct kiln_native_call *call)
{
    const struct kiln_str ending = KILN_STR("/values");
    struct kiln_str name = call->request->rest;

    if (!kiln_str_ends(name, ending) || name.len == ending.len)
        return kiln_err_set(&call->err, -ENOENT, NULL,
                            "there is no such path; /api/v1/labels/NAME/values is one");
    name.len -= ending.len;
    return ask_labels(call, &(struct asking){.names = &name, .n = 1, .put = put_values});
}

/* ---- series ---- */

static void put_combinations(struct kiln_native_call *call, const struct asking *asking,
                             const struct kiln_labels *labels)
{
    uint32_t n = labels->n_rows < many(call) ? labels->n_rows : many(call);

    kiln_json_put_object(&call->w);
    kiln_json_put_name(&call->w, "series");
    kiln_json_put_array(&call->w);
    for (uint32_t i = 0; i < n; i++) {
        const struct kiln_label_row *row = &labels->rows[i];

        kiln_json_put_object(&call->w);
        kiln_json_put_name(&call->w, "labels");
        kiln_json_put_object(&call->w);
        for (uint32_t k = 0; k < asking->n; k++) {
            if (asking->sparse && row->values[k].len == 0)
                continue;
            kiln_json_put_name_str(&call->w, asking->names[k]);
            kiln_json_put_str(&call->w, row->values[k]);
        }
        kiln_json_end_object(&call->w);
        put_row_facts(call, row->n_profiles, row->min_ns, row->max_ns);
        kiln_json_end_object(&call->w);
    }
    kiln_json_end_array(&call->w);
    kiln_native_put_flag(call, "truncated",
                         labels->truncated || asking->truncated || n < labels->n_rows);
    end(call);
}

/*
 * Two passes over the series.  The first finds the names of their labels, and whether attributes
 * have a say; if they have, combinations of these names are asked for, which reads samples.  If not
 * the second writes the series as they are.
 */
struct listing {
    struct kiln_native_call *call;
    struct kiln_ask *ask;
    const struct kiln_question *question;
    struct kiln_str names[NAMES_MAX];
    uint32_t n_names;
    bool attributes; /* a matcher is about a label that a series does not decide */
    uint32_t n;
    bool truncated;
};

/* 1 if all matchers hold that the labels of the series decide; 0, or an error. */
static int is_chosen(struct listing *listing, const struct kiln_series *series)
{
    const struct kiln_question *question = listing->question;
    bool attributes = false;
    int r = 1;

    if (!kiln_question_has(question, series))
        return 0;
    for (uint32_t i = 0; r == 1 && i < question->n_matchers; i++) {
        struct kiln_str value;

        if (kiln_meaning_of_series(series, question->matchers[i].name, &value))
            r = kiln_meaning_match(&question->matchers[i], value);
        else
            attributes = true;
    }
    listing->attributes |= r == 1 && attributes;
    return r;
}

static int add_name(struct listing *listing, struct kiln_str name)
{
    struct kiln_str *to = &listing->names[listing->n_names];

    for (uint32_t i = 0; i < listing->n_names; i++)
        if (kiln_str_eq(listing->names[i], name))
            return 0;
    if (listing->n_names == NAMES_MAX) {
        listing->truncated = true;
        return 0;
    }
    *to = kiln_arena_copy(&listing->ask->arena, name);
    listing->n_names++;
    return to->ptr ? 0 : -ENOMEM;
}

static int learn(void *context, const struct kiln_series_found *found)
{
    struct listing *listing = context;
    struct kiln_series series;
    struct kiln_str name, value;
    int r = kiln_leash_check(listing->question->leash);

    if (r < 0 || kiln_series_parse(found->key, &series) < 0)
        return r;
    r = is_chosen(listing, &series);
    while (r > 0 && kiln_series_label(&series.labels, &name, &value))
        if (add_name(listing, name) < 0)
            r = -ENOMEM;
    return r < 0 ? r : 0;
}

static int put_found(void *context, const struct kiln_series_found *found)
{
    struct listing *listing = context;
    struct kiln_native_call *call = listing->call;
    struct kiln_series series;
    int r = kiln_leash_check(listing->question->leash);

    if (r < 0 || kiln_series_parse(found->key, &series) < 0)
        return r;
    r = is_chosen(listing, &series);
    if (r <= 0)
        return r;
    if (listing->n == many(call)) {
        listing->truncated = true;
        return 0;
    }
    listing->n++;
    if (call->body.len + STEP_BYTES / 2 > call->room)
        r = kiln_native_room(call, listing->ask, STEP_BYTES);
    if (r < 0)
        return r;
    kiln_json_put_object(&call->w);
    kiln_native_put_labels(call, &series);
    put_row_facts(call, found->n_profiles, found->min_ns, found->max_ns);
    kiln_json_end_object(&call->w);
    return call->body.error;
}

/* All series of all tenants asked for. */
static int each_series(struct listing *listing,
                       int (*each)(void *context, const struct kiln_series_found *found))
{
    struct kiln_native_call *call = listing->call;
    const struct kiln_question *question = listing->question;
    struct kiln_engine *engine = call->api->engine;
    uint32_t n_damaged = 0;
    struct kiln_selection selection = {.leash = question->leash, .n_damaged = &n_damaged};
    int r = 0;

    if (question->n_windows) {
        selection.start_ns = question->windows[0].start_ns;
        selection.end_ns = question->windows[question->n_windows - 1].end_ns;
    }
    for (uint32_t i = 0; r == 0 && i < question->n_tenants; i++) {
        selection.tenant = question->tenants[i];
        r = engine->ops->series(engine, &selection, each, listing, &call->err);
    }
    kiln_native_note_damaged(call, n_damaged);
    return r;
}

static int put_series(struct kiln_native_call *call, struct listing *listing)
{
    int r;

    kiln_json_put_object(&call->w);
    kiln_json_put_name(&call->w, "series");
    kiln_json_put_array(&call->w);
    r = each_series(listing, put_found);
    kiln_json_end_array(&call->w);
    kiln_native_put_flag(call, "truncated", listing->truncated);
    end(call);
    return r;
}

static int run_all_series(struct kiln_native_call *call)
{
    const struct kiln_native_wish wish = {.any_type = true};
    struct listing listing = {
        .call = call,
        .names = {KILN_STR("__profile_type__"), KILN_STR("service_name")},
        .n_names = 2,
    };
    struct kiln_ask *ask;
    int r = kiln_native_ask(call, &wish, &ask);

    if (r < 0)
        return r;
    listing.ask = ask;
    listing.question = &ask->question;
    if (ask->question.n_matchers)
        r = each_series(&listing, learn);
    if (r == 0 && listing.attributes)
        r = put_labels(call, ask,
                       &(struct asking){.names = listing.names,
                                        .n = listing.n_names,
                                        .sparse = true,
                                        .truncated = listing.truncated,
                                        .put = put_combinations});
    else if (r == 0)
        r = put_series(call, &listing);
    kiln_native_close(call, ask);
    return r;
}

int kiln_native_run_series(struct kiln_native_call *call)
{
    const struct kiln_native_texts *by = &call->args.by;

    if (by->n == 0)
        return run_all_series(call);
    return ask_labels(call,
                      &(struct asking){.names = by->items, .n = by->n, .put = put_combinations});
}

/* ---- types ---- */

static void put_types(struct kiln_native_call *call, const struct asking *asking,
                      const struct kiln_labels *labels)
{
    (void)asking;
    kiln_json_put_object(&call->w);
    kiln_json_put_name(&call->w, "types");
    kiln_json_put_array(&call->w);
    for (uint32_t i = 0; i < labels->n_rows; i++) {
        const struct kiln_label_row *row = &labels->rows[i];
        struct kiln_type type;

        if (kiln_query_type(row->values[0], &type) < 0)
            continue;
        kiln_json_put_object(&call->w);
        kiln_native_put_type_members(call, &type);
        put_row_facts(call, row->n_profiles, row->min_ns, row->max_ns);
        kiln_json_end_object(&call->w);
    }
    kiln_json_end_array(&call->w);
    end(call);
}

int kiln_native_run_types(struct kiln_native_call *call)
{
    const struct kiln_str name = KILN_STR("__profile_type__");

    return ask_labels(call, &(struct asking){.names = &name, .n = 1, .put = put_types});
}
