/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine is asked for the series of each tenant; those that their own labels rule out are left,
 * and each other one is selected by itself, so that every profile is known by its series: by a
 * condition on each label that any series of the tenant has, an absent one being empty.
 */
#include "oracle_int.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/sat.h"

#define KEY_MAX (1u << 20) /* bytes of a text made of labels */

/* ---- series ---- */

struct finding {
    struct kiln_facts *facts;
    struct kiln_str tenant;
};

/* Its type, or a part of it where the service has not the whole. */
static bool is_about(const struct kiln_question *q, const struct kiln_series *series)
{
    bool whole = q->n_parts == 0, part = false;

    for (uint32_t i = 0; i < q->n_whole; i++)
        whole |= kiln_str_eq(q->whole[i], series->service);
    for (uint32_t i = 0; i < q->n_parts; i++)
        part |= kiln_str_starts(series->type, q->parts[i]);
    return whole ? kiln_str_eq(q->type, series->type) : part;
}

/* 1 unless a label of the series itself says otherwise. */
static int series_may(const struct kiln_question *q, const struct kiln_series *series)
{
    int r = !q->type.len || is_about(q, series);

    for (uint32_t i = 0; i < q->n_matchers && r == 1; i++) {
        struct kiln_str value;

        if (kiln_meaning_of_series(series, q->matchers[i].name, &value))
            r = kiln_meaning_match(&q->matchers[i], value);
    }
    return r;
}

static int learn_labels(struct kiln_facts *facts, const struct kiln_series *series)
{
    struct kiln_str labels = series->labels, name, value;
    uint32_t number;
    int r = 0;

    while (r == 0 && kiln_series_label(&labels, &name, &value))
        r = kiln_texts_add(&facts->label_names, name, &number);
    return r;
}

static int find_one(void *context, const struct kiln_series_found *found)
{
    struct finding *finding = context;
    struct kiln_facts *facts = finding->facts;
    struct kiln_fact_source source = {.tenant = finding->tenant, .found = *found};
    int r;

    source.found.key = kiln_arena_copy(&facts->arena, found->key);
    if (!source.found.key.ptr)
        return -ENOMEM;
    r = kiln_series_parse(source.found.key, &source.series);
    if (r == 0)
        r = learn_labels(facts, &source.series);
    if (r == 0)
        r = series_may(facts->question, &source.series);
    if (r <= 0)
        return r;
    r = kiln_grow(&facts->budget, (void **)&facts->sources, &facts->cap_sources,
                  (uint64_t)facts->n_sources + 1, sizeof(*facts->sources), UINT32_MAX);
    if (r == 0)
        facts->sources[facts->n_sources++] = source;
    return r;
}

/* All times that windows span; false where that is none. */
static bool span(const struct kiln_question *q, struct kiln_selection *selection)
{
    if (!q->n_windows)
        return true;
    selection->start_ns = q->windows[0].start_ns;
    selection->end_ns = q->windows[q->n_windows - 1].end_ns;
    return selection->end_ns > selection->start_ns;
}

/* ---- labels ---- */

static bool find_attr(const struct kiln_facts *facts, uint32_t profile, uint32_t attrs,
                      struct kiln_str name, const struct kiln_attr **ret_attr)
{
    const struct kiln_fact_profile *p = &facts->profiles[profile];
    const struct kiln_batch *batch = facts->sources[p->source].batch;
    const uint32_t sets[] = {attrs, batch->profiles[p->profile].attrs,
                             batch->scopes[p->scope].attrs, batch->resources[p->resource].attrs};

    for (uint32_t i = 0; i < KILN_ARRAY_LEN(sets); i++) {
        *ret_attr = kiln_set_find(batch, sets[i], name);
        if (*ret_attr)
            return true;
    }
    return false;
}

/* False: nobody has it. */
static bool find_label(const struct kiln_facts *facts, uint32_t profile, uint32_t attrs,
                       const struct kiln_str *name, struct kiln_str *ret_value,
                       char scratch[KILN_MEANING_SCRATCH])
{
    const struct kiln_fact_source *source = &facts->sources[facts->profiles[profile].source];
    const struct kiln_attr *attr;

    *ret_value = KILN_STR("");
    if (kiln_meaning_of_series(&source->series, *name, ret_value))
        return true;
    if (!find_attr(facts, profile, attrs, *name, &attr))
        return false;
    *ret_value = kiln_meaning_text(source->batch, &attr->value, scratch);
    return true;
}

struct kiln_str kiln_fact_label(const struct kiln_facts *facts, uint32_t profile, uint32_t attrs,
                                struct kiln_str name, char scratch[KILN_MEANING_SCRATCH])
{
    struct kiln_str value;

    find_label(facts, profile, attrs, &name, &value, scratch);
    return value;
}

