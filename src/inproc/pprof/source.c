/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's own profiles.  What is counted for ever (time, allocations, waits, stalls) is read
 * from the keeper, and a window is the difference of two readings; those who ask at about the same
 * moment share one.  Levels (memory in use, threads) are taken as they are, and a window is how
 * much there was more, or less, at its end.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include "base/bytetext.h"
#include "base/clock.h"
#include "base/mem.h"
#include "core/builder.h"
#include "inproc/keep/keep.h"
#include "inproc/keep/mappings.h"
#include "inproc/keep/pace.h"
#include "inproc/out/names.h"
#include "inproc/out/prepare.h"
#include "inproc/pprof/shape.h"
#include "inproc/sample/cpu.h"
#include "inproc/start.h"
#include "inproc/thread/thread.h"

#define SHARED_NS     (10 * KILN_NS_PER_MS)
#define COMMENT_BYTES 4096
#define WAIT_NS       (5 * KILN_NS_PER_MS)
#define WAIT_TURNS    50

/* Counters as they stood, for all who asked then. */
struct reading {
    struct kiln_in_counts *counts;
    uint64_t at_ns; /* monotonic */
    uint32_t refs;
};

struct kiln_in_mark {
    enum kiln_in_profile which;
    struct reading *reading;   /* of counts */
    struct kiln_batch *levels; /* of levels */
    uint64_t unix_ns, mono_ns;
};

static struct reading *latest;

/* What each is made of, and what has to be on for it. */
static const struct {
    uint32_t kinds; /* 0: levels */
    uint32_t wants;
    const char *word; /* in KILN_PROFILES */
} made_of[KILN_IN_PROFILES] = {
    [KILN_IN_PROFILE_CPU] = {KILN_IN_TYPE(CPU), KILN_PROFILE_CPU, "cpu"},
    [KILN_IN_PROFILE_WALL] = {KILN_IN_TYPE(CPU) | KILN_IN_TYPE(WAIT), KILN_PROFILE_WALL, "wall"},
    [KILN_IN_PROFILE_FGPROF] = {KILN_IN_TYPE(CPU) | KILN_IN_TYPE(WAIT), KILN_PROFILE_WALL, "wall"},
    [KILN_IN_PROFILE_HEAP] = {0, KILN_PROFILE_ALLOC, "alloc"},
    [KILN_IN_PROFILE_ALLOCS] = {0, KILN_PROFILE_ALLOC, "alloc"},
    [KILN_IN_PROFILE_BLOCK] = {KILN_IN_TYPE(BLOCK), KILN_PROFILE_LOCK, "lock"},
    [KILN_IN_PROFILE_MUTEX] = {KILN_IN_TYPE(MUTEX), KILN_PROFILE_LOCK, "lock"},
    [KILN_IN_PROFILE_HOLDERS] = {KILN_IN_TYPE(HOLDER), KILN_PROFILE_LOCK, "lock"},
    [KILN_IN_PROFILE_THREADS] = {0, KILN_PROFILE_THREADS, "threads"},
    [KILN_IN_PROFILE_CREATE] = {KILN_IN_TYPE(CREATE), KILN_PROFILE_THREADS, "threads"},
    [KILN_IN_PROFILE_LOOP] = {KILN_IN_TYPE(LOOP), KILN_PROFILE_LOOP, "loop"},
};

/* ---- readings ---- */

static void reading_unref(struct reading *reading)
{
    if (!reading || --reading->refs > 0)
        return;
    kiln_in_counts_free(reading->counts);
    kiln_free(reading);
}

static int reading_now(struct reading **ret)
{
    uint64_t now_ns = kiln_clock_mono_ns();
    struct reading *fresh;
    int r;

    if (latest && now_ns - latest->at_ns < SHARED_NS) {
        latest->refs++;
        *ret = latest;
        return 0;
    }
    fresh = kiln_calloc(1, sizeof(*fresh));
    if (!fresh)
        return -ENOMEM;
    r = kiln_in_keep_counts(&fresh->counts);
    if (r < 0) {
        kiln_free(fresh);
        return r;
    }
    fresh->at_ns = now_ns;
    fresh->refs = 2; /* the caller's, and that of the next who asks */
    reading_unref(latest);
    latest = fresh;
    *ret = fresh;
    return 0;
}

void kiln_in_source_forget(void)
{
    reading_unref(latest);
    latest = NULL;
}

/* ---- marks ---- */

/* What is sampled only while somebody wants it. */
static uint32_t wants_now(enum kiln_in_profile which)
{
    uint32_t kinds = made_of[which].kinds;

    return (kinds & KILN_IN_TYPE(CPU) ? KILN_PROFILE_CPU : 0) |
           (kinds & KILN_IN_TYPE(WAIT) ? KILN_PROFILE_WALL : 0);
}

