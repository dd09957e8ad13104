/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch becomes a slice: its samples with their stacks as frames of the book, root first.  Stacks
 * of a batch are shared by samples, so each is written into the slice's path once.
 *
 * A wait that lasted long is a profile of its own, as long as the wait was: of it counts what is
 * within the time looked at.
 *
 * What a profile's values are is for core/type.h to say: CPU time (also as a count of samples at a
 * period), or off_cpu in nanoseconds, whose samples say in thread.state whether they were blocked
 * or ready to run, and in wait.reason what for.  Other types are not shown here.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/sat.h"
#include "cli/live.h"
#include "core/frame.h"
#include "core/type.h"

enum { ENTRIES_MAX = 1 << 26 };

/* ---- one slice ---- */

struct making {
    struct kiln_live_window *window;
    struct kiln_live_book *book;
    struct kiln_live_slice *slice;
    const struct kiln_batch *batch;
    uint32_t *frames;          /* by location: the first of its frames in `pool`; NONE: not yet */
    uint32_t *pool;            /* n, then frames outermost first */
    struct kiln_range *stacks; /* by stack of the batch: of the path; n NONE: not yet */
    uint32_t frames_cap, pool_cap, stacks_cap, n_pool;
    uint32_t process;
    uint32_t last_ms; /* of the profile at hand */
};

static void free_slice(struct kiln_live_window *window, struct kiln_live_slice *slice)
{
    kiln_array_free(&window->budget, (void **)&slice->samples, &slice->samples_cap,
                    sizeof(*slice->samples));
    kiln_array_free(&window->budget, (void **)&slice->path, &slice->path_cap, sizeof(*slice->path));
    *slice = (struct kiln_live_slice){0};
}

static int put_pool(struct making *m, uint32_t number)
{
    int r = kiln_grow(&m->window->budget, (void **)&m->pool, &m->pool_cap, (uint64_t)m->n_pool + 1,
                      sizeof(*m->pool), ENTRIES_MAX);

    if (r == 0)
        m->pool[m->n_pool++] = number;
    return r;
}

static int put_frame(struct making *m, const struct kiln_live_frame *frame)
{
    uint32_t id;
    int r = kiln_live_book_frame(m->book, frame, &id);

    return r < 0 ? r : put_pool(m, id);
}

static int put_lines(struct making *m, const struct kiln_location *location,
                     struct kiln_live_frame frame)
{
    const struct kiln_dict *dict = &m->batch->dict;
    int r = 0;

    for (uint32_t i = location->n; r == 0 && i-- > 0;) {
        const struct kiln_function *function =
            &dict->functions[dict->lines[location->first + i].function];

        frame.name = kiln_frame_function(dict, function);
        frame.unnamed = !frame.name.len || kiln_frame_is_made_up(dict, function);
        frame.name = frame.name.len ? frame.name : kiln_frame_unknown;
        r = put_frame(m, &frame);
    }
    return r;
}

/* The frames of a location, made once. */
static int frames_of(struct making *m, uint32_t location, uint32_t *ret_first)
{
    const struct kiln_batch *batch = m->batch;
    const struct kiln_location *l = &batch->dict.locations[location];
    struct kiln_live_frame frame = {0};
    uint32_t first = m->n_pool;
    int r;

    if (m->frames[location] != KILN_LIVE_NONE) {
        *ret_first = m->frames[location];
        return 0;
    }
    frame.module =
        kiln_frame_base(kiln_batch_str(batch, batch->dict.mappings[l->mapping].filename));
    frame.kernel = kiln_str_eq(kiln_set_text(batch, l->attrs, KILN_STR("profile.frame.type")),
                               KILN_STR("kernel"));
    r = put_pool(m, l->n ? l->n : 1);
    if (r == 0 && l->n == 0) {
        frame.name =
            kiln_frame_unnamed(frame.module, kiln_frame_address(batch, l), &m->book->scratch);
        frame.unnamed = true;
        r = put_frame(m, &frame);
    } else if (r == 0) {
        r = put_lines(m, l, frame);
    }
    if (r < 0)
        return r;
    m->frames[location] = *ret_first = first;
    return 0;
}

static int put_path(struct making *m, uint32_t location)
{
    struct kiln_live_slice *slice = m->slice;
    uint32_t first = 0, n;
    int r = frames_of(m, location, &first);

    if (r < 0)
        return r;
    n = m->pool[first];
    r = kiln_grow(&m->window->budget, (void **)&slice->path, &slice->path_cap,
                  (uint64_t)slice->n_path + n, sizeof(*slice->path), ENTRIES_MAX);
    for (uint32_t i = 0; r == 0 && i < n; i++)
        slice->path[slice->n_path++] = m->pool[first + 1 + i];
    return r;
}

