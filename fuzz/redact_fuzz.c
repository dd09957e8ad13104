/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of redaction rules.  Rules that are accepted are applied to a small batch, twice: what
 * they leave must be a batch, and the same batch both times.
 */
#include <stdint.h>

#include "core/redact.h"
#include "fuzz.h"

static struct kiln_batch *small_batch(void)
{
    struct kiln_function f = {0};
    struct kiln_line line = {0};
    struct kiln_resource resource = {0};
    struct kiln_batch *batch = NULL;
    struct kiln_builder *b;
    uint32_t location, attr;

    if (kiln_builder_new(NULL, &b) < 0)
        return NULL;
    f.name = kiln_builder_string(b, KILN_STR("handle_customer"));
    f.filename = kiln_builder_string(b, KILN_STR("/home/ann/\xc3\xbc\xff/main.c"));
    line.function = kiln_builder_function(b, &f);
    location = kiln_builder_location(b, &(struct kiln_location){.address = 1}, &line, 1);
    attr = kiln_builder_text_attr(b, KILN_STR("process.command_line"), KILN_STR("app --key=42"));
    resource.attrs = kiln_builder_set(b, &attr, 1, NULL);
    kiln_builder_add_resource(b, &resource);
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    kiln_builder_add_profile(b, &(struct kiln_profile){0});
    kiln_builder_add_value(b, 0, kiln_builder_stack(b, &location, 1), resource.attrs, 1);
    return kiln_builder_finish(b, &batch, NULL) == 0 ? batch : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_batch *batch = small_batch(), *once = NULL, *again = NULL;
    struct kiln_redact *rules = NULL;
    struct kiln_err err = {0};
    int r;

    r = kiln_redact_parse((struct kiln_str){(const char *)data, size}, &rules, &err);
    FUZZ_CHECK((r < 0) == (err.text[0] != '\0'));
    if (r == 0 && batch && kiln_redact(rules, batch, &once, NULL, NULL) == 0) {
        FUZZ_CHECK(once->n_samples == 1);
        FUZZ_CHECK(kiln_redact(rules, batch, &again, NULL, NULL) == 0 &&
                   kiln_batch_equal(once, again));
    }
    kiln_redact_free(rules);
    kiln_batch_unref(batch);
    kiln_batch_unref(once);
    kiln_batch_unref(again);
    return 0;
}