/* The keeper hears of it within a turn: the window begins when it has. */
static void want(enum kiln_in_profile which)
{
    kiln_in_pace_want(wants_now(which), 1);
    for (int i = 0; i < WAIT_TURNS && !kiln_in_pace_follows(wants_now(which)); i++)
        nanosleep(&(struct timespec){.tv_nsec = WAIT_NS}, NULL);
}

static int levels_now(enum kiln_in_profile which, struct kiln_batch **ret, struct kiln_err *err)
{
    return which == KILN_IN_PROFILE_THREADS ? kiln_in_keep_threads(ret, err)
                                            : kiln_in_keep_heap(NULL, ret, err);
}

static void drop(struct kiln_in_mark *mark)
{
    if (!mark)
        return;
    kiln_in_pace_want(wants_now(mark->which), -1);
    reading_unref(mark->reading);
    kiln_batch_unref(mark->levels);
    kiln_free(mark);
}

static int mark(enum kiln_in_profile which, struct kiln_in_mark **ret, struct kiln_err *err)
{
    struct kiln_in_mark *fresh = kiln_calloc(1, sizeof(*fresh));
    int r;

    if (!fresh)
        return -ENOMEM;
    want(which);
    *fresh = (struct kiln_in_mark){
        .which = which, .unix_ns = kiln_clock_unix_ns(), .mono_ns = kiln_clock_mono_ns()};
    r = made_of[which].kinds ? reading_now(&fresh->reading)
                             : levels_now(which, &fresh->levels, err);
    if (r < 0) {
        drop(fresh);
        return r;
    }
    *ret = fresh;
    return 0;
}

/* ---- profiles ---- */

static int counts_since(enum kiln_in_profile which, const struct kiln_in_mark *from,
                        struct kiln_batch **ret, struct kiln_err *err)
{
    struct reading *now = NULL;
    int r = reading_now(&now);

    if (r < 0)
        return r;
    r = kiln_in_keep_profile(from ? from->reading->counts : NULL, now->counts, made_of[which].kinds,
                             ret, err);
    reading_unref(now);
    return r;
}

/* The same with names, or as it is. */
static struct kiln_batch *name_batch(struct kiln_batch *batch)
{
    const struct kiln_in_names_how all = {0};
    struct kiln_batch *named = NULL;

    return kiln_in_names_fill(batch, &all, &named, NULL) < 0 ? kiln_batch_ref(batch) : named;
}

/* What is not in the profiles, in words for people. */
static void add_comments(enum kiln_in_profile which, struct kiln_buf *out)
{
    static const char *const words[] = {
#define X(name, word) word,
        KILN_IN_LOSS_MAP(X)
#undef X
    };

    if (!kiln_in_wants(made_of[which].wants))
        kiln_buf_printf(out, "not sampled all the time: KILN_PROFILES lacks %s\n",
                        made_of[which].word);
    for (enum kiln_in_loss i = 0; i < KILN_IN_LOSSES; i++) {
        uint64_t n = kiln_in_lost_total(i);

        if (n)
            kiln_buf_printf(out, "incomplete since the start (%s): %" PRIu64 "\n", words[i], n);
    }
}

static int64_t period_of(enum kiln_in_profile which)
{
    if (made_of[which].kinds & KILN_IN_TYPE(CPU))
        return (int64_t)kiln_in_cpu_period_ns();
    if (which == KILN_IN_PROFILE_HEAP || which == KILN_IN_PROFILE_ALLOCS)
        return (int64_t)kiln_in_settings.alloc_bytes;
    return 1;
}

/* ---- where files are ---- */

static bool place(struct kiln_str file, uint64_t address, struct kiln_in_place *ret)
{
    const struct kiln_in_mapping *found;

    kiln_in_mappings_lock();
    found = kiln_in_mappings_of(file, address);
    if (found)
        *ret = (struct kiln_in_place){
            {.start = found->start, .limit = found->end, .offset = found->map_offset},
            -found->shift};
    kiln_in_mappings_unlock();
    return found != NULL;
}

/* The program itself: where it was entered. */
struct program {
    char file[KILN_IN_MAPPING_PATH], build_id[2 * KILN_BUILD_ID_MAX];
};

static void find_program(struct program *program, struct kiln_in_shape_opts *opts)
{
    const struct kiln_in_mapping *found;

    kiln_in_mappings_look();
    kiln_in_mappings_lock();
    found = kiln_in_mappings_find(getauxval(AT_ENTRY));
    if (found) {
        memcpy(program->file, found->path, sizeof(program->file));
        kiln_hex_encode(found->build_id, found->build_id_len, program->build_id);
        opts->program = kiln_str_of(program->file);
        opts->program_build_id = (struct kiln_str){program->build_id, 2u * found->build_id_len};
        opts->program_mapping = (struct kiln_mapping){
            .start = found->start, .limit = found->end, .offset = found->map_offset};
    }
    kiln_in_mappings_unlock();
}

