/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One walk over the batch.  A sizer (core/otlp_size.h) says what the part at hand would take with
 * the next sample, its new dictionary entries and the heads it needs.  If that is too much, the
 * part is finished and the sample tried again with an empty one: the sizer forgets by starting a
 * new message, so nothing has to be undone.  What fits is copied through one remap, which moves
 * from part to part.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/mem.h"
#include "core/otlp_size.h"
#include "core/remap.h"
#include "core/split.h"

#define PARTS_MAX 65536u
#define NONE      UINT32_MAX

struct split {
    const struct kiln_batch *batch;
    uint64_t bytes_max;
    uint64_t samples_max;
    uint32_t parts_max;
    struct kiln_otlp_sizer *sizer;
    struct kiln_remap *remap;
    struct kiln_builder *b; /* of the part at hand */
    uint32_t *left_out;

    /* What is being split; NONE where the walk is not inside one. */
    uint32_t resource, scope, profile;
    bool payload_sent; /* of this profile */

    /* The part at hand: what it holds, and which heads it has. */
    uint64_t bytes; /* all but the dictionary */
    uint64_t samples;
    bool empty;
    uint32_t in_resource, in_scope, in_profile;
    uint32_t built_profile; /* index of in_profile in the builder */

    struct kiln_budget budget; /* for the list of parts */
    struct kiln_batch **parts;
    uint32_t n_parts, cap_parts;
};

/* ---- parts ---- */

static void begin_part(struct split *s)
{
    kiln_otlp_sizer_restart(s->sizer);
    s->bytes = s->samples = 0;
    s->empty = true;
    s->in_resource = s->in_scope = s->in_profile = NONE;
}

static int keep_part(struct split *s, struct kiln_builder *b, struct kiln_err *err)
{
    int r = kiln_grow(&s->budget, (void **)&s->parts, &s->cap_parts, (uint64_t)s->n_parts + 1,
                      sizeof(struct kiln_batch *), s->parts_max);

    if (r < 0) {
        kiln_builder_free(b);
        return kiln_err_set(err, r, NULL, "the batch makes more than %u parts", s->parts_max);
    }
    r = kiln_builder_finish(b, &s->parts[s->n_parts], err);
    s->n_parts += r == 0;
    return r;
}

