/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/processors/statements.h"

#include <errno.h>

#include "base/mem.h"
#include "core/pick.h"
#include "core/reopen.h"

#define SAY_EVERY_S 10

void kiln_statements_done(struct kiln_statements *statements)
{
    for (uint32_t i = 0; i < statements->n; i++) {
        struct kiln_guarded *guarded = &statements->list[i];
        bool last = i + 1 == statements->n || statements->list[i + 1].group != guarded->group;

        kiln_ottl_free(guarded->ottl);
        for (uint32_t k = 0; last && k < guarded->n_guards; k++)
            kiln_ottl_free(guarded->guards[k]);
        if (last)
            kiln_free(guarded->guards);
    }
    kiln_free(statements->list);
    *statements = (struct kiln_statements){0};
}

/* What becomes of a failure: 0 where it is ignored.  Those of memory never are. */
static int failed(struct kiln_statements *s, enum kiln_error_mode mode, int code,
                  struct kiln_err *err)
{
    if (mode == KILN_ERROR_PROPAGATE || code == -ENOMEM)
        return code;
    if (mode == KILN_ERROR_IGNORE && kiln_log_every(&s->said, SAY_EVERY_S))
        kiln_log(s->log, KILN_LOG_WARN, "a statement could not be run", "reason", "%s", err->text,
                 NULL);
    *err = (struct kiln_err){0};
    return 0;
}

/* ---- the walk ---- */

/* Something that is done to each item of a context; stops where it fails. */
struct walk {
    struct kiln_statements *statements;
    enum kiln_ottl_context context;
    struct kiln_ottl_item item;
    int (*each)(struct walk *walk, struct kiln_err *err);
    const struct kiln_guarded *guarded; /* those of a group */
    uint32_t n_guarded;
    uint8_t *no_profile, *no_sample;
    bool dropped;
};

static int walk_samples(struct walk *w, struct kiln_err *err)
{
    const struct kiln_profile *profile = &w->item.batch->profiles[w->item.profile];
    int r = 0;

    for (uint32_t i = 0; i < profile->n_samples && r == 0; i++) {
        w->item.sample = profile->first_sample + i;
        r = w->each(w, err);
    }
    return r;
}

static int walk_profiles(struct walk *w, struct kiln_err *err)
{
    const struct kiln_scope *scope = &w->item.batch->scopes[w->item.scope];
    int r = 0;

    for (uint32_t i = 0; i < scope->n_profiles && r == 0; i++) {
        w->item.profile = scope->first_profile + i;
        r = w->context == KILN_OTTL_PROFILE ? w->each(w, err) : walk_samples(w, err);
    }
    return r;
}

static int walk_scopes(struct walk *w, struct kiln_err *err)
{
    const struct kiln_resource *resource = &w->item.batch->resources[w->item.resource];
    int r = 0;

    for (uint32_t i = 0; i < resource->n_scopes && r == 0; i++) {
        w->item.scope = resource->first_scope + i;
        r = w->context == KILN_OTTL_SCOPE ? w->each(w, err) : walk_profiles(w, err);
    }
    return r;
}

static int walk(struct walk *w, struct kiln_err *err)
{
    int r = 0;

    w->context = w->guarded->context;
    for (uint32_t i = 0; i < w->item.batch->n_resources && r == 0; i++) {
        w->item.resource = i;
        r = w->context == KILN_OTTL_RESOURCE ? w->each(w, err) : walk_scopes(w, err);
    }
    return r;
}

static int walk_all(struct walk *w, struct kiln_err *err)
{
    const struct kiln_statements *s = w->statements;
    int r = 0;

    for (uint32_t i = 0; i < s->n && r == 0; i += w->n_guarded) {
        w->guarded = &s->list[i];
        w->n_guarded = 1;
        while (i + w->n_guarded < s->n && s->list[i].group == s->list[i + w->n_guarded].group)
            w->n_guarded++;
        r = walk(w, err);
    }
    return r;
}

