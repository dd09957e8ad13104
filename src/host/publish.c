/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three steps: the distinct places in the code of all stacks; their names, file by file
 * (publish_names.c); the samples, process by process, each with the stack that the names make.
 *
 *   resource   the process, or the container (publish_resource.c)
 *   scope      kiln.host, with the version
 *   profile    samples/count, period cpu/nanoseconds, of each rate that there was; and
 *              off_cpu/nanoseconds; under a container, what is its process's alone
 *   sample     stack; thread.id, thread.name; of waits thread.state, wait.reason; the span that it
 *              was in; how many, or how long
 *
 * Equal samples are added up twice: by addresses when they are gathered, and here again, because
 * different addresses become the same location where addresses do not leave the host (the kernel's
 * and those of JIT code).
 *
 * A wait is always in the scheduler: its frames are left out, so that the leaf says where in the
 * kernel the thread waits.
 *
 * A stack that could not be walked to its end has "[incomplete: <word>]" (host/reason.h) for its
 * outermost frame, so that no function in the middle of a program passes for an entry point: flame
 * graphs show all that was lost side by side under one root for each reason.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "core/schema.h"
#include "host/publish_int.h"
#include "host/reason.h"

#define SCRATCH_MAX ((size_t)64 << 20)
#define TEXT_MAX    4096u
#define TEXT_MANY   64u /* once a batch has TEXTS_MAX bytes of them */
#define TEXTS_MAX   ((size_t)16 << 20)

/* ---- texts ---- */

static struct kiln_str cut_text(struct kiln_str text, size_t max)
{
    size_t len = text.len;

    if (len > max)
        for (len = max; len > max - 4 && ((unsigned char)text.ptr[len] & 0xc0) == 0x80;)
            len--;
    return (struct kiln_str){text.ptr, len};
}

uint32_t publish_text(struct run *run, struct kiln_str text)
{
    text = cut_text(text, run->text_bytes < TEXTS_MAX ? TEXT_MAX : TEXT_MANY);
    run->text_bytes += text.len;
    if (kiln_utf8_valid(text) && !memchr(text.ptr ? text.ptr : "", 0, text.len))
        return kiln_builder_string(run->b, text);
    kiln_buf_clear(&run->text);
    kiln_buf_add_utf8(&run->text, text);
    if (run->text.error) {
        kiln_builder_fail(run->b, run->text.error);
        return 0;
    }
    return kiln_builder_string(run->b, kiln_buf_str(&run->text));
}

uint32_t publish_attr(struct run *run, struct kiln_str key, struct kiln_str text)
{
    uint32_t value = publish_text(run, text);

    return kiln_builder_attr(run->b, kiln_builder_string(run->b, key), kiln_value_string(value), 0);
}

/* ---- places ---- */

static struct place place_of(const struct kiln_gframe *frame, uint32_t process)
{
    struct place place = {.kind = frame->kind,
                          .address = frame->address,
                          .object = frame->object,
                          .seen_in = process};

    if (frame->kind == KILN_FRAME_LOST)
        place.address = 0;
    if (frame->kind == KILN_FRAME_JIT)
        place.process = process;
    return place;
}

/* The place, added where it is new.  UINT32_MAX: no memory; the builder has failed. */
static uint32_t find_place(struct run *run, const struct kiln_gframe *frame, uint32_t process)
{
    struct place wanted = place_of(frame, process);
    uint64_t hash = kiln_hash_mix(wanted.address, (uintptr_t)wanted.object);
    int r;

    hash = kiln_hash_mix(hash, wanted.kind | (uint64_t)wanted.process << 32);
    for (struct kiln_probe p = kiln_intern_probe(&run->index, hash);
         kiln_intern_next(&run->index, &p);) {
        const struct place *at = &run->places[p.entry];

        if (at->address == wanted.address && at->object == wanted.object &&
            at->kind == wanted.kind && at->process == wanted.process)
            return p.entry;
    }
    r = kiln_grow(&run->budget, (void **)&run->places, &run->cap_places,
                  (uint64_t)run->n_places + 1, sizeof(*run->places), UINT32_MAX - 1);
    if (r == 0)
        r = kiln_intern_add(&run->index, &run->budget, hash, run->n_places);
    if (r < 0) {
        kiln_builder_fail(run->b, r);
        return UINT32_MAX;
    }
    run->places[run->n_places] = wanted;
    return run->n_places++;
}

/* What the stacks of a gathering became: a stack with JIT code means another in each process. */
struct made {
    uint32_t stack;
    uint8_t end, kind;
    bool seen, has_jit;
};

