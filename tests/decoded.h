/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decoded - what a text decoder made, drawn as text for tests to compare: "main;parse;read 3\n",
 * root first.
 *
 * An inlined frame is written in parentheses, a frame type behind a '@', an unnamed location as its
 * address: "main;parse;(read);0x1f@kernel 3".
 */
#ifndef KILN_TESTS_DECODED_H
#define KILN_TESTS_DECODED_H

#include <inttypes.h>

#include "base/buf.h"
#include "base/mem.h"
#include "core/builder.h"
#include "starved.h"
#include "test.h"

static inline void kiln_test_put_location(struct kiln_buf *out, const struct kiln_batch *batch,
                                          const struct kiln_location *location)
{
    const struct kiln_dict *d = &batch->dict;
    struct kiln_str kind = kiln_set_text(batch, location->attrs, KILN_STR("profile.frame.type"));

    if (location->n == 0)
        kiln_buf_printf(out, "0x%" PRIx64, location->address);
    for (uint32_t i = location->n; i-- > 0;) {
        struct kiln_str name =
            d->strings[d->functions[d->lines[location->first + i].function].name];

        kiln_buf_printf(out, i + 1 < location->n ? ";(%.*s)" : "%.*s", KILN_STR_ARG(name));
    }
    if (kind.len)
        kiln_buf_printf(out, "@%.*s", KILN_STR_ARG(kind));
}

/* The stacks of one profile; the text lives until the next call. */
static inline const char *kiln_test_stacks(const struct kiln_batch *batch, uint32_t profile)
{
    static char text[8192];
    struct kiln_buf out;
    const struct kiln_dict *d = &batch->dict;
    const struct kiln_profile *p = &batch->profiles[profile];

    kiln_buf_init(&out, sizeof(text) - 1);
    for (uint32_t i = 0; i < p->n_samples; i++) {
        const struct kiln_sample *sample = &batch->samples[p->first_sample + i];
        struct kiln_range stack = d->stacks[sample->stack];

        for (uint32_t k = stack.n; k-- > 0;) {
            kiln_test_put_location(&out, batch, &d->locations[d->frames[stack.first + k]]);
            kiln_buf_puts(&out, k ? ";" : "");
        }
        kiln_buf_printf(&out, " %" PRId64 "\n", kiln_sample_total(batch, sample));
    }
    snprintf(text, sizeof(text), "%.*s", (int)out.len, out.ptr ? out.ptr : "");
    kiln_buf_done(&out);
    return text;
}

/* Decodes `text`, which must be well. */
#define KILN_TEST_DECODER(name)                                                                    \
    int (*name)(struct kiln_str text, struct kiln_builder * b, struct kiln_err * err)

static inline struct kiln_batch *kiln_test_decode(KILN_TEST_DECODER(decode), struct kiln_str text)
{
    struct kiln_err err = {0};
    struct kiln_batch *batch = NULL;
    struct kiln_builder *b;

    CHECK_OK(kiln_builder_new(NULL, &b));
    if (decode(text, b, &err) < 0) {
        kiln_builder_free(b);
        fail_msg("%s: %s", err.where, err.text);
    }
    CHECK_OK(kiln_builder_finish(b, &batch, &err));
    return batch;
}

/* Decodes `text`, which must fail; returns the code and fills `err`. */
static inline int kiln_test_refused(KILN_TEST_DECODER(decode), struct kiln_str text,
                                    struct kiln_err *err)
{
    struct kiln_builder *b;
    int r;

    *err = (struct kiln_err){0};
    CHECK_OK(kiln_builder_new(NULL, &b));
    r = decode(text, b, err);
    kiln_builder_free(b);
    CHECK(r < 0);
    return r;
}

/* Decodes `text`, which is well-formed, with every allocation failing once. */
static inline void kiln_test_decode_starved(KILN_TEST_DECODER(decode), struct kiln_str text)
{
    struct kiln_starved s = {0};

    while (kiln_test_starve(&s)) {
        struct kiln_err err = {0};
        struct kiln_builder *b = NULL;

        s.r = kiln_builder_new(NULL, &b);
        if (s.r == 0)
            s.r = decode(text, b, &err);
        kiln_builder_free(b);
    }
    CHECK_EQ(kiln_mem_live(), s.live);
    CHECK(s.n > 10);
}

#endif /* KILN_TESTS_DECODED_H */
