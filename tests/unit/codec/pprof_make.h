/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof_make - pprof bytes written forwards, field by field, for tests: also wrong ones.
 *
 * Threads: tests only.
 */
#ifndef KILN_TESTS_PPROF_MAKE_H
#define KILN_TESTS_PPROF_MAKE_H

#include "base/buf.h"
#include "codec/pprof.h"
#include "test.h"

/* A message under construction; kiln_buf_done() frees it. */
struct making {
    struct kiln_buf buf;
};

static inline struct making make(void)
{
    struct making m;

    kiln_buf_init(&m.buf, 1u << 24);
    return m;
}

static inline void put_varint(struct making *m, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        kiln_buf_putc(&m->buf, (char)(v | 0x80));
    kiln_buf_putc(&m->buf, (char)v);
}

static inline void put_number(struct making *m, unsigned field, uint64_t v)
{
    put_varint(m, field << 3);
    put_varint(m, v);
}

static inline void put_bytes(struct making *m, unsigned field, struct kiln_str s)
{
    put_varint(m, field << 3 | 2);
    put_varint(m, s.len);
    kiln_buf_add_str(&m->buf, s);
}

/* A message of numbers, ended by field 0: put_fields(m, 5, 1, 7, 2, 3, 0) is field 5 {1: 7, 2: 3}.
 */
static inline void put_fields(struct making *m, unsigned field, ...)
{
    struct making inner = make();
    va_list args;
    unsigned number;

    va_start(args, field);
    while ((number = va_arg(args, unsigned)) != 0)
        put_number(&inner, number, (uint64_t)va_arg(args, int));
    va_end(args);
    put_bytes(m, field, kiln_buf_str(&inner.buf));
    kiln_buf_done(&inner.buf);
}

/* The string table, one word an entry; the first, empty one is added. */
static inline void put_strings(struct making *m, const char *words)
{
    struct kiln_str rest = kiln_str_of(words);

    put_bytes(m, 6, KILN_STR(""));
    while (rest.ptr && rest.len)
        put_bytes(m, 6, kiln_str_cut(&rest, ' '));
}

static inline struct kiln_batch *decode_bytes(struct kiln_str raw, struct kiln_err *err)
{
    struct kiln_batch *batch = NULL;
    struct kiln_builder *b;

    *err = (struct kiln_err){0};
    CHECK_OK(kiln_builder_new(NULL, &b));
    if (kiln_pprof_decode(raw, b, err) < 0) {
        kiln_builder_free(b);
        return NULL;
    }
    CHECK_OK(kiln_builder_finish(b, &batch, err));
    return batch;
}

#endif /* KILN_TESTS_PPROF_MAKE_H */
