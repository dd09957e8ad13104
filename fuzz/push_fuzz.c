/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of Push, JSON where they begin with a brace, protobuf else.  Each pprof in them is
 * decoded with the labels of its series, as the receiver does it; what is behind that is left out.
 */
#include <stdint.h>

#include "fuzz.h"
#include "pipeline/receivers/push.h"
#include "pipeline/receivers/recipe.h"

/* Takes the place of the receiver's. */
void kiln_push_sample(struct push *push, struct kiln_tags *tags, struct kiln_str raw,
                      struct kiln_str id)
{
    struct kiln_limits limits = kiln_limits_default;
    struct kiln_batch *batch = NULL;
    struct kiln_builder *b;
    int r;

    (void)push;
    FUZZ_CHECK(tags->family.len > 0 && id.len <= 1u << 20);
    limits.memory_bytes = 64u << 20;
    if (kiln_builder_new(&limits, &b) < 0)
        return;
    r = kiln_recipe_decode(&(struct kiln_recipe){.tags = tags}, raw, b, NULL);
    if (r == 0)
        r = kiln_builder_finish(b, &batch, NULL);
    else
        kiln_builder_free(b);
    kiln_batch_unref(batch);
}

void kiln_push_bad_series(struct push *push, int code, const struct kiln_err *err)
{
    (void)push;
    FUZZ_CHECK(code < 0 && err->code != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_str message = {(const char *)data, size};
    struct kiln_err err = {0};
    int r = size && data[0] == '{' ? kiln_push_json(NULL, message, &err)
                                   : kiln_push_protobuf(NULL, message, &err);

    FUZZ_CHECK(r == 0 || err.code != 0);
    return 0;
}