static void collect_places(struct run *run, struct made *made)
{
    const struct kiln_gathering *g = run->g;

    for (uint32_t i = 0; i < g->n_samples && kiln_builder_error(run->b) == 0; i++) {
        const struct kiln_gsample *sample = &g->samples[i];
        const struct kiln_gstack *stack = &g->stacks[sample->stack];
        struct made *m = &made[sample->stack];

        if (m->seen && !m->has_jit)
            continue;
        m->seen = true;
        for (uint32_t f = 0; f < stack->n; f++) {
            const struct kiln_gframe *frame = &g->frames[stack->first + f];

            m->has_jit |= frame->kind == KILN_FRAME_JIT;
            find_place(run, frame, sample->process);
        }
    }
}

/* ---- stacks ---- */

static bool is_incomplete(uint8_t end)
{
    return end != KILN_END_COMPLETE && end != KILN_END_NO_USER;
}

static uint32_t end_marker(struct run *run, uint8_t end)
{
    char name[48];

    snprintf(name, sizeof(name), "[incomplete: %s]",
             kiln_end_word(end < KILN_ENDS ? end : KILN_END_READ));
    return publish_marker(run, name);
}

/* How many frames of the scheduler a wait begins with; one frame stays, whatever it is. */
static uint32_t count_waiting(struct run *run, const struct kiln_gsample *sample)
{
    const struct kiln_gstack *stack = &run->g->stacks[sample->stack];
    uint32_t n = 0;

    if (sample->kind != KILN_KIND_WAIT)
        return 0;
    while (n + 1 < stack->n) {
        uint32_t found = find_place(run, &run->g->frames[stack->first + n], sample->process);

        if (found == UINT32_MAX || !run->places[found].waits.len)
            break;
        n++;
    }
    return n;
}

static uint32_t build_stack(struct run *run, const struct kiln_gsample *sample)
{
    const struct kiln_gstack *stack = &run->g->stacks[sample->stack];
    uint32_t outermost = is_incomplete(sample->end) ? end_marker(run, sample->end)
                         : stack->n == 0            ? publish_marker(run, "[unknown]")
                                                    : 0;
    uint32_t *to = kiln_builder_stack_room(run->b, stack->n + 1), n = 0;
    const struct place *before = NULL;
    uint32_t map_before = 0;

    for (uint32_t f = count_waiting(run, sample); to && f < stack->n; f++) {
        const struct kiln_gframe *frame = &run->g->frames[stack->first + f];
        uint32_t found = find_place(run, frame, sample->process);
        struct place *place;

        if (found == UINT32_MAX)
            return 0;
        place = &run->places[found];
        if (!(before && before->merges && place->merges && before->kind == place->kind &&
              map_before == frame->map))
            to[n++] = publish_location(run, place);
        before = place;
        map_before = frame->map;
    }
    if (!to)
        return 0;
    if (outermost)
        to[n++] = outermost;
    return kiln_builder_stack_take(run->b, n);
}

/* The same, remembered: threads and processes share stacks. */
static uint32_t stack_of(struct run *run, struct made *made, const struct kiln_gsample *sample)
{
    struct made *m = &made[sample->stack];
    uint32_t stack;

    if (m->stack && m->end == sample->end && m->kind == sample->kind && !m->has_jit)
        return m->stack;
    stack = build_stack(run, sample);
    m->stack = stack;
    m->kind = sample->kind;
    m->end = sample->end;
    return stack;
}

/* ---- samples ---- */

struct row {
    uint32_t stack, attrs, link;
    int64_t value;
};

static int by_identity(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    if (x->stack != y->stack)
        return x->stack < y->stack ? -1 : 1;
    if (x->attrs != y->attrs)
        return x->attrs < y->attrs ? -1 : 1;
    return x->link < y->link ? -1 : x->link > y->link;
}

static uint32_t link_of(struct run *run, const struct kiln_gsample *sample)
{
    static const struct kiln_link none;

    return memcmp(&sample->link, &none, sizeof(none)) == 0
               ? 0
               : kiln_builder_link(run->b, &sample->link);
}

static uint32_t put_wait(struct run *run, const struct kiln_gsample *sample, uint32_t *attrs)
{
    uint32_t n = 0;

    attrs[n++] =
        publish_attr(run, KILN_STR("thread.state"), kiln_str_of(kiln_state_word(sample->state)));
    if (sample->state == KILN_STATE_BLOCKED)
        attrs[n++] = publish_attr(run, KILN_STR("wait.reason"),
                                  kiln_str_of(kiln_reason_word(sample->reason)));
    return n;
}

