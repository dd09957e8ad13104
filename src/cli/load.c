/* SPDX-License-Identifier: Apache-2.0 */
/* A load: its base, and the programs that are found in it. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cli/load_int.h"

#define HOST_STEP_NS  (5 * KILN_NS_PER_S)
#define PPROF_STEP_NS (10 * KILN_NS_PER_S)
#define TABLE_MAX     (1u << 28)

static struct kiln_str program_name(const struct kiln_batch *base, uint32_t attrs)
{
    struct kiln_str name = kiln_set_text(base, attrs, KILN_STR("process.executable.name"));

    if (!name.len)
        name = kiln_set_text(base, attrs, KILN_STR("service.name"));
    return name.len ? name : KILN_STR("app");
}

/* The program of a resource, found by its name or added; NULL without memory. */
static struct kiln_load_program *program_of(struct kiln_load *load, uint32_t attrs)
{
    struct kiln_str name = program_name(load->base, attrs);
    struct kiln_str path = kiln_set_text(load->base, attrs, KILN_STR("process.executable.path"));

    for (uint32_t i = 0; i < load->n_programs; i++)
        if (kiln_str_eq(load->programs[i].name, name))
            return &load->programs[i];
    if (kiln_grow(&load->budget, (void **)&load->programs, &load->cap_programs,
                  (uint64_t)load->n_programs + 1, sizeof(*load->programs), TABLE_MAX) < 0)
        return NULL;
    load->programs[load->n_programs] = (struct kiln_load_program){.name = name, .path = path};
    return &load->programs[load->n_programs++];
}

/* Calls `visit` for each sample of the base, with the program it is of. */
static int visit_samples(struct kiln_load *load,
                         void (*visit)(struct kiln_load *, struct kiln_load_program *,
                                       const struct kiln_sample *))
{
    const struct kiln_batch *base = load->base;

    for (uint32_t r = 0; r < base->n_resources; r++) {
        const struct kiln_resource *resource = &base->resources[r];
        struct kiln_load_program *program = program_of(load, resource->attrs);

        if (!program)
            return -ENOMEM;
        for (uint32_t s = 0; s < resource->n_scopes; s++) {
            const struct kiln_scope *scope = &base->scopes[resource->first_scope + s];
            const struct kiln_profile *profile = &base->profiles[scope->first_profile];

            for (uint32_t i = 0; scope->n_profiles && i < profile->n_samples; i++)
                visit(load, program, &base->samples[profile->first_sample + i]);
        }
    }
    return 0;
}

static void count_entry(struct kiln_load *load, struct kiln_load_program *program,
                        const struct kiln_sample *sample)
{
    (void)sample;
    program->n++;
    load->n_entries++;
}

static void put_entry(struct kiln_load *load, struct kiln_load_program *program,
                      const struct kiln_sample *sample)
{
    const struct kiln_attr *thread =
        kiln_set_find(load->base, sample->attrs, KILN_STR("thread.name"));

    load->entries[program->first + program->n++] = (struct kiln_load_entry){
        .stack = sample->stack,
        .thread =
            thread && thread->value.kind == KILN_VALUE_STRING ? (uint32_t)thread->value.str : 0,
    };
}

static int by_size(const void *a, const void *b)
{
    const struct kiln_load_program *x = a, *y = b;

    return x->n == y->n ? kiln_str_cmp(x->name, y->name) : x->n < y->n ? 1 : -1;
}

/* Entries of a program stand together: counted first, then put in their places. */
static int find_programs(struct kiln_load *load)
{
    uint32_t at = 0;
    int r = visit_samples(load, count_entry);

    if (r == 0)
        r = kiln_reserve(&load->budget, (void **)&load->entries, &load->cap_entries,
                         (uint64_t)load->n_entries + 1, sizeof(*load->entries), TABLE_MAX);
    if (r < 0)
        return r;
    if (load->n_programs) /* the first services run the programs of which most is known */
        qsort(load->programs, load->n_programs, sizeof(*load->programs), by_size);
    for (uint32_t i = 0; i < load->n_programs; i++) {
        load->programs[i].first = at;
        at += load->programs[i].n;
        load->programs[i].n = 0;
    }
    return visit_samples(load, put_entry);
}

static int check_base(const struct kiln_load *load, struct kiln_err *err)
{
    for (uint32_t i = 0; i < load->n_programs; i++)
        if (load->programs[i].n == 0)
            return kiln_err_set(err, KILN_E_NOMATCH, NULL,
                                "a process of the template has no samples");
    if (load->n_entries == 0)
        return kiln_err_set(err, KILN_E_NOMATCH, NULL, "the template has no samples");
    return 0;
}

static int set_up(struct kiln_load *load, struct kiln_err *err)
{
    int r;

    if (load->opts.base)
        load->base = kiln_batch_ref(load->opts.base);
    r = load->base ? 0 : kiln_load_invent(&load->opts, &load->base, err);
    if (r == 0)
        r = find_programs(load);
    if (r == 0)
        r = check_base(load, err);
    if (r == 0)
        r = kiln_load_learn_base(load);
    if (r < 0)
        return r;
    load->counted = kiln_calloc((size_t)load->opts.services * load->base->dict.n_stacks,
                                sizeof(*load->counted));
    return load->counted ? 0 : -ENOMEM;
}

int kiln_load_new(const struct kiln_load_opts *opts, struct kiln_load **ret_load,
                  struct kiln_err *err)
{
    struct kiln_load *load = kiln_calloc(1, sizeof(*load));
    int r;

    if (!load)
        return kiln_err_set(err, -ENOMEM, NULL, "out of memory");
    load->opts = *opts;
    load->budget.limit = SIZE_MAX / 2;
    pthread_mutex_init(&load->lock, NULL);
    r = set_up(load, err);
    if (r < 0) {
        kiln_load_free(load);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    *ret_load = load;
    return 0;
}

void kiln_load_free(struct kiln_load *load)
{
    if (!load)
        return;
    kiln_array_free(&load->budget, (void **)&load->programs, &load->cap_programs,
                    sizeof(*load->programs));
    kiln_array_free(&load->budget, (void **)&load->entries, &load->cap_entries,
                    sizeof(*load->entries));
    kiln_free((void *)load->counted);
    kiln_free(load->nodes.slots);
    kiln_free(load->known.slots);
    kiln_batch_unref(load->base);
    pthread_mutex_destroy(&load->lock);
    kiln_free(load);
}

uint32_t kiln_load_round(const struct kiln_load *load)
{
    if (load->opts.shape == KILN_LOAD_HOST)
        return load->opts.hosts;
    return load->opts.services * load->opts.hosts * load->base->n_scopes;
}

uint64_t kiln_load_step_ns(const struct kiln_load *load)
{
    return load->opts.shape == KILN_LOAD_HOST ? HOST_STEP_NS : PPROF_STEP_NS;
}

void kiln_load_set_times(struct kiln_load *load, uint64_t start_ns, uint64_t step_ns)
{
    load->start_ns = start_ns;
    load->step_ns = step_ns;
}
