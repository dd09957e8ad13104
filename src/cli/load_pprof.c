/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profile of one process: a scope of the base, its values redrawn around what they were, its
 * stacks new where the churn says so.  The profiles of a scope (samples and CPU time, objects and
 * bytes) have the same samples: what is drawn for a row holds for all of them.
 */
#include "base/clock.h"
#include "cli/load_make.h"

/* Which scope of the base, of which service and host. */
struct place {
    const struct kiln_scope *scope;
    uint32_t service, host;
};

static struct place place_of(const struct kiln_load *load, uint64_t number)
{
    uint32_t n_scopes = load->base->n_scopes;
    uint64_t process = number / n_scopes;

    return (struct place){
        .scope = &load->base->scopes[number % n_scopes],
        .service = (uint32_t)(process % load->opts.services),
        .host = (uint32_t)(process / load->opts.services % load->opts.hosts),
    };
}

static void add_resource(struct kiln_load_maker *m, const struct place *place,
                         const struct kiln_load_request *request)
{
    uint32_t attrs[3];

    attrs[0] =
        kiln_builder_text_attr(m->b, KILN_STR("service.name"), kiln_str_of(request->service));
    attrs[1] = kiln_builder_text_attr(m->b, KILN_STR("host.name"), kiln_str_of(request->host));
    attrs[2] = kiln_builder_attr(m->b, kiln_builder_string(m->b, KILN_STR("process.pid")),
                                 kiln_value_int(600 + place->service * 37), 0);
    kiln_builder_add_resource(
        m->b, &(struct kiln_resource){.attrs = kiln_builder_set(m->b, attrs, 3, NULL)});
}

/* Around `value`, in the same steps: a multiple of the period stays one. */
static int64_t redraw(int64_t value, int64_t period, int64_t dice)
{
    int64_t step = period > 1 && value % period == 0 ? period : 1;
    int64_t times = value / step;
    int64_t spread = times / 2;

    if (times < 2 || spread > INT32_MAX)
        return value;
    return (times - spread / 2 + dice % (spread + 1)) * step;
}

/* A stack for each row of the scope. */
static void draw_stacks(struct kiln_load_maker *m, const struct place *place,
                        const struct kiln_profile *first)
{
    for (uint32_t i = 0; i < first->n_samples; i++) {
        uint32_t stack = m->load->base->samples[first->first_sample + i].stack;

        m->rows[i].stack = kiln_load_stack(m, place->service, stack);
        m->rows[i].link = kiln_load_span(m);
        m->rows[i].value = (int64_t)(kiln_dice_next(&m->dice) >> 1);
    }
}

static void add_profile(struct kiln_load_maker *m, const struct kiln_load_request *request,
                        const struct kiln_profile *first, uint32_t number)
{
    const struct kiln_batch *base = m->load->base;
    const struct kiln_profile *from = &base->profiles[number];
    struct kiln_profile head = kiln_remap_profile(m->remap, number);
    uint32_t profile;

    head.time_ns = request->time_ns;
    head.duration_ns = from->duration_ns ? from->duration_ns : 10 * KILN_NS_PER_S;
    memset(head.id, 0, sizeof(head.id));
    kiln_load_id(m, &head);
    profile = kiln_builder_add_profile(m->b, &head);
    for (uint32_t i = 0; i < from->n_samples && i < first->n_samples; i++) {
        const struct kiln_sample *s = &base->samples[from->first_sample + i];
        int64_t value = redraw(kiln_sample_total(base, s), from->period, m->rows[i].value);

        kiln_builder_add_sample(m->b, profile, m->rows[i].stack, kiln_remap_set(m->remap, s->attrs),
                                m->rows[i].link, &value, NULL, 1);
        m->n_samples++;
    }
}

void kiln_load_make_pprof(struct kiln_load_maker *m, struct kiln_load_request *request)
{
    const struct kiln_batch *base = m->load->base;
    struct place place = place_of(m->load, m->number);
    const struct kiln_profile *first = &base->profiles[place.scope->first_profile];
    struct kiln_scope head = kiln_remap_scope(m->remap, (uint32_t)(place.scope - base->scopes));

    kiln_load_service_name(place.service, request->service);
    kiln_load_name_host(m->load, place.host, request);
    add_resource(m, &place, request);
    kiln_builder_add_scope(m->b, &head);
    if (place.scope->n_profiles == 0)
        return;
    draw_stacks(m, &place, first);
    for (uint32_t i = 0; i < place.scope->n_profiles; i++)
        add_profile(m, request, first, place.scope->first_profile + i);
}