/* 1 if all matchers hold; one about a label that nobody has does where `absent_holds`, but
 * for labels that make series: who lacks one is of another version, not a process at rest. */
static int labels_hold(const struct kiln_facts *facts, uint32_t profile, uint32_t attrs,
                       bool absent_holds)
{
    const struct kiln_question *q = facts->question;
    char scratch[KILN_MEANING_SCRATCH];
    int r = 1;

    for (uint32_t i = 0; i < q->n_matchers && r == 1; i++) {
        struct kiln_str value;

        if (!find_label(facts, profile, attrs, &q->matchers[i].name, &value, scratch) &&
            absent_holds && !kiln_series_made_by(q->matchers[i].name))
            continue;
        r = kiln_meaning_match(&q->matchers[i], value);
    }
    return r;
}

/* ---- what else a sample must be ---- */

bool kiln_fact_in_time(const struct kiln_question *q, uint64_t time_ns)
{
    for (uint32_t i = 0; i < q->n_windows; i++) {
        if (time_ns >= q->windows[i].start_ns && time_ns < q->windows[i].end_ns)
            return true;
    }
    return q->n_windows == 0;
}

static bool is_one_of(const void *id, const void *list, uint32_t n, size_t size)
{
    for (uint32_t i = 0; i < n; i++) {
        if (memcmp(id, (const char *)list + i * size, size) == 0)
            return true;
    }
    return n == 0;
}

static bool link_wanted(const struct kiln_question *q, const struct kiln_batch *batch,
                        uint32_t link)
{
    const struct kiln_link *l = &batch->dict.links[link];

    if (!q->n_trace_ids && !q->n_span_ids)
        return true;
    return link && is_one_of(l->trace_id, q->trace_ids, q->n_trace_ids, 16) &&
           is_one_of(l->span_id, q->span_ids, q->n_span_ids, 8);
}

static bool says_stacks(const struct kiln_stack_choice *c)
{
    return c->n_call_site || c->n_with || c->n_without || c->with_regex || c->without_regex;
}

static int choose_stacks(struct kiln_fact_source *source, const struct kiln_stack_choice *choice,
                         struct kiln_err *err)
{
    struct kiln_stack_names names;
    int r;

    if (!says_stacks(choice))
        return 0;
    source->stacks = kiln_calloc(source->batch->dict.n_stacks, sizeof(*source->stacks));
    if (!source->stacks)
        return -ENOMEM;
    r = kiln_stack_names_init(&names, source->batch, err);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < source->batch->dict.n_stacks && r >= 0; i++) {
        r = kiln_stack_chosen(&names, i, choice);
        source->stacks[i] = (int8_t)r;
    }
    kiln_stack_names_done(&names);
    return r < 0 ? r : 0;
}

/* ---- observations ---- */

static uint64_t time_of(const struct kiln_batch *batch, const struct kiln_profile *head,
                        const struct kiln_sample *s, uint32_t i)
{
    const uint64_t *times = kiln_sample_times(batch, s);

    return times ? times[i] : head->time_ns;
}

static int add_fact(struct kiln_facts *facts, uint32_t profile, uint32_t sample, uint32_t i)
{
    const struct kiln_fact_profile *p = &facts->profiles[profile];
    const struct kiln_batch *batch = facts->sources[p->source].batch;
    const struct kiln_sample *s = &batch->samples[sample];
    int64_t raw = s->has_values ? kiln_sample_values(batch, s)[i] : 1;
    struct kiln_fact fact = {
        .profile = profile,
        .sample = sample,
        .time_ns = time_of(batch, &batch->profiles[p->profile], s, i),
        .value = kiln_sat_mul(raw, p->weight.scale),
        .count = kiln_weight_count(&p->weight, s->has_times, raw),
    };
    int r;

    if (!kiln_fact_in_time(facts->question, fact.time_ns))
        return 0;
    r = kiln_grow(&facts->budget, (void **)&facts->facts, &facts->cap_facts,
                  (uint64_t)facts->n_facts + 1, sizeof(fact), UINT32_MAX);
    if (r == 0)
        facts->facts[facts->n_facts++] = fact;
    return r;
}

/* 1 if its labels pass. */
static int add_sample(struct kiln_facts *facts, uint32_t profile, uint32_t sample)
{
    const struct kiln_fact_source *source = &facts->sources[facts->profiles[profile].source];
    const struct kiln_sample *s = &source->batch->samples[sample];
    int pass = labels_hold(facts, profile, s->attrs, false);
    int r = 0;

    if (pass <= 0 || (source->stacks && !source->stacks[s->stack]) ||
        !link_wanted(facts->question, source->batch, s->link))
        return pass;
    for (uint32_t i = 0; i < s->n && r == 0; i++)
        r = add_fact(facts, profile, sample, i);
    return r < 0 ? r : pass;
}