/* ---- reading ---- */

static int shape(enum kiln_in_profile which, const struct kiln_in_mark *from,
                 const struct kiln_in_part parts[2], struct kiln_batch **ret, struct kiln_err *err)
{
    struct kiln_in_shape_opts opts = {.time_ns = from ? from->unix_ns : kiln_clock_unix_ns(),
                                      .duration_ns =
                                          from ? kiln_clock_mono_ns() - from->mono_ns : 0,
                                      .period = period_of(which),
                                      .place = place};
    struct kiln_batch *shaped = NULL;
    struct program program;
    struct kiln_buf comments;
    int r;

    kiln_buf_init(&comments, COMMENT_BYTES);
    add_comments(which, &comments);
    opts.comments = kiln_buf_str(&comments);
    find_program(&program, &opts);
    r = kiln_in_shape(which, parts, parts[1].batch ? 2 : 1, &opts, &shaped, err);
    if (r == 0)
        r = kiln_in_prepare_redact(shaped, ret, err);
    kiln_batch_unref(shaped);
    kiln_buf_done(&comments);
    return r;
}

static int read_profile(enum kiln_in_profile which, const struct kiln_in_mark *from,
                        struct kiln_batch **ret, struct kiln_err *err)
{
    struct kiln_batch *batch = NULL, *named, *before = NULL;
    int r = made_of[which].kinds ? counts_since(which, from, &batch, err)
                                 : levels_now(which, &batch, err);

    if (r < 0)
        return r;
    named = name_batch(batch);
    if (from && from->levels)
        before = name_batch(from->levels);
    r = shape(which, from, (struct kiln_in_part[]){{named, 1}, {before, -1}}, ret, err);
    kiln_batch_unref(batch);
    kiln_batch_unref(named);
    kiln_batch_unref(before);
    return r;
}

/* ---- names ---- */

/* Each address is the stack of a sample, in the order they were asked for. */
static void put_address(struct kiln_builder *b, uint32_t profile, uint64_t address)
{
    struct kiln_location location = {.address = address};
    struct kiln_in_mapping *found = kiln_in_mappings_find(address);
    uint32_t one;

    if (found) {
        struct kiln_mapping mapping = {
            .start = found->start, .limit = found->end, .offset = found->map_offset};

        mapping.filename = kiln_builder_string(b, kiln_str_of(found->path));
        location.mapping = kiln_builder_mapping(b, &mapping);
    }
    one = kiln_builder_location(b, &location, NULL, 0);
    kiln_builder_add_value(b, profile, kiln_builder_stack(b, &one, 1), 0, 1);
}

static int batch_of(const uint64_t *addresses, size_t n, struct kiln_batch **ret)
{
    struct kiln_builder *b = NULL;
    uint32_t profile;
    int r = kiln_builder_new(NULL, &b);

    if (r < 0)
        return r;
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    profile = kiln_builder_add_profile(b, &(struct kiln_profile){0});
    kiln_in_mappings_look();
    kiln_in_mappings_lock();
    for (size_t i = 0; i < n; i++)
        put_address(b, profile, addresses[i]);
    kiln_in_mappings_unlock();
    return kiln_builder_finish(b, ret, NULL);
}

static int name_addresses(const uint64_t *addresses, size_t n, struct kiln_buf *out)
{
    struct kiln_batch *batch = NULL, *named, *ready = NULL;
    int r = batch_of(addresses, n, &batch);

    if (r < 0)
        return r;
    named = name_batch(batch);
    r = kiln_in_prepare_redact(named, &ready, NULL);
    for (uint32_t i = 0; r == 0 && i < ready->n_samples; i++) {
        const struct kiln_dict *d = &ready->dict;
        const struct kiln_location *l =
            &d->locations[d->frames[d->stacks[ready->samples[i].stack].first]];

        if (!l->n)
            continue;
        kiln_buf_printf(out, "0x%" PRIx64 " ", l->address);
        kiln_buf_add_str(out, d->strings[d->functions[d->lines[l->first].function].name]);
        kiln_buf_putc(out, '\n');
    }
    kiln_batch_unref(batch);
    kiln_batch_unref(named);
    kiln_batch_unref(ready);
    return r < 0 ? r : out->error;
}

const struct kiln_in_source kiln_in_source_own = {
    .mark = mark, .drop = drop, .read = read_profile, .name = name_addresses};