static uint32_t sample_attrs(struct run *run, const struct kiln_gsample *sample)
{
    struct kiln_str comm = {sample->comm, strnlen(sample->comm, sizeof(sample->comm))};
    uint32_t attrs[4], n = 0;

    if (!run->publisher->opts.lean || sample->tid != run->g->identities[sample->process]->pid)
        attrs[n++] = kiln_builder_attr(run->b, kiln_builder_string(run->b, KILN_STR("thread.id")),
                                       kiln_value_int(sample->tid), 0);
    if (comm.len)
        attrs[n++] = publish_attr(run, KILN_STR("thread.name"), comm);
    if (sample->kind == KILN_KIND_WAIT)
        n += put_wait(run, sample, attrs + n);
    return kiln_builder_set(run->b, attrs, n, NULL);
}

static void add_rows(struct run *run, uint32_t profile, struct row *rows, uint32_t n)
{
    qsort(rows, n, sizeof(*rows), by_identity);
    for (uint32_t i = 0; i < n;) {
        struct row sum = rows[i];

        for (i++; i < n && by_identity(&sum, &rows[i]) == 0; i++)
            sum.value += rows[i].value;
        kiln_builder_add_sample(run->b, profile, sum.stack, sum.attrs, sum.link, &sum.value, NULL,
                                1);
    }
}

static struct kiln_value_type type_of(struct run *run, const char *type, const char *unit)
{
    return (struct kiln_value_type){kiln_builder_string(run->b, kiln_str_of(type)),
                                    kiln_builder_string(run->b, kiln_str_of(unit))};
}

/* With these attributes. */
static void open_resource(struct run *run, uint32_t attrs)
{
    uint32_t schema_url = kiln_builder_string(run->b, KILN_STR(KILN_SCHEMA_URL));
    struct kiln_resource resource = {.attrs = attrs, .schema_url = schema_url};
    struct kiln_scope scope = {
        .name = kiln_builder_string(run->b, KILN_STR("kiln.host")),
        .version = kiln_builder_string(run->b, KILN_STR(KILN_VERSION)),
        .schema_url = schema_url,
    };

    kiln_builder_add_resource(run->b, &resource);
    kiln_builder_add_scope(run->b, &scope);
}

static uint64_t begin_of(const struct kiln_gathering *g, const struct kiln_gsample *sample)
{
    if (sample->since_s)
        return sample->since_s * KILN_NS_PER_S + g->to_unix_ns;
    return sample->kind == KILN_KIND_WAIT ? g->waits_begin_unix_ns : g->begin_unix_ns;
}

/* Of the resource that was opened last. */
static uint32_t open_profile(struct run *run, const struct kiln_gsample *sample, uint32_t attrs)
{
    const struct kiln_gathering *g = run->g;
    uint64_t since = begin_of(g, sample);
    struct kiln_profile profile = {
        .time_ns = since,
        .duration_ns = g->end_unix_ns > since ? g->end_unix_ns - since : 0,
        .attrs = attrs,
    };

    if (sample->kind == KILN_KIND_CPU) {
        profile.sample_type = type_of(run, "samples", "count");
        profile.period_type = type_of(run, "cpu", "nanoseconds");
        profile.period = sample->hz ? (int64_t)(KILN_NS_PER_S / sample->hz) : 0;
    } else {
        profile.sample_type = type_of(run, "off_cpu", "nanoseconds");
    }
    return kiln_builder_add_profile(run->b, &profile);
}

static bool same_profile(const struct kiln_gsample *a, const struct kiln_gsample *b)
{
    return a->process == b->process && a->kind == b->kind && a->hz == b->hz &&
           a->since_s == b->since_s;
}

/* The samples of a process. */
struct span {
    const struct kiln_identity *identity;
    const struct kiln_gsample *first;
    uint32_t n;
    uint32_t attrs; /* of its profiles */
};

/* The first profile of those that are left.  Returns how many samples it has. */
static uint32_t add_profile(struct run *run, struct made *made, struct row *rows,
                            const struct span *left)
{
    const struct kiln_gsample *samples = left->first;
    uint32_t profile = open_profile(run, samples, left->attrs), n = 0;

    for (; n < left->n && same_profile(samples, &samples[n]); n++)
        rows[n] = (struct row){.stack = stack_of(run, made, &samples[n]),
                               .attrs = sample_attrs(run, &samples[n]),
                               .link = link_of(run, &samples[n]),
                               .value = samples[n].value};
    add_rows(run, profile, rows, n);
    return n;
}

static void add_profiles(struct run *run, struct made *made, struct row *rows, struct span left)
{
    while (left.n && kiln_builder_error(run->b) == 0) {
        uint32_t n = add_profile(run, made, rows, &left);

        left.first += n;
        left.n -= n;
    }
}

/* ---- processes ---- */

static struct kiln_str container_of(const struct span *span)
{
    return kiln_identity_container_id(span->identity);
}

static int by_container(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    int order = kiln_str_cmp(container_of(x), container_of(y));

    return order ? order : x->first < y->first ? -1 : x->first > y->first;
}