/* Whether its own time, or any of its observations, are in the time. */
static bool profile_in_time(const struct kiln_question *q, const struct kiln_batch *batch,
                            const struct kiln_profile *head)
{
    bool in = kiln_fact_in_time(q, head->time_ns);

    for (uint32_t i = 0; i < head->n_samples && !in; i++) {
        const struct kiln_sample *s = &batch->samples[head->first_sample + i];

        for (uint32_t k = 0; k < s->n && !in; k++)
            in = kiln_fact_in_time(q, time_of(batch, head, s, k));
    }
    return in;
}

/* ---- profiles ---- */

static int number_process(struct kiln_facts *facts, uint32_t profile, uint32_t *ret_process)
{
    const struct kiln_fact_source *source = &facts->sources[facts->profiles[profile].source];
    struct kiln_buf key;
    int r;

    kiln_buf_init(&key, KEY_MAX);
    kiln_buf_add_str(&key, source->tenant);
    kiln_buf_putc(&key, '\0');
    kiln_buf_add_str(&key, source->found.key);
    kiln_meaning_process(source->batch,
                         source->batch->resources[facts->profiles[profile].resource].attrs, &key);
    r = key.error ? key.error : kiln_texts_add(&facts->processes, kiln_buf_str(&key), ret_process);
    kiln_buf_done(&key);
    return r;
}

static int add_samples(struct kiln_facts *facts, uint32_t profile)
{
    const struct kiln_profile *head = kiln_fact_head(facts, profile);
    bool any = false;
    int r;

    for (uint32_t i = 0; i < head->n_samples; i++) {
        r = add_sample(facts, profile, head->first_sample + i);
        if (r < 0)
            return r;
        any = any || r;
    }
    r = any ? 1 : labels_hold(facts, profile, 0, true);
    facts->profiles[profile].considered = r > 0;
    return r < 0 ? r : 0;
}

static int add_profile(struct kiln_facts *facts, struct kiln_fact_profile p)
{
    const struct kiln_question *q = facts->question;
    const struct kiln_fact_source *source = &facts->sources[p.source];
    const struct kiln_profile *head = &source->batch->profiles[p.profile];
    uint32_t at = facts->n_profiles;
    int r;

    if (!profile_in_time(q, source->batch, head) ||
        !is_one_of(head->id, q->profile_ids, q->n_profile_ids, 16))
        return 0;
    r = kiln_grow(&facts->budget, (void **)&facts->profiles, &facts->cap_profiles,
                  (uint64_t)facts->n_profiles + 1, sizeof(p), UINT32_MAX);
    if (r < 0)
        return r;
    p.weight = kiln_weight_of(source->batch, head, source->series.type);
    facts->profiles[facts->n_profiles++] = p;
    r = number_process(facts, at, &facts->profiles[at].process);
    return r < 0 ? r : add_samples(facts, at);
}

static int add_source(struct kiln_facts *facts, uint32_t source)
{
    const struct kiln_batch *batch = facts->sources[source].batch;
    int r = 0;

    for (uint32_t i = 0; i < batch->n_resources; i++) {
        const struct kiln_resource *resource = &batch->resources[i];

        for (uint32_t s = resource->first_scope; s < resource->first_scope + resource->n_scopes;
             s++) {
            const struct kiln_scope *scope = &batch->scopes[s];

            for (uint32_t p = 0; p < scope->n_profiles && r == 0; p++)
                r = add_profile(facts,
                                (struct kiln_fact_profile){.source = source,
                                                           .resource = i,
                                                           .scope = s,
                                                           .profile = scope->first_profile + p});
        }
    }
    return r;
}

/* ---- everything ---- */

/* Conditions that only this series meets. */
static struct kiln_matcher *pin(const struct kiln_facts *facts, const struct kiln_series *series,
                                uint32_t *ret_n)
{
    uint32_t n = facts->label_names.n;
    struct kiln_matcher *m = kiln_calloc((size_t)n + 2, sizeof(*m));

    if (!m)
        return NULL;
    for (uint32_t i = 0; i < n; i++) {
        struct kiln_str name = facts->label_names.all[i];

        m[i] = (struct kiln_matcher){.name = name, .value = kiln_series_get(series, name)};
    }
    m[n] = (struct kiln_matcher){.name = KILN_STR("service.name"), .value = series->service};
    m[n + 1] = (struct kiln_matcher){.name = KILN_STR("__profile_type__"), .value = series->type};
    *ret_n = n + 2;
    return m;
}

