/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/processors/changing.h"

#include <errno.h>

#include "base/mem.h"

struct changing {
    struct kiln_component component; /* first */
    void *context;
    void (*done)(void *context);
};

struct kiln_processor_opts kiln_processor_opts_of(const struct kiln_component_env *env)
{
    return (struct kiln_processor_opts){
        .id = env->id,
        .next = env->next[env->signal],
        .metrics = env->metrics,
        .log = env->log,
    };
}

int kiln_processor_made(struct kiln_component *component, int r,
                        const struct kiln_component_ops *ops, struct kiln_component **ret_component,
                        struct kiln_err *err)
{
    if (r < 0) {
        kiln_free(component);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    component->ops = ops;
    *ret_component = component;
    return 0;
}

static void destroy(struct kiln_component *component)
{
    struct changing *changing = (struct changing *)component;

    kiln_changer_free(changing->component.in);
    changing->done(changing->context);
    kiln_free(changing);
}

int kiln_changing_new(const struct kiln_component_env *env, const struct kiln_change *change,
                      void (*done)(void *context), struct kiln_component **ret_component,
                      struct kiln_err *err)
{
    static const struct kiln_component_ops ops = {.free = destroy};
    const struct kiln_processor_opts opts = kiln_processor_opts_of(env);
    struct changing *changing = kiln_calloc(1, sizeof(*changing));
    int r = changing ? kiln_changer_new(&opts, change, &changing->component.in) : -ENOMEM;

    if (r < 0) {
        done(change->context);
    } else {
        changing->context = change->context;
        changing->done = done;
    }
    return kiln_processor_made((struct kiln_component *)changing, r, &ops, ret_component, err);
}
