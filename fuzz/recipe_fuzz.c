/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recipe and what it is for: the first byte is the length of the recipe.  Following it is an
 * error with words, or gives a batch, and the same one again.
 */
#include <errno.h>
#include <stdint.h>

#include "fuzz.h"
#include "pipeline/receivers/recipe.h"

static struct kiln_batch *follow(struct kiln_str recipe, struct kiln_str content)
{
    struct kiln_limits limits = kiln_limits_default;
    struct kiln_batch *batch = NULL;
    struct kiln_err err = {0};
    struct kiln_builder *b;
    int r;

    limits.memory_bytes = 64u << 20;
    if (kiln_builder_new(&limits, &b) < 0)
        return NULL;
    r = kiln_recipe_follow(recipe, content, b, &err);
    if (r == 0) {
        r = kiln_builder_finish(b, &batch, NULL);
        FUZZ_CHECK(r < 0 || batch);
        return batch;
    }
    FUZZ_CHECK(err.code || r == KILN_E_LIMIT || r == -ENOMEM);
    kiln_builder_free(b);
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_str recipe = {(const char *)data + 1, size ? data[0] : 0};
    struct kiln_batch *first, *second;
    struct kiln_str content;

    if (size == 0)
        return 0;
    if (recipe.len > size - 1)
        recipe.len = size - 1;
    content = (struct kiln_str){recipe.ptr + recipe.len, size - 1 - recipe.len};
    first = follow(recipe, content);
    second = follow(recipe, content);
    FUZZ_CHECK(!first == !second);
    FUZZ_CHECK(!first || !second || kiln_batch_equal(first, second));
    kiln_batch_unref(first);
    kiln_batch_unref(second);
    return 0;
}
