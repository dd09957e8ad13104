/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "core/profile_time.h"

#include "random_batch.h"

uint64_t dice_roll(struct dice *dice, uint64_t sides)
{
    uint64_t z = dice->state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % sides;
}

struct maker {
    struct kiln_builder *b;
    struct dice dice;
    const struct random_opts *opts;
    uint32_t fixed_shape;
};

static uint32_t roll(struct maker *m, uint32_t sides)
{
    return (uint32_t)dice_roll(&m->dice, sides);
}

/* "prefix" and a number below `n`; now and then the empty string. */
static uint32_t text(struct maker *m, const char *prefix, uint32_t n)
{
    char buf[64];

    if (roll(m, 12) == 0)
        return 0;
    snprintf(buf, sizeof(buf), "%s%u", prefix, roll(m, n));
    return kiln_builder_string(m->b, kiln_str_of(buf));
}

static struct kiln_value leaf_value(struct maker *m)
{
    switch (roll(m, 6)) {
    case 0:
        return kiln_value_int((int64_t)roll(m, 5) - 2);
    case 1:
        return kiln_value_bool(roll(m, 2) != 0);
    case 2:
        return kiln_value_double(roll(m, 4) / 4.0);
    case 3:
        return kiln_value_bytes(kiln_builder_string(m->b, KILN_STR("\0\xff raw")));
    default:
        return kiln_value_string(text(m, "value", 6));
    }
}

static struct kiln_value value(struct maker *m, uint32_t depth)
{
    struct kiln_value items[3];
    struct kiln_attr entries[3] = {0};
    uint32_t n = roll(m, 4);

    if (depth == 0 || roll(m, 4) != 0)
        return leaf_value(m);
    for (uint32_t i = 0; i < n; i++) {
        char key[16];

        snprintf(key, sizeof(key), "inner%u", i);
        items[i] = value(m, depth - 1);
        entries[i].key = kiln_builder_string(m->b, kiln_str_of(key));
        entries[i].value = items[i];
    }
    return roll(m, 2) ? kiln_builder_array(m->b, items, n) : kiln_builder_map(m->b, entries, n);
}

static uint32_t set(struct maker *m, bool units)
{
    uint32_t attrs[3];
    uint32_t n = roll(m, 4);

    for (uint32_t i = 0; i < n; i++) {
        uint32_t key =
            kiln_builder_string(m->b, kiln_str_of((const char *[]){"thread.id", "pid", "host.name",
                                                                   "service.name"}[roll(m, 4)]));

        attrs[i] = kiln_builder_attr(m->b, key, value(m, 2), units ? text(m, "unit", 2) : 0);
    }
    return kiln_builder_set(m->b, attrs, n, NULL);
}

static uint32_t location(struct maker *m)
{
    struct kiln_line lines[3] = {0};
    uint32_t n = roll(m, 4);
    struct kiln_mapping mapping = {.start = 4096u * (1 + roll(m, 3)), .limit = 1u << 20};
    struct kiln_location entry = {.address = 5000 + roll(m, 30)};

    mapping.filename = text(m, "/usr/lib/lib", 4);
    mapping.attrs = set(m, false);
    for (uint32_t i = 0; i < n; i++) {
        struct kiln_function f = {.start_line = roll(m, 3)};

        f.name = text(m, "fn", 30);
        f.system_name = text(m, "_Z2fn", 30);
        f.filename = text(m, "/src/file", 5);
        lines[i].function = kiln_builder_function(m->b, &f);
        lines[i].line = (int64_t)roll(m, 9) - 1;
        lines[i].column = roll(m, 2);
    }
    if (roll(m, 3))
        entry.mapping = kiln_builder_mapping(m->b, &mapping);
    entry.attrs = set(m, false);
    return kiln_builder_location(m->b, &entry, lines, n);
}

static uint32_t stack(struct maker *m)
{
    uint32_t frames[8];
    uint32_t n = roll(m, 9);

    for (uint32_t i = 0; i < n; i++) {
        /* Half of the frames come again, so that identities meet. */
        uint32_t known = kiln_builder_peek(m->b)->dict.n_locations;

        frames[i] = roll(m, 2) ? roll(m, known) : location(m);
    }
    return kiln_builder_stack(m->b, frames, n);
}

static uint32_t link(struct maker *m)
{
    struct kiln_link l = {.trace_id = {1, (uint8_t)roll(m, 3)}, .span_id = {2}};

    return roll(m, 3) ? 0 : kiln_builder_link(m->b, &l);
}