/* ---- filter ---- */

static void drop_profiles(struct walk *w, const struct kiln_scope *scope)
{
    memset(w->no_profile + scope->first_profile, 1, scope->n_profiles);
}

/* Whatever the item is, with all that is in it. */
static void drop(struct walk *w)
{
    const struct kiln_batch *batch = w->item.batch;
    const struct kiln_resource *resource = &batch->resources[w->item.resource];

    w->dropped = true;
    if (w->context == KILN_OTTL_SAMPLE)
        w->no_sample[w->item.sample] = 1;
    else if (w->context == KILN_OTTL_PROFILE)
        w->no_profile[w->item.profile] = 1;
    else if (w->context == KILN_OTTL_SCOPE)
        drop_profiles(w, &batch->scopes[w->item.scope]);
    for (uint32_t i = 0; w->context == KILN_OTTL_RESOURCE && i < resource->n_scopes; i++)
        drop_profiles(w, &batch->scopes[resource->first_scope + i]);
}

static int filter_item(struct walk *w, struct kiln_err *err)
{
    int r = kiln_ottl_holds(w->guarded->ottl, &w->item, err);

    if (r < 0)
        return failed(w->statements, w->guarded->mode, r, err);
    if (r > 0)
        drop(w);
    return 0;
}

int kiln_statements_filter(void *statements, struct kiln_batch **batch, struct kiln_err *err)
{
    struct walk w = {.statements = statements, .item = {.batch = *batch}, .each = filter_item};
    struct kiln_batch *rest;
    int r;

    w.no_profile = kiln_calloc((size_t)(*batch)->n_profiles + (*batch)->n_samples + 1, 1);
    if (!w.no_profile)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    w.no_sample = w.no_profile + (*batch)->n_profiles;
    r = walk_all(&w, err);
    if (r == 0 && w.dropped) {
        r = kiln_pick(*batch, w.no_profile, w.no_sample, &rest, err);
        if (r == 0) {
            kiln_metric_add(w.statements->filtered, (*batch)->n_samples - rest->n_samples);
            kiln_batch_unref(*batch);
            *batch = rest;
            r = 1;
        }
    }
    kiln_free(w.no_profile);
    return r;
}

/* ---- transform ---- */

/* 1 where there is no guard, or one of them holds. */
static int is_let_through(struct walk *w, struct kiln_err *err)
{
    int r = w->guarded->n_guards == 0;

    for (uint32_t i = 0; i < w->guarded->n_guards && r == 0; i++)
        r = kiln_ottl_holds(w->guarded->guards[i], &w->item, err);
    return r;
}

static int transform_item(struct walk *w, struct kiln_err *err)
{
    uint32_t cache = 0;
    int r = is_let_through(w, err);

    if (r <= 0)
        return r < 0 ? failed(w->statements, w->guarded->mode, r, err) : 0;
    w->item.cache = &cache;
    r = 0;
    for (uint32_t i = 0; i < w->n_guarded && r == 0; i++) {
        r = kiln_ottl_run(w->guarded[i].ottl, &w->item, err);
        if (r < 0)
            r = failed(w->statements, w->guarded->mode, r, err);
        if (kiln_builder_error(w->item.b))
            r = kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    }
    w->item.cache = NULL;
    return r;
}

int kiln_statements_transform(void *statements, struct kiln_batch **batch, struct kiln_err *err)
{
    struct walk w = {.statements = statements, .each = transform_item};
    int r = kiln_reopen(*batch, &w.item.b, err);

    *batch = NULL;
    if (r < 0)
        return r;
    w.item.batch = kiln_builder_peek(w.item.b);
    r = walk_all(&w, err);
    if (r < 0) {
        kiln_builder_free(w.item.b);
        return r;
    }
    r = kiln_builder_finish(w.item.b, batch, err);
    return r < 0 ? r : 1;
}
