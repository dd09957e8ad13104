/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of all sources are brought into one builder, where equal ones meet; the sums wait beside
 * it until all are there.
 */
#include "store/merge_profile.h"

#include <errno.h>

#include "base/sat.h"
#include "store/carry.h"
#include "store/scan_int.h"

struct kiln_merge_profile {
    struct kiln_scan *scan;
    const struct kiln_question *q;
    struct kiln_limits limits;
    struct kiln_builder *b;
    struct kiln_budget budget;
    struct sum {
        int64_t sum;
        double mean;
    } * sums; /* by stack of the builder */
    uint32_t n_sums, cap_sums;
    struct kiln_buf type; /* five-part id of the first profile seen, or what the parts are of */
    int64_t period;
    bool saw;
    size_t charged; /* to the question */
};

int kiln_merge_profile_new(struct kiln_scan *scan, const struct kiln_question *question,
                           struct kiln_merge_profile **ret_profile, struct kiln_err *err)
{
    struct kiln_merge_profile *p = kiln_calloc(1, sizeof(*p));
    int r;

    if (!p)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    p->scan = scan;
    p->q = question;
    p->limits = kiln_limits_default;
    if (question->leash->memory_max)
        p->limits.memory_bytes = question->leash->memory_max;
    p->budget.limit = p->limits.memory_bytes;
    kiln_buf_init(&p->type, 1u << 20);
    r = kiln_builder_new(&p->limits, &p->b);
    if (r < 0) {
        kiln_merge_profile_free(p);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    *ret_profile = p;
    return 0;
}

void kiln_merge_profile_free(struct kiln_merge_profile *p)
{
    if (!p)
        return;
    kiln_builder_free(p->b);
    kiln_array_free(&p->budget, (void **)&p->sums, &p->cap_sums, sizeof(*p->sums));
    kiln_buf_done(&p->type);
    kiln_free(p);
}

void kiln_merge_profile_restart(struct kiln_merge_profile *p)
{
    /* Stacks that nothing adds up to are no samples. */
    for (uint32_t i = 0; i < p->n_sums; i++)
        p->sums[i] = (struct sum){0};
    p->saw = false;
}

int kiln_merge_profile_saw(struct kiln_merge_profile *p, const struct kiln_scan_profile *seen)
{
    if (p->saw)
        return 0;
    p->saw = true;
    p->period = p->q->n_parts ? 0 : seen->origin->period;
    kiln_buf_clear(&p->type);
    kiln_buf_add_str(&p->type, p->q->n_parts ? p->q->type : seen->series->type);
    return p->type.error;
}

/* ---- stacks ---- */

static struct sum sum_of(const struct kiln_merge_sums *sums, uint32_t i)
{
    return (struct sum){sums->sums[i], sums->means ? sums->means[i] : 0};
}

static bool is_nothing(struct sum sum)
{
    return sum.sum == 0 && sum.mean == 0;
}

static int add_sum(struct kiln_merge_profile *p, uint32_t stack, struct sum sum)
{
    int r = kiln_builder_error(p->b);

    if (r == 0)
        r = kiln_grow(&p->budget, (void **)&p->sums, &p->cap_sums, (uint64_t)stack + 1,
                      sizeof(*p->sums), UINT32_MAX);
    if (r < 0)
        return r;
    for (; p->n_sums <= stack; p->n_sums++)
        p->sums[p->n_sums] = (struct sum){0};
    p->sums[stack].sum = (int64_t)((uint64_t)p->sums[stack].sum + (uint64_t)sum.sum);
    p->sums[stack].mean += sum.mean;
    return 0;
}

/* What is carried over at the moment. */
struct adding {
    struct kiln_merge_profile *p;
    const struct kiln_merge_sums *sums;
};

static bool wants_stack(void *context, uint32_t stack)
{
    const struct adding *adding = context;

    return !is_nothing(sum_of(adding->sums, stack));
}

static int take_stack(void *context, uint32_t stack, uint32_t carried)
{
    const struct adding *adding = context;

    return add_sum(adding->p, carried, sum_of(adding->sums, stack));
}

int kiln_merge_profile_add(struct kiln_merge_profile *p, const struct kiln_scan_source *source,
                           const struct kiln_merge_sums *sums, struct kiln_err *err)
{
    struct adding adding = {p, sums};
    const struct kiln_carrier carrier = {
        .scan = p->scan, .b = p->b, .context = &adding, .wants = wants_stack, .take = take_stack};
    size_t bytes;
    int r = kiln_carry_stacks(&carrier, source, sums->n, err);

    if (r < 0)
        return r;
    bytes = kiln_batch_bytes(kiln_builder_peek(p->b)) + p->budget.used;
    if (bytes > p->charged) {
        r = kiln_fund_take(&p->scan->fund, bytes - p->charged);
        p->charged = bytes;
    }
    return r;
}

/* ---- the batch ---- */

static struct kiln_value_type named(struct kiln_builder *b, struct kiln_str type,
                                    struct kiln_str unit)
{
    return (struct kiln_value_type){kiln_builder_string(b, type), kiln_builder_string(b, unit)};
}

/* A count must not be taken as time for its period a second time. */
static uint32_t open_profile(struct kiln_merge_profile *p, const struct kiln_basis *basis)
{
    struct kiln_profile head = {.time_ns = basis->min_ns, .duration_ns = basis->covered_ns};
    struct kiln_str id = p->saw ? kiln_buf_str(&p->type) : p->q->type, parts[5] = {{0}};

    for (uint32_t i = 0; i < KILN_ARRAY_LEN(parts) && id.ptr; i++)
        parts[i] = kiln_str_cut(&id, ':');
    head.sample_type = named(p->b, parts[1], parts[2]);
    head.period_type = named(p->b, parts[3], parts[4]);
    if (p->saw && !kiln_str_eq(parts[2], KILN_STR("count")))
        head.period = p->period;
    kiln_builder_add_resource(p->b, &(struct kiln_resource){0});
    kiln_builder_add_scope(p->b, &(struct kiln_scope){0});
    return kiln_builder_add_profile(p->b, &head);
}

int kiln_merge_profile_finish(struct kiln_merge_profile *p, const struct kiln_basis *basis,
                              struct kiln_batch **ret_batch, struct kiln_err *err)
{
    uint32_t profile = open_profile(p, basis);
    struct kiln_builder *b = p->b;

    for (uint32_t i = 0; i < p->n_sums; i++) {
        int64_t value = p->q->average ? kiln_sat_round(p->sums[i].mean) : p->sums[i].sum;

        if (value)
            kiln_builder_add_value(b, profile, i, 0, value);
    }
    p->b = NULL;
    return kiln_builder_finish(b, ret_batch, err);
}