/* Finishes the part at hand and begins another. */
static int next_part(struct split *s, struct kiln_err *err)
{
    struct kiln_builder *full = s->b, *fresh = NULL;
    int r;

    r = kiln_builder_new(NULL, &fresh);
    if (r == 0)
        r = kiln_remap_move(s->remap, fresh);
    if (r < 0) {
        kiln_builder_free(fresh);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    s->b = fresh;
    begin_part(s);
    return keep_part(s, full, err);
}

/* ---- heads ---- */

/* Bytes of the heads that the part at hand still lacks. */
static uint64_t size_heads(struct split *s)
{
    uint64_t size = 0;

    if (s->in_resource != s->resource)
        size += kiln_otlp_sizer_resource(s->sizer, s->resource);
    if (s->scope != NONE && s->in_scope != s->scope)
        size += kiln_otlp_sizer_scope(s->sizer, s->scope);
    if (s->profile != NONE && s->in_profile != s->profile)
        size += kiln_otlp_sizer_profile(s->sizer, s->profile, !s->payload_sent);
    return size;
}

static void build_heads(struct split *s)
{
    if (s->in_resource != s->resource)
        kiln_remap_add_resource(s->remap, s->resource);
    s->in_resource = s->resource;
    if (s->scope != NONE && s->in_scope != s->scope) {
        struct kiln_scope head = kiln_remap_scope(s->remap, s->scope);

        kiln_builder_add_scope(s->b, &head);
    }
    s->in_scope = s->scope;
    if (s->profile != NONE && s->in_profile != s->profile) {
        struct kiln_profile head = kiln_remap_profile(s->remap, s->profile);

        if (!s->payload_sent)
            kiln_remap_payload(s->remap, s->profile, &head);
        s->payload_sent = true;
        s->built_profile = kiln_builder_add_profile(s->b, &head);
    }
    s->in_profile = s->profile;
    s->empty = false;
}

static bool fits(const struct split *s, uint64_t more)
{
    return s->bytes + more + kiln_otlp_sizer_dict(s->sizer) <= s->bytes_max;
}

static int too_large(const struct split *s, uint64_t more, struct kiln_err *err)
{
    return kiln_err_set(err, KILN_E_LIMIT, NULL,
                        "takes %" PRIu64 " bytes by itself, %" PRIu64 " are allowed",
                        more + kiln_otlp_sizer_dict(s->sizer), s->bytes_max);
}

/* Puts heads without a sample into a part: an empty profile, scope or resource is kept, too. */
static int put_heads(struct split *s, struct kiln_err *err)
{
    uint64_t heads = size_heads(s);
    int r;

    if (!fits(s, heads) && !s->empty) {
        r = next_part(s, err);
        if (r < 0)
            return r;
        heads = size_heads(s);
    }
    if (!fits(s, heads))
        return too_large(s, heads, err);
    build_heads(s);
    s->bytes += heads;
    return kiln_builder_error(s->b);
}

/* ---- samples ---- */

/*
 * How many observations from `done` on fit into the part, given what comes before them; *ret_size
 * is what the sample then takes.
 */
static uint32_t count_fitting(const struct split *s, const struct kiln_sample *sample,
                              uint64_t fixed, uint32_t done, uint64_t *ret_size)
{
    const int64_t *values = kiln_sample_values(s->batch, sample);
    uint64_t most = s->samples_max - s->samples, value_bytes = 0;
    uint32_t n = 0;

    while (done + n < sample->n && n < most) {
        uint64_t more = values ? kiln_otlp_varint_size((uint64_t)values[done + n]) : 0;
        uint64_t size = kiln_otlp_sample_size(sample, fixed, n + 1, value_bytes + more);

        if (!fits(s, size))
            break;
        value_bytes += more;
        *ret_size = size;
        n++;
    }
    return n;
}

static void build_sample(struct split *s, const struct kiln_sample *sample, uint32_t done,
                         uint32_t n)
{
    const int64_t *values = kiln_sample_values(s->batch, sample);
    const uint64_t *times = kiln_sample_times(s->batch, sample);
    uint32_t stack = kiln_remap_stack(s->remap, sample->stack);
    uint32_t attrs = kiln_remap_set(s->remap, sample->attrs);

    kiln_builder_add_sample(s->b, s->built_profile, stack, attrs,
                            kiln_remap_link(s->remap, sample->link), values ? values + done : NULL,
                            times ? times + done : NULL, n);
}

/*
 * Puts as many observations from `done` on into the part at hand as fit, and says how many.  False
 * if none does; the part then has to end, its sizes are no longer right.
 */
static bool put_some(struct split *s, uint32_t index, uint32_t done, uint32_t *ret_n)
{
    const struct kiln_sample *sample = &s->batch->samples[index];
    uint64_t heads = size_heads(s);
    uint64_t fixed = kiln_otlp_sizer_sample(s->sizer, index);
    uint64_t size = kiln_otlp_sample_size(sample, fixed, 0, 0);
    uint32_t n;

    s->bytes += heads;
    n = count_fitting(s, sample, fixed, done, &size);
    if (n == 0 && (sample->n || !fits(s, size)))
        return false;
    build_heads(s);
    build_sample(s, sample, done, n);
    s->bytes += size;
    s->samples += n;
    *ret_n = n;
    return true;
}

/* Nothing of it was built: only its sizes have to be forgotten. */
static int leave_out(struct split *s, int code)
{
    if (!s->left_out)
        return code;
    ++*s->left_out;
    begin_part(s);
    return 0;
}

static int put_sample(struct split *s, uint32_t index, struct kiln_err *err)
{
    uint32_t total = s->batch->samples[index].n, done = 0;
    int r = 0;

    while (r == 0) {
        uint32_t n = 0;
        bool placed = put_some(s, index, done, &n);

        done += n;
        r = kiln_builder_error(s->b);
        if (r < 0 || (placed && done == total))
            return r;
        if (!placed && s->empty)
            return leave_out(s, too_large(s, s->bytes, err));
        r = next_part(s, err);
    }
    return r;
}

/* ---- the walk ---- */

static int walk_profile(struct split *s, uint32_t profile, struct kiln_err *err)
{
    const struct kiln_profile *p = &s->batch->profiles[profile];
    int r = 0;

    s->profile = profile;
    s->payload_sent = p->payload.len == 0 && p->payload_format == 0;
    if (p->n_samples == 0)
        r = put_heads(s, err);
    for (uint32_t i = 0; i < p->n_samples && r == 0; i++) {
        r = put_sample(s, p->first_sample + i, err);
        if (r < 0)
            kiln_err_within(err, "samples[%u]", i);
    }
    s->profile = NONE;
    return r;
}

static int walk_scope(struct split *s, uint32_t scope, struct kiln_err *err)
{
    const struct kiln_scope *sc = &s->batch->scopes[scope];
    int r = 0;

    s->scope = scope;
    if (sc->n_profiles == 0)
        r = put_heads(s, err);
    for (uint32_t i = 0; i < sc->n_profiles && r == 0; i++) {
        r = walk_profile(s, sc->first_profile + i, err);
        if (r < 0)
            kiln_err_within(err, "profiles[%u]", i);
    }
    s->scope = NONE;
    return r;
}

static int walk(struct split *s, struct kiln_err *err)
{
    int r = 0;

    for (uint32_t i = 0; i < s->batch->n_resources && r == 0; i++) {
        const struct kiln_resource *res = &s->batch->resources[i];

        s->resource = i;
        if (res->n_scopes == 0)
            r = put_heads(s, err);
        for (uint32_t k = 0; k < res->n_scopes && r == 0; k++) {
            r = walk_scope(s, res->first_scope + k, err);
            if (r < 0)
                kiln_err_within(err, "scope_profiles[%u]", k);
        }
        if (r < 0)
            kiln_err_within(err, "resource_profiles[%u]", i);
    }
    return r;
}

static int split_init(struct split *s)
{
    int r;

    r = kiln_otlp_sizer_new(s->batch, &s->sizer);
    if (r == 0)
        r = kiln_builder_new(NULL, &s->b);
    if (r == 0)
        r = kiln_remap_new(s->b, s->batch, NULL, &s->remap);
    if (r < 0)
        return r;
    kiln_remap_sole(s->remap);
    kiln_remap_movable(s->remap);
    begin_part(s);
    return 0;
}

static void drop_parts(struct split *s)
{
    for (uint32_t i = 0; i < s->n_parts; i++)
        kiln_batch_unref(s->parts[i]);
    kiln_free(s->parts);
}

int kiln_split(const struct kiln_batch *batch, const struct kiln_split_opts *opts,
               struct kiln_batch ***ret_parts, uint32_t *ret_n, struct kiln_err *err)
{
    struct split s = {
        .batch = batch,
        .bytes_max = opts->bytes_max ? opts->bytes_max : UINT64_MAX,
        .samples_max = opts->samples_max ? opts->samples_max : UINT64_MAX,
        .parts_max = opts->parts_max ? opts->parts_max : PARTS_MAX,
        .left_out = opts->left_out,
        .resource = NONE,
        .scope = NONE,
        .profile = NONE,
        .budget = {.limit = SIZE_MAX},
    };
    int r;

    r = split_init(&s);
    if (r == 0)
        r = walk(&s, err);
    kiln_remap_free(s.remap);
    kiln_otlp_sizer_free(s.sizer);
    if (r == 0)
        r = keep_part(&s, s.b, err);
    else
        kiln_builder_free(s.b);
    if (r < 0) {
        drop_parts(&s);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    *ret_parts = s.parts;
    *ret_n = s.n_parts;
    return 0;
}
