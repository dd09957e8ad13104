/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels beside a recording, put on a batch whose samples have the numbers 1 to 8.
 */
#include <stdint.h>

#include "fuzz.h"
#include "pipeline/receivers/jfr_labels.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_batch *batch = NULL;
    struct kiln_err err = {0};
    struct kiln_builder *b;
    int r;

    if (kiln_builder_new(NULL, &b) < 0)
        return 0;
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    kiln_builder_add_profile(b, &(struct kiln_profile){0});
    for (int64_t i = 1; i <= 8 && kiln_builder_error(b) == 0; i++) {
        uint32_t key = kiln_builder_string(b, KILN_STR("jfr.context_id"));
        uint32_t attr = kiln_builder_attr(b, key, kiln_value_int(i), 0);

        kiln_builder_add_value(b, 0, 0, kiln_builder_set(b, &attr, 1, NULL), i);
    }
    r = kiln_builder_error(b);
    if (r == 0)
        r = kiln_jfr_labels_apply((struct kiln_str){(const char *)data, size}, b, &err);
    if (r == 0 && kiln_builder_finish(b, &batch, &err) == 0)
        FUZZ_CHECK(batch->n_samples == 8);
    else if (r < 0)
        kiln_builder_free(b);
    kiln_batch_unref(batch);
    return 0;
}