static int path_of(struct making *m, uint32_t stack, struct kiln_range *ret)
{
    struct kiln_range range = m->batch->dict.stacks[stack];
    uint32_t first = m->slice->n_path;
    int r = 0;

    for (uint32_t i = range.n; m->stacks[stack].n == KILN_LIVE_NONE && r == 0 && i-- > 0;)
        r = put_path(m, m->batch->dict.frames[range.first + i]);
    if (r < 0)
        return r;
    if (m->stacks[stack].n == KILN_LIVE_NONE)
        m->stacks[stack] = (struct kiln_range){first, m->slice->n_path - first};
    *ret = m->stacks[stack];
    return 0;
}

/* Of those that could run: for a processor. */
static int reason_of(struct making *m, const struct kiln_sample *sample,
                     struct kiln_live_sample *made)
{
    struct kiln_str state = kiln_set_text(m->batch, sample->attrs, KILN_STR("thread.state"));
    struct kiln_str reason = kiln_set_text(m->batch, sample->attrs, KILN_STR("wait.reason"));

    made->kind = KILN_LIVE_BLOCKED;
    if (kiln_str_eq(state, KILN_STR("runnable"))) {
        made->kind = KILN_LIVE_RUNNABLE;
        reason = KILN_STR("processor");
    }
    return reason.len ? kiln_live_book_text(m->book, reason, &made->reason) : 0;
}

static int add_sample(struct making *m, const struct kiln_sample *sample, int64_t scale, bool waits)
{
    struct kiln_live_slice *slice = m->slice;
    struct kiln_live_sample made = {.process = m->process, .reason = KILN_LIVE_NONE};
    int64_t ns = kiln_sat_mul(kiln_sample_total(m->batch, sample), scale);
    struct kiln_range path = {0};
    int r;

    if (ns <= 0)
        return 0;
    made.ns = (uint64_t)ns;
    made.last_ms = m->last_ms;
    r = waits ? reason_of(m, sample, &made) : 0;
    if (r == 0)
        r = path_of(m, sample->stack, &path);
    if (r == 0)
        r = kiln_grow(&m->window->budget, (void **)&slice->samples, &slice->samples_cap,
                      (uint64_t)slice->n_samples + 1, sizeof(*slice->samples), ENTRIES_MAX);
    if (r < 0)
        return r;
    made.first = path.first;
    made.n = path.n;
    slice->samples[slice->n_samples++] = made;
    return 0;
}

static int add_profile(struct making *m, const struct kiln_profile *profile,
                       const struct kiln_type *type)
{
    bool waits = kiln_str_eq(type->type, KILN_STR("off_cpu"));
    int r = 0;

    if (kiln_unit_kind(type->unit) != KILN_UNIT_NANOSECONDS ||
        (!waits && !kiln_str_eq(type->type, KILN_STR("cpu"))))
        return 0;
    m->last_ms = waits && profile->duration_ns < UINT32_MAX * KILN_NS_PER_MS
                     ? (uint32_t)(profile->duration_ns / KILN_NS_PER_MS)
                     : 0;
    for (uint32_t i = 0; r == 0 && i < profile->n_samples; i++)
        r = add_sample(m, &m->batch->samples[profile->first_sample + i], type->scale, waits);
    return r;
}

static int process_of(struct making *m, const struct kiln_resource *resource)
{
    const struct kiln_batch *batch = m->batch;
    const struct kiln_attr *pid = kiln_set_find(batch, resource->attrs, KILN_STR("process.pid"));
    struct kiln_str service = kiln_set_text(batch, resource->attrs, KILN_STR("service.name"));
    struct kiln_live_process process = {
        .pid = pid && pid->value.kind == KILN_VALUE_INT ? (uint32_t)pid->value.i : 0,
        .name = kiln_set_text(batch, resource->attrs, KILN_STR("process.executable.name")),
        .host = kiln_set_text(batch, resource->attrs, KILN_STR("host.name")),
    };
    int r;

    m->process = KILN_LIVE_NONE;
    if (!process.pid && !service.len)
        return 0;
    if (!process.name.len)
        process.name = service;
    r = kiln_live_book_text(m->book, service.len ? service : KILN_STR("(none)"), &process.service);
    return r < 0 ? r : kiln_live_book_process(m->book, &process, &m->process);
}