/* The samples, by process; those of a container together where it is one resource. */
static uint32_t list_spans(struct run *run, struct span *spans)
{
    const struct kiln_gathering *g = run->g;
    uint32_t n = 0;

    for (uint32_t i = 0; i < g->n_samples; i++) {
        if (i == 0 || g->samples[i].process != g->samples[i - 1].process)
            spans[n++] = (struct span){.identity = g->identities[g->samples[i].process],
                                       .first = &g->samples[i]};
        spans[n - 1].n++;
    }
    if (run->publisher->opts.by_container)
        qsort(spans, n, sizeof(*spans), by_container);
    return n;
}

/* A resource of the first processes, each of which knows afterwards what its profiles say.  Returns
 * how many they are. */
static uint32_t open_container(struct run *run, struct span *spans, uint32_t n_left)
{
    struct publish_shared shared = {0};
    uint32_t n = 0;

    if (!run->publisher->opts.by_container || !container_of(spans).len) {
        open_resource(run, publish_resource(run, spans->identity));
        return 1;
    }
    for (; n < n_left && kiln_str_eq(container_of(spans), container_of(&spans[n])); n++) {
        spans[n].attrs = publish_resource(run, spans[n].identity);
        publish_share(run, spans[n].attrs, &shared);
    }
    for (uint32_t i = 0; i < n; i++)
        spans[i].attrs = publish_own(run, spans[i].attrs, &shared);
    open_resource(run, publish_shared(run, spans->identity, &shared));
    return n;
}

static int build(struct run *run)
{
    const struct kiln_gathering *g = run->g;
    struct made *made = kiln_builder_scratch(run->b, (size_t)g->n_stacks * sizeof(*made));
    struct row *rows = kiln_builder_scratch(run->b, (size_t)g->n_samples * sizeof(*rows));
    struct span *spans = kiln_builder_scratch(run->b, (size_t)g->n_identities * sizeof(*spans));
    uint32_t n_spans;
    int r;

    if (!made || !rows || !spans)
        return kiln_builder_error(run->b);
    memset(made, 0, (size_t)g->n_stacks * sizeof(*made));
    collect_places(run, made);
    r = kiln_builder_error(run->b);
    if (r == 0)
        r = publish_places(run);
    n_spans = list_spans(run, spans);
    for (uint32_t i = 0; r == 0 && i < n_spans; r = kiln_builder_error(run->b))
        for (uint32_t n = open_container(run, spans + i, n_spans - i); n; n--, i++)
            add_profiles(run, made, rows, spans[i]);
    return r;
}

int kiln_publish(struct kiln_publisher *publisher, struct kiln_gathering *gathering,
                 struct kiln_batch **ret_batch, struct kiln_err *err)
{
    struct run run = {.publisher = publisher, .g = gathering, .budget.limit = SCRATCH_MAX};
    struct kiln_limits limits = kiln_limits_default;
    int r;

    if (publisher->opts.memory_max)
        limits.memory_bytes = publisher->opts.memory_max;
    r = kiln_builder_new(&limits, &run.b);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    if (publisher->opts.names_wait_ns)
        run.patient_until_ns = kiln_clock_mono_ns() + publisher->opts.names_wait_ns;
    kiln_buf_init(&run.text, (size_t)4 * TEXT_MAX);
    kiln_buf_init(&run.made_up, (size_t)2 * TEXT_MAX);
    r = build(&run);
    if (r < 0)
        kiln_builder_fail(run.b, r);
    kiln_intern_done(&run.index, &run.budget);
    kiln_array_free(&run.budget, (void **)&run.places, &run.cap_places, sizeof(*run.places));
    kiln_buf_done(&run.text);
    kiln_buf_done(&run.made_up);
    return kiln_builder_finish(run.b, ret_batch, err);
}

/* ---- the publisher ---- */

int kiln_publisher_new(const struct kiln_publish_opts *opts, struct kiln_publisher **ret_publisher)
{
    struct kiln_publisher *publisher = kiln_calloc(1, sizeof(*publisher));

    if (!publisher)
        return -ENOMEM;
    publisher->opts = *opts;
    publisher->kallsyms = opts->resolver ? open("/proc/kallsyms", O_RDONLY | O_CLOEXEC) : -1;
    *ret_publisher = publisher;
    return 0;
}

void kiln_publisher_free(struct kiln_publisher *publisher)
{
    if (!publisher)
        return;
    if (publisher->kallsyms >= 0)
        close(publisher->kallsyms);
    kiln_free(publisher);
}

void kiln_publisher_counts(const struct kiln_publisher *publisher, uint64_t *ret_asked,
                           uint64_t *ret_missing)
{
    *ret_asked = atomic_load_explicit(&publisher->names_asked, memory_order_relaxed);
    *ret_missing = atomic_load_explicit(&publisher->names_missing, memory_order_relaxed);
}
