/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other attributes for samples, and links.  The same set of attributes stands on many samples, so
 * each set is looked at once and its answer kept for the next sample that has it.
 *
 * Formats without links (pprof) carry the span of a sample in labels: those become the link, and
 * leave the set.
 */
#include <assert.h>

#include "base/bytetext.h"
#include "core/builder_int.h"

#define NOT_LOOKED UINT32_MAX
#define SET_MAX    256u /* a larger set is left alone: nobody labels samples so */

/* In the order of trust: a later one of the same kind is used where the one before is absent. */
enum role { TRACE, SPAN, OLD_SPAN, ROLES };
static const struct kiln_str role_keys[ROLES] = {
    {"trace_id", 8}, {"span_id", 7}, {"profile_id", 10}};

static enum role role_of(struct kiln_str key)
{
    enum role role = 0;

    while (role < ROLES && !kiln_str_eq(key, role_keys[role]))
        role++;
    return role;
}

/* Reads an id into the link; false if the text is none. */
static bool read_id(enum role role, struct kiln_str text, struct kiln_link *link)
{
    uint8_t span[sizeof(link->span_id)];

    if (role == TRACE)
        return kiln_hex_decode(text, link->trace_id, sizeof(link->trace_id)) == 0;
    if (kiln_hex_decode(text, span, sizeof(span)) < 0)
        return false;
    memcpy(link->span_id, span, sizeof(span));
    return true;
}

static bool has_ids(const struct kiln_dict *d)
{
    for (uint32_t i = 0; i < d->n_attrs; i++) {
        if (role_of(d->strings[d->attrs[i].key]) < ROLES)
            return true;
    }
    return false;
}

static struct kiln_sample_edit link_set(void *context, struct kiln_builder *b, uint32_t set)
{
    const struct kiln_dict *d = &b->box->batch.dict;
    struct kiln_range range = d->sets[set];
    struct kiln_str ids[ROLES] = {{0}};
    struct kiln_link link = {{0}, {0}};
    uint32_t rest[SET_MAX], n = 0;

    (void)context;
    if (range.n > SET_MAX)
        return (struct kiln_sample_edit){set, 0};
    for (uint32_t i = 0; i < range.n; i++) {
        uint32_t attr = d->members[range.first + i];
        struct kiln_value value = d->attrs[attr].value;
        enum role role = role_of(d->strings[d->attrs[attr].key]);
        struct kiln_link unused = {{0}, {0}};

        if (role < ROLES && value.kind == KILN_VALUE_STRING &&
            read_id(role, d->strings[value.str], &unused))
            ids[role] = d->strings[value.str];
        else
            rest[n++] = attr;
    }
    if (n == range.n)
        return (struct kiln_sample_edit){set, 0};
    for (enum role role = ROLES; role-- > 0;)
        (void)(ids[role].len && read_id(role, ids[role], &link));
    return (struct kiln_sample_edit){kiln_builder_set(b, rest, n, NULL),
                                     kiln_builder_link(b, &link)};
}

void kiln_builder_edit_samples(struct kiln_builder *b,
                               struct kiln_sample_edit (*edit)(void *context,
                                                               struct kiln_builder *b,
                                                               uint32_t attrs),
                               void *context)
{
    struct kiln_batch *batch = &b->box->batch;
    uint32_t n_sets = batch->dict.n_sets;
    struct kiln_sample_edit *known;

    if (b->error)
        return;
    known = kiln_builder_scratch(b, n_sets * sizeof(*known));
    if (!known)
        return;
    for (uint32_t i = 0; i < n_sets; i++)
        known[i].link = NOT_LOOKED;
    for (uint32_t i = 0; i < batch->n_samples && !b->error; i++) {
        struct kiln_sample *s = &batch->samples[i];

        if (s->link || !s->attrs)
            continue;
        assert(s->attrs < n_sets);
        if (known[s->attrs].link == NOT_LOOKED)
            known[s->attrs] = edit(context, b, s->attrs);
        s->link = known[s->attrs].link;
        s->attrs = known[s->attrs].attrs;
    }
}

void kiln_builder_link_samples(struct kiln_builder *b)
{
    if (has_ids(&b->box->batch.dict))
        kiln_builder_edit_samples(b, link_set, NULL);
}
