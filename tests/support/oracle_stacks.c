/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the functions of a stack are called is for core/view.h to say.  A view adds up stacks that
 * read the same; so that it tells each apart, each gets one more function at its root, named by the
 * number of the stack.
 */
#include "oracle_int.h"

#include <errno.h>
#include <stdio.h>

#include "base/hash.h"
#include "base/regex.h"
#include "core/builder.h"
#include "core/remap.h"
#include "core/view.h"

/* ---- texts ---- */

void kiln_texts_init(struct kiln_texts *texts)
{
    *texts = (struct kiln_texts){.budget = {.limit = SIZE_MAX}};
    kiln_arena_init(&texts->arena, &texts->budget);
}

void kiln_texts_done(struct kiln_texts *texts)
{
    kiln_intern_done(&texts->index, &texts->budget);
    kiln_free(texts->all);
    kiln_arena_done(&texts->arena);
}

int kiln_texts_add(struct kiln_texts *texts, struct kiln_str text, uint32_t *ret_number)
{
    uint64_t hash = kiln_hash(text.ptr, text.len);
    struct kiln_str copy;
    int r;

    for (struct kiln_probe p = kiln_intern_probe(&texts->index, hash);
         kiln_intern_next(&texts->index, &p);) {
        if (kiln_str_eq(texts->all[p.entry], text)) {
            *ret_number = p.entry;
            return 0;
        }
    }
    copy = kiln_arena_copy(&texts->arena, text);
    if (!copy.ptr)
        return -ENOMEM;
    r = kiln_grow(&texts->budget, (void **)&texts->all, &texts->cap, (uint64_t)texts->n + 1,
                  sizeof(*texts->all), UINT32_MAX - 1);
    if (r == 0)
        r = kiln_intern_add(&texts->index, &texts->budget, hash, texts->n);
    if (r < 0)
        return r;
    texts->all[texts->n] = copy;
    *ret_number = texts->n++;
    return 0;
}

/* ---- names of stacks ---- */

static uint32_t mark(struct kiln_builder *b, uint32_t number)
{
    struct kiln_function function = {0};
    struct kiln_location location = {0};
    struct kiln_line line = {0};
    char name[16];

    snprintf(name, sizeof(name), "%u", number);
    function.name = kiln_builder_string(b, kiln_str_of(name));
    line.function = kiln_builder_function(b, &function);
    return kiln_builder_location(b, &location, &line, 1);
}

static void add_marked(struct kiln_builder *b, struct kiln_remap *remap,
                       const struct kiln_batch *from, uint32_t stack, uint32_t profile)
{
    struct kiln_range range = from->dict.stacks[stack];
    uint32_t *room = kiln_malloc(((size_t)range.n + 1) * sizeof(*room));

    if (!room) {
        kiln_builder_fail(b, -ENOMEM);
        return;
    }
    for (uint32_t i = 0; i < range.n; i++)
        room[i] = kiln_remap_location(remap, from->dict.frames[range.first + i]);
    room[range.n] = mark(b, stack);
    kiln_builder_add_value(b, profile, kiln_builder_stack(b, room, range.n + 1), 0, 1);
    kiln_free(room);
}

/* One sample for each stack. */
static int mark_stacks(const struct kiln_batch *from, struct kiln_batch **ret_batch,
                       struct kiln_err *err)
{
    struct kiln_limits limits = kiln_limits_default;
    struct kiln_builder *b;
    struct kiln_remap *remap;
    uint32_t profile;
    int r;

    limits.stack_depth++;
    r = kiln_builder_new(&limits, &b);
    if (r < 0)
        return r;
    r = kiln_remap_new(b, from, NULL, &remap);
    if (r < 0) {
        kiln_builder_free(b);
        return r;
    }
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    profile = kiln_builder_add_profile(b, &(struct kiln_profile){0});
    for (uint32_t i = 0; i < from->dict.n_stacks && !kiln_builder_error(b); i++)
        add_marked(b, remap, from, i, profile);
    kiln_remap_free(remap);
    return kiln_builder_finish(b, ret_batch, err);
}

static int keep_names(struct kiln_stack_names *names, uint32_t n_stacks)
{
    const struct kiln_view *view = names->view;

    names->names = kiln_calloc((size_t)view->n_path + 1, sizeof(*names->names));
    names->stacks = kiln_calloc(n_stacks, sizeof(*names->stacks));
    if (!names->names || !names->stacks)
        return -ENOMEM;
    for (uint32_t i = 0; i < view->n_path; i++)
        names->names[i] = view->frames[view->path[i]].name;
    for (uint32_t i = 0; i < view->n_rows; i++) {
        const struct kiln_view_row *row = &view->rows[i];
        uint64_t stack = 0;

        if (kiln_str_parse_u64(names->names[row->first], &stack) == 0 && stack < n_stacks)
            names->stacks[stack] = (struct kiln_range){row->first + 1, row->n - 1};
    }
    return 0;
}

int kiln_stack_names_init(struct kiln_stack_names *names, const struct kiln_batch *batch,
                          struct kiln_err *err)
{
    struct kiln_batch *marked;
    int r;

    *names = (struct kiln_stack_names){0};
    r = mark_stacks(batch, &marked, err);
    if (r < 0)
        return r;
    r = kiln_view_new(marked, &(struct kiln_view_opts){0}, &names->view, err);
    kiln_batch_unref(marked);
    if (r == 0)
        r = keep_names(names, batch->dict.n_stacks);
    if (r < 0)
        kiln_stack_names_done(names);
    return r;
}

void kiln_stack_names_done(struct kiln_stack_names *names)
{
    kiln_free(names->names);
    kiln_free(names->stacks);
    kiln_view_free(names->view);
    *names = (struct kiln_stack_names){0};
}

/* ---- choosing ---- */

static bool has_one(struct kiln_str name, const struct kiln_str *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (kiln_str_eq(name, list[i]))
            return true;
    }
    return false;
}

static bool begins(const struct kiln_str *names, uint32_t n, const struct kiln_stack_choice *choice)
{
    if (n < choice->n_call_site)
        return false;
    for (uint32_t i = 0; i < choice->n_call_site; i++) {
        if (!kiln_str_eq(names[i], choice->call_site[i]))
            return false;
    }
    return true;
}

/* 1 if any of the names matches. */
static int any_matches(const struct kiln_str *names, uint32_t n, struct kiln_regex *regex)
{
    int r = 0;

    for (uint32_t i = 0; i < n && r == 0; i++)
        r = kiln_regex_matches(regex, names[i]);
    return r;
}

int kiln_stack_chosen(const struct kiln_stack_names *all, uint32_t stack,
                      const struct kiln_stack_choice *choice)
{
    const struct kiln_str *names = all->names + all->stacks[stack].first;
    uint32_t n = all->stacks[stack].n;
    bool with = choice->n_with == 0, without = true;
    int r;

    for (uint32_t i = 0; i < n; i++) {
        with = with || has_one(names[i], choice->with, choice->n_with);
        without = without && !has_one(names[i], choice->without, choice->n_without);
    }
    if (!begins(names, n, choice) || !with || !without)
        return 0;
    r = choice->with_regex ? any_matches(names, n, choice->with_regex) : 1;
    if (r <= 0 || !choice->without_regex)
        return r;
    r = any_matches(names, n, choice->without_regex);
    return r < 0 ? r : !r;
}