static int read_source(struct kiln_facts *facts, struct kiln_engine *engine, uint32_t at,
                       struct kiln_err *err)
{
    struct kiln_fact_source *source = &facts->sources[at];
    const struct kiln_question *q = facts->question;
    struct kiln_selection selection = {.tenant = source->tenant};
    struct kiln_matcher *matchers = pin(facts, &source->series, &selection.n_matchers);
    int r;

    if (!matchers)
        return -ENOMEM;
    selection.matchers = matchers;
    span(q, &selection);
    r = engine->ops->select(engine, &selection, q->leash->memory_max, &source->batch, err);
    kiln_free(matchers);
    if (r < 0 || !source->batch)
        return r;
    r = choose_stacks(source, &q->stacks, err);
    return r < 0 ? r : add_source(facts, at);
}

static int read_tenant(struct kiln_facts *facts, struct kiln_engine *engine, struct kiln_str tenant,
                       struct kiln_err *err)
{
    struct finding finding = {facts, tenant};
    struct kiln_selection selection = {.tenant = tenant};
    uint32_t first = facts->n_sources;
    int r;

    if (!span(facts->question, &selection))
        return 0;
    kiln_texts_init(&facts->label_names);
    r = engine->ops->series(engine, &selection, find_one, &finding, err);
    for (uint32_t i = first; i < facts->n_sources && r == 0; i++)
        r = read_source(facts, engine, i, err);
    kiln_texts_done(&facts->label_names);
    return r;
}

static bool is_first(const struct kiln_str *list, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++) {
        if (kiln_str_eq(list[k], list[i]))
            return false;
    }
    return true;
}

int kiln_facts_init(struct kiln_facts *facts, struct kiln_engine *engine,
                    const struct kiln_question *question, struct kiln_err *err)
{
    int r = 0;

    *facts = (struct kiln_facts){.question = question, .budget = {.limit = SIZE_MAX}};
    kiln_arena_init(&facts->arena, &facts->budget);
    kiln_texts_init(&facts->processes);
    for (uint32_t i = 0; i < question->n_tenants && r == 0; i++) {
        if (is_first(question->tenants, i))
            r = read_tenant(facts, engine, question->tenants[i], err);
    }
    if (r < 0) {
        kiln_facts_done(facts);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    return 0;
}

void kiln_facts_done(struct kiln_facts *facts)
{
    for (uint32_t i = 0; i < facts->n_sources; i++) {
        kiln_batch_unref(facts->sources[i].batch);
        kiln_free(facts->sources[i].stacks);
    }
    kiln_free(facts->sources);
    kiln_free(facts->profiles);
    kiln_free(facts->facts);
    kiln_texts_done(&facts->processes);
    kiln_arena_done(&facts->arena);
}

/* ---- the basis ---- */

static int by_start(const void *a, const void *b)
{
    const struct kiln_window *x = a, *y = b;

    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static uint64_t length_of_union(struct kiln_window *w, uint32_t n)
{
    uint64_t sum = 0, end = 0;

    if (n)
        qsort(w, n, sizeof(*w), by_start);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t from = w[i].start_ns > end ? w[i].start_ns : end;

        if (w[i].end_ns <= from)
            continue;
        sum += w[i].end_ns - from;
        end = w[i].end_ns;
    }
    return sum;
}

static int cover(const struct kiln_facts *facts, uint64_t *ret_ns)
{
    struct kiln_window *windows = kiln_calloc((size_t)facts->n_profiles + 1, sizeof(*windows));
    uint32_t n = 0;

    if (!windows)
        return -ENOMEM;
    for (uint32_t i = 0; i < facts->n_profiles; i++) {
        const struct kiln_profile *head = kiln_fact_head(facts, i);
        uint64_t end = head->time_ns + head->duration_ns;

        if (!facts->profiles[i].considered || !head->time_ns || !head->duration_ns)
            continue;
        windows[n++] = (struct kiln_window){head->time_ns, end < head->time_ns ? UINT64_MAX : end};
    }
    *ret_ns = length_of_union(windows, n);
    kiln_free(windows);
    return 0;
}

int kiln_fact_basis(const struct kiln_facts *facts, struct kiln_basis *ret_basis)
{
    struct kiln_basis basis = {.min_ns = UINT64_MAX};
    int r = cover(facts, &basis.covered_ns);

    for (uint32_t i = 0; i < facts->n_facts; i++) {
        const struct kiln_fact *fact = &facts->facts[i];

        basis.n_profiles += i == 0 || fact->profile != facts->facts[i - 1].profile;
        basis.count += fact->count;
        basis.min_ns = fact->time_ns < basis.min_ns ? fact->time_ns : basis.min_ns;
        basis.max_ns = fact->time_ns > basis.max_ns ? fact->time_ns : basis.max_ns;
    }
    if (!facts->n_facts)
        basis.min_ns = 0;
    if (r == 0)
        *ret_basis = basis;
    return r;
}
