/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of OTTL.  The first byte says whether it is a condition or a statement, and for what.
 * What is accepted is run on a small batch, which must still be one.
 */
#include <stdint.h>

#include "core/reopen.h"
#include "fuzz.h"
#include "pipeline/ottl/ottl.h"

static struct kiln_batch *small_batch(void)
{
    struct kiln_resource resource = {0};
    struct kiln_batch *batch = NULL;
    struct kiln_builder *b;
    uint32_t attrs[2];
    int64_t value = 3;

    if (kiln_builder_new(NULL, &b) < 0)
        return NULL;
    attrs[0] = kiln_builder_text_attr(b, KILN_STR("a"), KILN_STR("h\xc3\xbct\xff"));
    attrs[1] = kiln_builder_attr(
        b, kiln_builder_string(b, KILN_STR("b")),
        kiln_builder_array(b, (struct kiln_value[]){kiln_value_int(1), kiln_value_bool(true)}, 2),
        0);
    resource.attrs = kiln_builder_set(b, attrs, 2, NULL);
    kiln_builder_add_resource(b, &resource);
    kiln_builder_add_scope(b, &(struct kiln_scope){.attrs = resource.attrs});
    kiln_builder_add_profile(b, &(struct kiln_profile){.attrs = resource.attrs});
    kiln_builder_add_sample(b, 0, 0, resource.attrs, 0, &value, NULL, 1);
    return kiln_builder_finish(b, &batch, NULL) == 0 ? batch : NULL;
}

static void run(struct kiln_ottl *ottl, struct kiln_batch *batch)
{
    struct kiln_ottl_item item = {0};
    struct kiln_err err = {0};
    uint32_t cache = 0;

    if (kiln_reopen(batch, &item.b, NULL) < 0)
        return;
    item.batch = kiln_builder_peek(item.b);
    item.cache = &cache;
    (void)!kiln_ottl_run(ottl, &item, &err);
    (void)!kiln_ottl_run(ottl, &item, &err); /* on what it made */
    if (kiln_builder_finish(item.b, &batch, &err) == 0)
        kiln_batch_unref(batch);
}

static void check(struct kiln_ottl *ottl, struct kiln_batch *batch)
{
    struct kiln_ottl_item item = {.batch = batch};
    struct kiln_err err = {0};
    int r = kiln_ottl_holds(ottl, &item, &err);

    FUZZ_CHECK(r >= 0 || err.code < 0);
    kiln_batch_unref(batch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_str text = {(const char *)data + 1, size ? size - 1 : 0};
    enum kiln_ottl_context context;
    struct kiln_ottl *ottl;
    struct kiln_err err = {0};
    struct kiln_batch *batch;
    bool statement;

    if (size < 2)
        return 0;
    statement = data[0] & 1;
    context = (enum kiln_ottl_context)(data[0] / 2 % (KILN_OTTL_CONTEXTS + 1));
    if ((statement ? kiln_ottl_statement(text, context, &ottl, &err)
                   : kiln_ottl_condition(text, context, &ottl, &err)) < 0) {
        FUZZ_CHECK(err.code < 0 && err.text[0]);
        return 0;
    }
    batch = small_batch();
    if (batch && statement)
        run(ottl, batch);
    else if (batch)
        check(ottl, batch);
    kiln_ottl_free(ottl);
    return 0;
}
