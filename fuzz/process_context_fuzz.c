/* SPDX-License-Identifier: Apache-2.0 */
/* Payloads of process contexts: any process writes its own. */
#include "fuzz.h"
#include "host/process_context.h"

static void check(const struct kiln_context_attr *attrs, uint32_t n)
{
    FUZZ_CHECK(n <= 256);
    for (uint32_t i = 0; i < n; i++) {
        FUZZ_CHECK(attrs[i].key[0] && kiln_utf8_valid(kiln_str_of(attrs[i].key)));
        FUZZ_CHECK(!attrs[i].text != !attrs[i].list && attrs[i].n_list <= 256);
        FUZZ_CHECK(!attrs[i].text || kiln_utf8_valid(kiln_str_of(attrs[i].text)));
        for (uint32_t j = 0; j < attrs[i].n_list; j++)
            FUZZ_CHECK(kiln_utf8_valid(kiln_str_of(attrs[i].list[j])));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_process_context *context;

    if (kiln_process_context_decode((struct kiln_str){(const char *)data, size}, &context) < 0)
        return 0;
    check(context->resource, context->n_resource);
    check(context->attributes, context->n_attributes);
    kiln_process_context_unref(context);
    return 0;
}
