/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/mem.h"
#include "codec/pb.h"

int kiln_pb_varint_long(const uint8_t *at, const uint8_t *end, uint64_t *ret)
{
    uint64_t value = 0;

    if (KILN_LIKELY(end - at >= 8)) {
        uint64_t eight, stops;

        memcpy(&eight, at, 8);
        stops = ~eight & 0x8080808080808080u;
        if (KILN_LIKELY(stops)) {
            int bits = __builtin_ctzll(stops) + 1; /* of the varint: 8, 16, ... 64 */

            *ret = kiln_pb_join_sevens(eight & (UINT64_MAX >> (64 - bits)) & 0x7f7f7f7f7f7f7f7fu);
            return bits / 8;
        }
    }
    for (int i = 0; i < 10; i++) {
        if (at + i == end)
            return KILN_E_TRUNCATED;
        if (i == 9 && at[i] > 1)
            return KILN_E_MALFORMED;
        value |= (uint64_t)(at[i] & 0x7f) << 7 * i;
        if (at[i] < 0x80) {
            *ret = value;
            return i + 1;
        }
    }
    return KILN_E_MALFORMED;
}

size_t kiln_pb_count_varints(struct kiln_str packed)
{
    const unsigned char *p = (const unsigned char *)packed.ptr;
    size_t n = 0, i = 0;

    for (; i + 8 <= packed.len; i += 8) {
        uint64_t eight;

        memcpy(&eight, p + i, 8);
        n += (~eight >> 7 & 0x0101010101010101u) * 0x0101010101010101u >> 56;
    }
    for (; i < packed.len; i++)
        n += p[i] < 0x80;
    return n;
}

#define OUT_MIN 256u

void kiln_pb_out_init(struct kiln_pb_out *w, size_t hint, size_t max)
{
    *w = (struct kiln_pb_out){.max = max};
    if (hint > max)
        hint = max;
    w->base = kiln_malloc(hint < OUT_MIN ? OUT_MIN : hint);
    if (!w->base) {
        w->error = -ENOMEM;
        return;
    }
    w->end = w->at = w->base + (hint < OUT_MIN ? OUT_MIN : hint);
}

void kiln_pb_out_done(struct kiln_pb_out *w)
{
    kiln_free(w->base);
    if (w->paid)
        kiln_pool_give(w->pool, w->paid);
    *w = (struct kiln_pb_out){0};
}

/* While it moves both are there, and both are paid for. */
static bool pay(struct kiln_pb_out *w, size_t cap)
{
    if (!w->pool || cap <= KILN_BUF_SMALL)
        return true;
    if (kiln_pool_take(w->pool, cap) < 0) {
        w->error = KILN_E_LIMIT;
        return false;
    }
    return true;
}

bool kiln_pb_out_grow(struct kiln_pb_out *w, size_t n)
{
    size_t used = (size_t)(w->end - w->at);
    size_t cap = (size_t)(w->end - w->base);
    uint8_t *grown;

    if (w->error)
        return false;
    if (n > w->max || used > w->max - n) {
        w->error = KILN_E_LIMIT;
        return false;
    }
    while (cap - used < n)
        cap = cap > w->max / 2 ? w->max : cap * 2;
    if (!pay(w, cap))
        return false;
    grown = kiln_malloc(cap);
    if (!grown) {
        w->error = -ENOMEM;
        if (w->pool && cap > KILN_BUF_SMALL)
            kiln_pool_give(w->pool, cap);
        return false;
    }
    memcpy(grown + cap - used, w->at, used);
    kiln_free(w->base);
    if (w->paid)
        kiln_pool_give(w->pool, w->paid);
    w->paid = w->pool && cap > KILN_BUF_SMALL ? cap : 0;
    w->base = grown;
    w->end = grown + cap;
    w->at = w->end - used;
    return true;
}

int kiln_pb_out_flush(struct kiln_pb_out *w, struct kiln_buf *out)
{
    if (w->error)
        return w->error;
    kiln_buf_add(out, w->at, (size_t)(w->end - w->at));
    return out->error;
}
