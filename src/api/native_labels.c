/* SPDX-License-Identifier: Apache-2.0 */
/* What is there: labels, their values, series, types. */
#include <errno.h>

#include "api/native_int.h"
#include "store/meaning.h"

/* About as many has a row beside its texts; and so much more is asked for a list at a time. */
enum { ROW_BYTES = 128, STEP_BYTES = 1 << 20 };

static uint32_t many(const struct kiln_native_call *call)
{
    if (!(call->args.said & KILN_NATIVE_BIT(LIMIT)))
        return KILN_NATIVE_MANY_ROWS_DEFAULT;
    return call->args.limit ? call->args.limit : UINT32_MAX;
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
    void (*put)(struct kiln_native_call *call, const struct asking *asking,
                const struct kiln_labels *labels);
};

static int ask_labels(struct kiln_native_call *call, const struct asking *asking)
{
    const struct kiln_native_wish wish = {.any_type = true};
    struct kiln_labels *labels;
    struct kiln_ask *ask;
    int r = kiln_native_ask(call, &wish, &ask);

    if (r < 0)
        return r;
    r = kiln_ask_labels(ask, asking->names, asking->n, &labels, &call->err);
    if (r == 0) {
        r = kiln_native_room(call, ask, labels->budget.used + labels->n_rows * (size_t)ROW_BYTES);
        if (r == 0)
            asking->put(call, asking, labels);
        kiln_labels_free(labels);
    }
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

static void put_values(struct kiln_native_call *call, const struct asking *asking,
                       const struct kiln_labels *labels)
{
    uint32_t shown = 0;
    bool truncated = labels->truncated;

    kiln_json_put_object(&call->w);
    kiln_native_put_text(call, "name", asking->names[0]);
    kiln_json_put_name(&call->w, "values");
    kiln_json_put_array(&call->w);
    for (uint32_t i = 0; i < labels->n_rows; i++) {
        const struct kiln_label_row *row = &labels->rows[i];

        if (row->values[0].len == 0) /* what has no such label */
            continue;
        truncated = truncated || shown == many(call);
        if (shown == many(call))
            break;
        shown++;
        kiln_json_put_object(&call->w);
        kiln_native_put_text(call, "value", row->values[0]);
        put_row_facts(call, row->n_profiles, row->min_ns, row->max_ns);
        kiln_json_end_object(&call->w);
    }
    kiln_json_end_array(&call->w);
    kiln_native_put_flag(call, "truncated", truncated);
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
            kiln_json_put_name_str(&call->w, asking->names[k]);
            kiln_json_put_str(&call->w, row->values[k]);
        }
        kiln_json_end_object(&call->w);
        put_row_facts(call, row->n_profiles, row->min_ns, row->max_ns);
        kiln_json_end_object(&call->w);
    }
    kiln_json_end_array(&call->w);
    kiln_native_put_flag(call, "truncated", labels->truncated || n < labels->n_rows);
    end(call);
}

struct listing {
    struct kiln_native_call *call;
    struct kiln_ask *ask;
    const struct kiln_question *question;
    uint32_t n;
    bool truncated;
};

/* 1 if all matchers hold of the labels of the series, which are all it has; 0, or an error. */
static int is_chosen(const struct kiln_question *question, const struct kiln_series *series)
{
    int r = 1;

    if (question->type.len && !kiln_str_eq(series->type, question->type))
        return 0;
    for (uint32_t i = 0; r == 1 && i < question->n_matchers; i++) {
        struct kiln_str value = KILN_STR("");

        if (!kiln_meaning_of_series(series, question->matchers[i].name, &value))
            value = KILN_STR("");
        r = kiln_meaning_match(&question->matchers[i], value);
    }
    return r;
}

static int put_found(void *context, const struct kiln_series_found *found)
{
    struct listing *listing = context;
    struct kiln_native_call *call = listing->call;
    struct kiln_series series;
    int r = kiln_leash_check(listing->question->leash);

    if (r < 0 || kiln_series_parse(found->key, &series) < 0)
        return r;
    r = is_chosen(listing->question, &series);
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
static int list_series(struct listing *listing)
{
    struct kiln_native_call *call = listing->call;
    const struct kiln_question *question = listing->question;
    struct kiln_engine *engine = call->api->engine;
    struct kiln_selection selection = {0};
    int r = 0;

    if (question->n_windows) {
        selection.start_ns = question->windows[0].start_ns;
        selection.end_ns = question->windows[question->n_windows - 1].end_ns;
    }
    for (uint32_t i = 0; r == 0 && i < question->n_tenants; i++) {
        selection.tenant = question->tenants[i];
        r = engine->ops->series(engine, &selection, put_found, listing, &call->err);
    }
    return r;
}

static int run_all_series(struct kiln_native_call *call)
{
    const struct kiln_native_wish wish = {.any_type = true};
    struct listing listing = {.call = call};
    struct kiln_ask *ask;
    int r = kiln_native_ask(call, &wish, &ask);

    if (r < 0)
        return r;
    listing.ask = ask;
    listing.question = &ask->question;
    kiln_json_put_object(&call->w);
    kiln_json_put_name(&call->w, "series");
    kiln_json_put_array(&call->w);
    r = list_series(&listing);
    kiln_json_end_array(&call->w);
    kiln_native_put_flag(call, "truncated", listing.truncated);
    end(call);
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
