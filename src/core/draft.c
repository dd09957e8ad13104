/* SPDX-License-Identifier: Apache-2.0 */
#include "core/draft.h"

#include <errno.h>

#include "base/mem.h"

/* Room for one more; false (and sticky) on failure. */
static bool grow(struct kiln_draft *draft, uint32_t need)
{
    uint32_t cap = need < 16 ? 16 : need * 2;
    uint32_t *more;

    if (need <= draft->cap)
        return true;
    more = kiln_realloc(draft->attrs, cap * sizeof(*more));
    if (!more) {
        kiln_builder_fail(draft->b, -ENOMEM);
        return false;
    }
    draft->attrs = more;
    draft->cap = cap;
    return true;
}

static const struct kiln_dict *dict_of(const struct kiln_draft *draft)
{
    return &kiln_builder_peek(draft->b)->dict;
}

void kiln_draft_open(struct kiln_draft *draft, struct kiln_builder *b, uint32_t set)
{
    struct kiln_range range = kiln_builder_peek(b)->dict.sets[set];

    draft->b = b;
    draft->set = set;
    draft->changed = false;
    draft->n = 0;
    if (range.n == 0 || !grow(draft, range.n))
        return;
    memcpy(draft->attrs, dict_of(draft)->members + range.first, range.n * sizeof(*draft->attrs));
    draft->n = range.n;
}

uint32_t kiln_draft_close(struct kiln_draft *draft)
{
    return draft->changed ? kiln_builder_set(draft->b, draft->attrs, draft->n, NULL) : draft->set;
}

void kiln_draft_done(struct kiln_draft *draft)
{
    kiln_free(draft->attrs);
    *draft = (struct kiln_draft){0};
}

const struct kiln_attr *kiln_draft_at(const struct kiln_draft *draft, uint32_t i)
{
    return &dict_of(draft)->attrs[draft->attrs[i]];
}

/* Its place, or the number of them. */
static uint32_t place_of(const struct kiln_draft *draft, struct kiln_str key)
{
    const struct kiln_dict *d = dict_of(draft);
    uint32_t i = 0;

    while (i < draft->n && !kiln_str_eq(d->strings[d->attrs[draft->attrs[i]].key], key))
        i++;
    return i;
}

const struct kiln_attr *kiln_draft_find(const struct kiln_draft *draft, struct kiln_str key)
{
    uint32_t i = place_of(draft, key);

    return i < draft->n ? kiln_draft_at(draft, i) : NULL;
}

void kiln_draft_put(struct kiln_draft *draft, struct kiln_str key, struct kiln_value value)
{
    uint32_t i = place_of(draft, key);
    uint32_t unit = i < draft->n ? kiln_draft_at(draft, i)->unit : 0;
    uint32_t attr = kiln_builder_attr(draft->b, kiln_builder_string(draft->b, key), value, unit);

    if (i < draft->n && draft->attrs[i] == attr)
        return;
    if (i == draft->n && !grow(draft, ++draft->n)) {
        draft->n--;
        return;
    }
    draft->attrs[i] = attr;
    draft->changed = true;
}

bool kiln_draft_drop(struct kiln_draft *draft, struct kiln_str key)
{
    uint32_t i = place_of(draft, key);

    if (i == draft->n)
        return false;
    kiln_draft_drop_at(draft, i);
    return true;
}

void kiln_draft_drop_at(struct kiln_draft *draft, uint32_t i)
{
    draft->attrs[i] = draft->attrs[--draft->n];
    draft->changed = true;
}