static int add_resource(struct making *m, const struct kiln_resource *resource,
                        const struct kiln_type *types)
{
    int r = process_of(m, resource);

    for (uint32_t s = 0; r == 0 && s < resource->n_scopes; s++) {
        const struct kiln_scope *scope = &m->batch->scopes[resource->first_scope + s];

        for (uint32_t p = 0; r == 0 && p < scope->n_profiles; p++)
            r = add_profile(m, &m->batch->profiles[scope->first_profile + p],
                            &types[scope->first_profile + p]);
    }
    return r;
}

static int make_room(struct making *m)
{
    const struct kiln_dict *dict = &m->batch->dict;
    int r = kiln_reserve(&m->window->budget, (void **)&m->frames, &m->frames_cap, dict->n_locations,
                         sizeof(*m->frames), ENTRIES_MAX);

    if (r == 0)
        r = kiln_reserve(&m->window->budget, (void **)&m->stacks, &m->stacks_cap, dict->n_stacks,
                         sizeof(*m->stacks), ENTRIES_MAX);
    if (r < 0)
        return r;
    memset(m->frames, 0xff, dict->n_locations * sizeof(*m->frames));
    memset(m->stacks, 0xff, dict->n_stacks * sizeof(*m->stacks));
    return 0;
}

static int make_slice(struct kiln_live_window *window, const struct kiln_batch *batch,
                      struct kiln_live_slice *slice)
{
    struct making m = {.window = window, .book = &window->book, .slice = slice, .batch = batch};
    struct kiln_type *types = NULL;
    int r = kiln_types_of_batch(batch, false, &types);

    if (r == 0)
        r = make_room(&m);
    for (uint32_t i = 0; r == 0 && i < batch->n_resources; i++)
        r = add_resource(&m, &batch->resources[i], types);
    kiln_array_free(&window->budget, (void **)&m.frames, &m.frames_cap, sizeof(*m.frames));
    kiln_array_free(&window->budget, (void **)&m.pool, &m.pool_cap, sizeof(*m.pool));
    kiln_array_free(&window->budget, (void **)&m.stacks, &m.stacks_cap, sizeof(*m.stacks));
    kiln_free(types);
    if (r < 0)
        free_slice(window, slice);
    return r;
}

/* ---- the window ---- */

void kiln_live_window_init(struct kiln_live_window *window, size_t memory_bytes, uint64_t now_ns)
{
    memset(window, 0, sizeof(*window));
    window->budget.limit = memory_bytes / 2;
    window->began_ns = now_ns;
    kiln_live_book_init(&window->book, memory_bytes / 2);
}

static void forget_oldest(struct kiln_live_window *window)
{
    free_slice(window, &window->slices[window->first]);
    window->first = (window->first + 1) % KILN_LIVE_SLICES_MAX;
    window->n--;
}

void kiln_live_window_forget(struct kiln_live_window *window)
{
    while (window->n)
        forget_oldest(window);
}

void kiln_live_window_done(struct kiln_live_window *window)
{
    kiln_live_window_forget(window);
    kiln_live_book_done(&window->book);
}

void kiln_live_window_clear(struct kiln_live_window *window, uint64_t now_ns)
{
    size_t limit = window->book.budget.limit;

    kiln_live_window_done(window);
    kiln_live_book_init(&window->book, limit);
    window->began_ns = now_ns;
}

int kiln_live_window_add(struct kiln_live_window *window, const struct kiln_batch *batch,
                         uint64_t at_ns)
{
    struct kiln_live_slice slice = {.at_ns = at_ns};
    int r = make_slice(window, batch, &slice);

    while (r < 0 && window->n && window->budget.used > window->budget.limit / 4) {
        for (uint32_t n = window->n / 2 + 1; n; n--)
            forget_oldest(window);
        slice = (struct kiln_live_slice){.at_ns = at_ns};
        r = make_slice(window, batch, &slice);
    }
    if (r < 0 && window->book.n_frames) { /* the book is full of names that nobody uses any more */
        kiln_live_window_clear(window, at_ns);
        window->forgotten++;
        slice = (struct kiln_live_slice){.at_ns = at_ns};
        r = make_slice(window, batch, &slice);
    }
    if (r < 0)
        return r;
    if (window->n == KILN_LIVE_SLICES_MAX)
        forget_oldest(window);
    window->slices[(window->first + window->n++) % KILN_LIVE_SLICES_MAX] = slice;
    return 0;
}
