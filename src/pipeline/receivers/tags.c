/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/clock.h"
#include "base/mem.h"
#include "core/type.h"
#include "pipeline/receivers/tags.h"

#define DELTA_PREFIX KILN_STR("godeltaprof_")

/* Before 1971 there were no profiles: clients that count in other units mean another time. */
#define TIME_MIN_NS  (365 * 24 * 3600 * KILN_NS_PER_S)

static const struct kiln_str service_key = {"service.name", 12};

static int check(struct kiln_str name, struct kiln_str value, struct kiln_err *err)
{
    if (name.len == 0)
        return kiln_err_set(err, KILN_E_MALFORMED, "labels", "a label has no name");
    if (name.len > KILN_TAG_NAME_MAX)
        return kiln_err_set(err, KILN_E_MALFORMED, "labels",
                            "the name of a label is longer than %d bytes", KILN_TAG_NAME_MAX);
    if (value.len > KILN_TAG_VALUE_MAX)
        return kiln_err_set(err, KILN_E_MALFORMED, "labels",
                            "the value of label %.*s is longer than %d bytes",
                            (int)(name.len < 64 ? name.len : 64), name.ptr, KILN_TAG_VALUE_MAX);
    if (!kiln_utf8_valid(name) || !kiln_utf8_valid(value))
        return kiln_err_set(err, KILN_E_UTF8, "labels", "a label is not valid UTF-8");
    return 0;
}

/* Puts a label into the list, in the place of one that has its name. */
static int put(struct kiln_tags *tags, struct kiln_str name, struct kiln_str value,
               struct kiln_err *err)
{
    uint32_t i = 0;

    while (i < tags->n && !kiln_str_eq(tags->list[i].name, name))
        i++;
    if (i == KILN_TAGS_MAX)
        return kiln_err_set(err, KILN_E_MALFORMED, "labels", "there are more than %d labels",
                            KILN_TAGS_MAX);
    tags->list[i] = (struct kiln_tag){.name = name, .value = value};
    tags->n += i == tags->n;
    return 0;
}

int kiln_tags_add(struct kiln_tags *tags, struct kiln_str name, struct kiln_str value,
                  struct kiln_err *err)
{
    int r = check(name, value, err);

    if (r < 0)
        return r;
    if (kiln_str_eq(name, KILN_STR("service_name")) || kiln_str_eq(name, service_key)) {
        tags->service = value;
        return 0;
    }
    if (kiln_str_eq(name, KILN_STR("__name__"))) {
        tags->family = value;
        if (kiln_str_starts(value, DELTA_PREFIX))
            tags->family =
                (struct kiln_str){value.ptr + DELTA_PREFIX.len, value.len - DELTA_PREFIX.len};
        return 0;
    }
    if (kiln_str_starts(name, KILN_STR("__")) && !kiln_str_eq(name, KILN_STR("__session_id__")))
        return 0;
    return put(tags, name, value, err);
}

struct kiln_str kiln_tags_get(const struct kiln_tags *tags, struct kiln_str name)
{
    for (uint32_t i = 0; i < tags->n; i++) {
        if (kiln_str_eq(tags->list[i].name, name))
            return tags->list[i].value;
    }
    return KILN_STR_NONE;
}

/* ---- onto profiles ---- */

void kiln_tags_prepare(struct kiln_tags *tags, struct kiln_builder *b)
{
    for (uint32_t i = 0; i < tags->n; i++) {
        struct kiln_tag *tag = &tags->list[i];

        tag->attr = tag->value.len ? kiln_builder_text_attr(b, tag->name, tag->value) : 0;
    }
    if (tags->service.len)
        kiln_builder_text_attr(b, service_key, tags->service);
}

