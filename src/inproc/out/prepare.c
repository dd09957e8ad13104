/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/out/prepare.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "core/remap.h"
#include "inproc/out/names.h"
#include "inproc/out/redact.h"
#include "inproc/out/resource.h"

/* Written by begin and end alone. */
static struct {
    bool begun, ready;
    struct kiln_in_resource *resource;
    struct kiln_in_redact *rules; /* NULL: none */
} state;

static const char *variable(const char *name)
{
    return getenv(name);
}

static int read_rules(const char *redact, struct kiln_err *err)
{
    int r;

    if (!redact || !*redact)
        return 0;
    r = kiln_in_redact_parse(kiln_str_of(redact), &state.rules, err);
    if (r < 0)
        kiln_err_within(err, "KILN_REDACT");
    return r;
}

int kiln_in_prepare_begin(const struct kiln_attribute *stated, uint32_t n_stated,
                          const char *redact, struct kiln_err *err)
{
    int r;

    /* What a thread that was left behind may still look at is left to it. */
    state.ready = false;
    state.begun = true;
    state.rules = NULL;
    state.resource = kiln_calloc(1, sizeof(*state.resource));
    r = state.resource ? kiln_in_resource_init(state.resource, stated, n_stated, variable)
                       : -ENOMEM;
    if (r == 0)
        r = read_rules(redact, err);
    state.ready = r == 0;
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}

void kiln_in_prepare_end(void)
{
    state.begun = state.ready = false;
    if (state.resource)
        kiln_in_resource_done(state.resource);
    kiln_free(state.resource);
    kiln_in_redact_free(state.rules);
    state.resource = NULL;
    state.rules = NULL;
}

/* All resources of a batch are this process. */
static void set_resources(void *context, struct kiln_builder *b)
{
    uint32_t set = kiln_in_resource_set(context, b);

    for (uint32_t i = 0; i < kiln_builder_peek(b)->n_resources; i++)
        kiln_builder_resource(b, i)->attrs = set;
}

int kiln_in_prepare(struct kiln_batch *batch, enum kiln_in_prepare_how how,
                    struct kiln_batch **ret_batch, struct kiln_err *err)
{
    /* Names that somebody else finds would not be redacted. */
    const struct kiln_in_names_how names = {
        .rest = how == KILN_IN_BARE && !state.rules,
        .finish = set_resources,
        .context = state.resource,
    };
    struct kiln_batch *whole = NULL;
    int r;

    if (!state.ready)
        return kiln_err_set(err, -EAGAIN, NULL, "nothing may leave before the rules are read");
    r = kiln_in_names_fill(batch, &names, &whole, err);
    if (r == 0)
        r = kiln_in_redact_batch(state.rules, whole, ret_batch, err);
    kiln_batch_unref(whole);
    return r;
}

static int refuse(struct kiln_err *err)
{
    return kiln_err_set(err, -EACCES, "KILN_REDACT", "its rules cannot be read");
}

int kiln_in_prepare_redact(struct kiln_batch *batch, struct kiln_batch **ret_batch,
                           struct kiln_err *err)
{
    if (state.begun && !state.ready)
        return refuse(err);
    return kiln_in_redact_batch(state.rules, batch, ret_batch, err);
}

int kiln_in_prepare_word(struct kiln_str word, struct kiln_buf *out)
{
    if (state.begun && !state.ready)
        return refuse(NULL);
    return kiln_in_redact_word(state.rules, word, out);
}
