/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for what came without, from the files of this host (naming/here.h):
 *
 *   symbolize: {timeout: 500ms}
 *
 * What is not known after the timeout goes on as it came; what was looked for is found at once the
 * next time.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "collector/processors/changing.h"
#include "collector/registry.h"
#include "naming/here.h"

struct settings {
    uint64_t timeout_ns;
};

struct symbolize {
    struct kiln_resolver_opts resolver;
    struct kiln_here *here; /* NULL: not yet */
    uint64_t timeout_ns;
};

static int read(const struct kiln_node *node, void *into, struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"timeout", KILN_FIELD_DURATION, offsetof(struct settings, timeout_ns)},
    };
    struct settings *settings = into;

    settings->timeout_ns = 500 * KILN_NS_PER_MS;
    return kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), settings, err);
}

static void done(void *context)
{
    struct symbolize *symbolize = context;

    kiln_here_free(symbolize->here);
    kiln_free(symbolize);
}

/* The child that reads files starts with the first batch: making a graph starts nothing. */
static int change(void *context, struct kiln_batch **batch, struct kiln_err *err)
{
    struct symbolize *symbolize = context;
    int r = symbolize->here ? 0 : kiln_here_new(&symbolize->resolver, &symbolize->here, err);

    return r < 0 ? r : kiln_here_name(symbolize->here, batch, symbolize->timeout_ns, err);
}

static int make(const struct kiln_component_env *env, const void *from,
                struct kiln_component **ret_component, struct kiln_err *err)
{
    const struct settings *settings = from;
    struct symbolize *symbolize = kiln_calloc(1, sizeof(*symbolize));
    struct kiln_change what = {.context = symbolize, .change = change, .copies = true};

    if (!symbolize)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    symbolize->timeout_ns = settings->timeout_ns;
    symbolize->resolver = (struct kiln_resolver_opts){.patient = true,
                                                      .scratch_directory = getenv("TMPDIR"),
                                                      .metrics = env->metrics,
                                                      .log = env->log};
    return kiln_changing_new(env, &what, done, ret_component, err);
}

const struct kiln_component_type kiln_symbolize_processor_type = {
    .name = "symbolize",
    .kind = KILN_PROCESSOR,
    .signals = KILN_TAKES_PROFILES,
    .stability = "alpha",
    .settings_size = sizeof(struct settings),
    .read = read,
    .make = make,
};
