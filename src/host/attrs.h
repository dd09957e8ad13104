/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attrs - attributes of a process on their way into its identity: names and texts, each name once.
 *
 * Setting never needs a check: what does not fit (192 attributes, 48 KiB) is left out, and a lack
 * of memory sticks in texts.error.  Texts become valid UTF-8.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_HOST_ATTRS_H
#define KILN_HOST_ATTRS_H

#include "base/buf.h"

enum { KILN_ATTRS_MAX = 192, KILN_ATTRS_BYTES_MAX = 48 << 10, KILN_ATTR_TEXT_MAX = 4096 };

struct kiln_attrs {
    struct kiln_buf texts;
    struct {
        uint32_t key, value; /* where they begin in `texts`; both end in NUL */
    } items[KILN_ATTRS_MAX];
    uint32_t n;
};

void kiln_attrs_init(struct kiln_attrs *attrs);
void kiln_attrs_done(struct kiln_attrs *attrs);

/* Puts it in the place of the one before; an empty value takes it away. */
void kiln_attrs_set(struct kiln_attrs *attrs, struct kiln_str key, struct kiln_str value);
/* The same unless there is one already, or the value is empty. */
void kiln_attrs_default(struct kiln_attrs *attrs, const char *key, struct kiln_str value);
/* Empty: there is none.  Borrowed until the next change. */
struct kiln_str kiln_attrs_get(const struct kiln_attrs *attrs, struct kiln_str key);

static inline const char *kiln_attrs_key(const struct kiln_attrs *attrs, uint32_t i)
{
    return attrs->texts.ptr + attrs->items[i].key;
}

static inline const char *kiln_attrs_value(const struct kiln_attrs *attrs, uint32_t i)
{
    return attrs->texts.ptr + attrs->items[i].value;
}

#endif /* KILN_HOST_ATTRS_H */