static void sample(struct maker *m, uint32_t profile, uint64_t time_ns)
{
    int64_t values[4];
    uint64_t times[4];
    uint32_t shape = m->opts->plain_profiles ? m->fixed_shape : 1 + roll(m, 3);
    uint32_t n = 1 + roll(m, 4);
    uint32_t known = kiln_builder_peek(m->b)->dict.n_stacks;
    uint32_t s = roll(m, 2) ? roll(m, known) : stack(m);
    uint32_t attrs = set(m, true);

    if (m->opts->no_times)
        shape = 1;
    if (shape == 1)
        n = 1;
    for (uint32_t i = 0; i < n; i++) {
        values[i] = (int64_t)roll(m, 1000) - 10;
        times[i] = time_ns + roll(m, 50);
    }
    kiln_builder_add_sample(m->b, profile, s, attrs, link(m), shape & 1 ? values : NULL,
                            shape & 2 ? times : NULL, n);
}

static void profile(struct maker *m)
{
    struct kiln_profile p = {.period = roll(m, 2), .time_ns = 1000 + 50 * roll(m, 2)};
    uint32_t n = roll(m, m->opts->samples ? m->opts->samples : 20);
    uint32_t added;

    p.duration_ns = 50;
    p.sample_type.type = kiln_builder_string(m->b, roll(m, 2) ? KILN_STR("cpu") : KILN_STR("wall"));
    p.sample_type.unit = kiln_builder_string(m->b, KILN_STR("nanoseconds"));
    p.period_type = p.sample_type;
    p.attrs = roll(m, 2) ? set(m, true) : 0;
    m->fixed_shape = 1 + roll(m, 3);
    if (!m->opts->plain_profiles) {
        p.id[15] = (uint8_t)roll(m, 3);
        p.dropped_attrs = roll(m, 2);
        if (roll(m, 8) == 0) {
            p.payload_format = kiln_builder_string(m->b, KILN_STR("pprof"));
            p.payload = KILN_STR("the original");
        }
    }
    added = kiln_builder_add_profile(m->b, &p);
    for (uint32_t i = 0; i < n; i++)
        sample(m, added, p.time_ns);
}

static void resource(struct maker *m)
{
    struct kiln_resource r = {.attrs = set(m, false), .schema_url = text(m, "https://schema/", 2)};
    uint32_t n_scopes = 1 + roll(m, 2);

    kiln_builder_add_resource(m->b, &r);
    if (roll(m, 3) == 0) {
        uint32_t keys[] = {kiln_builder_string(m->b, KILN_STR("host.name")),
                           kiln_builder_string(m->b, KILN_STR("pid"))};

        kiln_builder_add_entity(m->b, 0, kiln_builder_string(m->b, KILN_STR("host")), keys, 1,
                                keys + 1, roll(m, 2));
    }
    for (uint32_t i = 0; i < n_scopes; i++) {
        struct kiln_scope s = {.name = text(m, "scope", 2),
                               .attrs = roll(m, 4) ? 0 : set(m, false),
                               .schema_url = text(m, "https://schema/", 2)};
        uint32_t n_profiles = 1 + roll(m, 3);

        kiln_builder_add_scope(m->b, &s);
        for (uint32_t k = 0; k < n_profiles; k++)
            profile(m);
    }
}

struct kiln_batch *random_batch(const struct random_opts *opts)
{
    struct maker m = {.dice = {opts->seed * 7919 + 1}, .opts = opts};
    struct kiln_batch *batch = NULL;
    uint32_t n;

    if (kiln_builder_new(NULL, &m.b) < 0)
        return NULL;
    if (opts->orphans) {
        set(&m, true);
        stack(&m);
        text(&m, "nobody", 9);
    }
    n = 1 + roll(&m, opts->resources ? opts->resources : 3);
    for (uint32_t i = 0; i < n && !kiln_builder_error(m.b); i++)
        resource(&m);
    return kiln_builder_finish(m.b, &batch, NULL) < 0 ? NULL : batch;
}

void place_times(struct kiln_batch *batch, uint64_t received_ns)
{
    for (uint32_t i = 0; i < batch->n_profiles; i++) {
        const struct kiln_profile *p = &batch->profiles[i];

        for (uint32_t k = 0; k < p->n_samples; k++) {
            const struct kiln_sample *s = &batch->samples[p->first_sample + k];
            uint64_t *times = (uint64_t *)(uintptr_t)kiln_sample_times(batch, s);

            if (times)
                kiln_profile_place(p, received_ns, times, s->n);
        }
    }
}