/* A set with more attributes, which win over those of the same keys. */
static uint32_t extend(struct kiln_builder *b, uint32_t set, const uint32_t *more, uint32_t n)
{
    const struct kiln_dict *d = &kiln_builder_peek(b)->dict;
    struct kiln_range range = d->sets[set];
    uint32_t *all, result;

    if (n == 0)
        return set;
    all = kiln_builder_scratch(b, (range.n + (size_t)n) * sizeof(*all));
    if (!all)
        return 0;
    if (range.n)
        memcpy(all, d->members + range.first, range.n * sizeof(*all));
    memcpy(all + range.n, more, n * sizeof(*all));
    result = kiln_builder_set(b, all, range.n + n, NULL);
    return result;
}

static void apply_resources(const struct kiln_tags *tags, struct kiln_builder *b)
{
    uint32_t attrs[KILN_TAGS_MAX + 1], n = 0;

    for (uint32_t i = 0; i < tags->n; i++) {
        if (tags->list[i].attr)
            attrs[n++] = tags->list[i].attr;
    }
    if (tags->service.len)
        attrs[n++] = kiln_builder_text_attr(b, service_key, tags->service);
    for (uint32_t i = 0; i < kiln_builder_peek(b)->n_resources; i++) {
        uint32_t set = extend(b, kiln_builder_resource(b, i)->attrs, attrs, n);

        kiln_builder_resource(b, i)->attrs = set;
    }
}

/* What the sender calls the family of this type. */
static struct kiln_str family_of(const struct kiln_tags *tags, const struct kiln_type *type)
{
    if (kiln_str_eq(tags->family, KILN_STR("wall")) && kiln_str_eq(type->type, KILN_STR("cpu")))
        return KILN_STR("process_cpu");
    return tags->family;
}

/* Names families where they are not the usual ones anyway. */
static int apply_families(const struct kiln_tags *tags, struct kiln_builder *b)
{
    struct kiln_type *types;
    int r;

    if (!tags->family.len)
        return 0;
    r = kiln_types_of_batch(kiln_builder_peek(b), false, &types);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < kiln_builder_peek(b)->n_profiles; i++) {
        struct kiln_str family = family_of(tags, &types[i]);
        uint32_t attr, set;

        if (kiln_str_eq(family, types[i].name))
            continue;
        attr = kiln_builder_text_attr(b, KILN_STR("profile.type"), family);
        set = extend(b, kiln_builder_profile(b, i)->attrs, &attr, 1);
        kiln_builder_profile(b, i)->attrs = set;
    }
    kiln_free(types);
    return 0;
}

/* When the first profile that says it was. */
static uint64_t first_time(const struct kiln_batch *batch)
{
    uint64_t first = UINT64_MAX;

    for (uint32_t i = 0; i < batch->n_profiles; i++) {
        uint64_t time = batch->profiles[i].time_ns;

        if (time >= TIME_MIN_NS && time < first)
            first = time;
    }
    return first;
}

static void apply_times(const struct kiln_tags *tags, struct kiln_builder *b)
{
    static const uint8_t no_id[16] = {0};
    uint64_t duration = tags->until_ns > tags->from_ns ? tags->until_ns - tags->from_ns : 0;
    uint64_t first = tags->moves ? first_time(kiln_builder_peek(b)) : 0;

    for (uint32_t i = 0; i < kiln_builder_peek(b)->n_profiles; i++) {
        struct kiln_profile *profile = kiln_builder_profile(b, i);

        if (profile->time_ns < TIME_MIN_NS)
            profile->time_ns = tags->from_ns;
        else if (tags->moves)
            profile->time_ns += tags->from_ns - first; /* also back: the sum is the same */
        if (profile->duration_ns == 0 && tags->from_ns)
            profile->duration_ns = duration;
        if (memcmp(tags->id, no_id, sizeof(no_id)) != 0)
            memcpy(profile->id, tags->id, sizeof(profile->id));
    }
}

int kiln_tags_apply(const struct kiln_tags *tags, struct kiln_builder *b)
{
    int r = kiln_builder_error(b);

    if (r < 0)
        return r;
    apply_resources(tags, b);
    r = apply_families(tags, b);
    if (r < 0)
        return r;
    apply_times(tags, b);
    kiln_builder_link_samples(b);
    return kiln_builder_error(b);
}
