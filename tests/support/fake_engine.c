/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_engine.h"

#include "base/mem.h"
#include "base/regex.h"
#include "test.h"

static struct kiln_fake *fake_of(struct kiln_engine *engine)
{
    return (struct kiln_fake *)((char *)engine - offsetof(struct kiln_fake, engine));
}

static struct kiln_str value_of(const struct kiln_fake *fake, const struct kiln_fake_label *row,
                                struct kiln_str name)
{
    for (size_t i = 0; i < KILN_ARRAY_LEN(fake->label_names) && fake->label_names[i]; i++) {
        if (kiln_str_eq(name, kiln_str_of(fake->label_names[i])))
            return kiln_str_of(row->values[i] ? row->values[i] : "");
    }
    return KILN_STR("");
}

static bool holds(const struct kiln_matcher *m, struct kiln_str value)
{
    switch (m->op) {
    case KILN_MATCH_EQ:
        return kiln_str_eq(value, m->value);
    case KILN_MATCH_NE:
        return !kiln_str_eq(value, m->value);
    case KILN_MATCH_RE:
        return kiln_regex_matches(m->regex, value) == 1;
    default:
        return kiln_regex_matches(m->regex, value) == 0;
    }
}

static bool is_chosen(const struct kiln_fake *fake, const struct kiln_question *question,
                      const struct kiln_fake_label *row)
{
    const struct kiln_series series = {.service = value_of(fake, row, KILN_STR("service_name")),
                                       .type = value_of(fake, row, KILN_STR("__profile_type__"))};
    bool in_time = question->n_windows == 0;

    if (!kiln_question_has(question, &series))
        return false;
    for (uint32_t i = 0; i < question->n_windows; i++)
        in_time |= row->min_ns < question->windows[i].end_ns &&
                   row->max_ns >= question->windows[i].start_ns;
    for (uint32_t i = 0; i < question->n_matchers; i++) {
        const struct kiln_matcher *m = &question->matchers[i];

        if (!holds(m, value_of(fake, row, m->name)))
            return false;
    }
    return in_time;
}

/* The row of these values, which is made if it is not there; rows keep the order they came in. */
static struct kiln_label_row *row_of(struct kiln_labels *labels, const struct kiln_str *values,
                                     uint32_t n)
{
    struct kiln_label_row *row;
    struct kiln_str *copy;

    for (uint32_t i = 0; i < labels->n_rows; i++) {
        uint32_t k = 0;

        while (k < n && kiln_str_eq(labels->rows[i].values[k], values[k]))
            k++;
        if (k == n)
            return &labels->rows[i];
    }
    row = &labels->rows[labels->n_rows++];
    copy = kiln_arena_alloc(&labels->arena, n * sizeof(*copy));
    CHECK(copy != NULL);
    memcpy(copy, values, n * sizeof(*copy));
    *row = (struct kiln_label_row){.values = copy, .min_ns = UINT64_MAX};
    return row;
}

static int labels(struct kiln_engine *engine, const struct kiln_question *question,
                  const struct kiln_str *names, uint32_t n, struct kiln_labels **ret,
                  struct kiln_err *err)
{
    struct kiln_fake *fake = fake_of(engine);
    struct kiln_labels *answer = kiln_calloc(1, sizeof(*answer));

    (void)err;
    fake->n_labels_asked++;
    CHECK(answer != NULL && n <= 8);
    answer->budget.limit = (size_t)1 << 20;
    kiln_arena_init(&answer->arena, &answer->budget);
    answer->rows = kiln_calloc(fake->n_labels + 1, sizeof(*answer->rows));
    CHECK(answer->rows != NULL);
    for (uint32_t i = 0; i < fake->n_labels; i++) {
        const struct kiln_fake_label *given = &fake->labels[i];
        struct kiln_str values[8];
        struct kiln_label_row *row;

        if (!is_chosen(fake, question, given))
            continue;
        for (uint32_t k = 0; k < n; k++)
            values[k] = value_of(fake, given, names[k]);
        row = row_of(answer, values, n);
        row->min_ns = given->min_ns < row->min_ns ? given->min_ns : row->min_ns;
        row->max_ns = given->max_ns > row->max_ns ? given->max_ns : row->max_ns;
        row->n_profiles += given->n_profiles;
    }
    *ret = answer;
    return 0;
}

static int series(struct kiln_engine *engine, const struct kiln_selection *selection,
                  int (*each)(void *context, const struct kiln_series_found *series), void *context,
                  struct kiln_err *err)
{
    struct kiln_fake *fake = fake_of(engine);
    int r = fake->code;

    (void)err;
    for (uint32_t i = 0; i < fake->n_series && r == 0; i++) {
        const struct kiln_fake_series *given = &fake->series[i];
        char key[256];
        struct kiln_series parsed;
        struct kiln_series_found found = {.key = {key, strlen(given->key)},
                                          .min_ns = given->min_ns,
                                          .max_ns = given->max_ns,
                                          .n_profiles = given->n_profiles};

        CHECK(found.key.len < sizeof(key));
        for (size_t k = 0; k < found.key.len; k++)
            key[k] = given->key[k] == '|' ? '\0' : given->key[k];
        CHECK_OK(kiln_series_parse(found.key, &parsed));
        if (kiln_series_match(&parsed, selection->matchers, selection->n_matchers))
            r = each(context, &found);
    }
    return r;
}

static int merge(struct kiln_engine *engine, const struct kiln_question *question,
                 const struct kiln_merge_wants *wants, struct kiln_merged **ret,
                 struct kiln_err *err)
{
    struct kiln_fake *fake = fake_of(engine);

    (void)wants;
    (void)err;
    fake->n_asked++;
    if (fake->code == 0 && fake->merge)
        *ret = fake->merge(fake->context, question);
    return fake->code;
}

static int timeline(struct kiln_engine *engine, const struct kiln_question *question,
                    const struct kiln_timeline_opts *opts, struct kiln_timeline **ret,
                    struct kiln_err *err)
{
    struct kiln_fake *fake = fake_of(engine);

    (void)err;
    fake->n_asked++;
    if (fake->code == 0 && fake->timeline)
        *ret = fake->timeline(fake->context, question, opts);
    return fake->code;
}

static int found(struct kiln_engine *engine, const struct kiln_question *question,
                 const struct kiln_found_opts *opts, struct kiln_found **ret, struct kiln_err *err)
{
    struct kiln_fake *fake = fake_of(engine);

    (void)opts;
    (void)err;
    fake->n_asked++;
    if (fake->code == 0 && fake->found)
        *ret = fake->found(fake->context, question);
    return fake->code;
}

static const struct kiln_engine_ops ops = {
    .labels = labels, .series = series, .merge = merge, .timeline = timeline, .found = found};

void kiln_fake_init(struct kiln_fake *fake)
{
    *fake = (struct kiln_fake){.engine = {.ops = &ops}};
}
