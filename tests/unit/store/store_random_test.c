/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the store gives back is what brute force over its inputs says, whatever was cut, merged,
 * delivered again, closed or struck by a power cut in between.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "core/remap.h"
#include "random_batch.h"
#include "resolve.h"
#include "store_kit.h"
#include "test.h"

#define NOW     5000u /* random batches begin at 1000 */
#define BATCHES 24u

/* Everything that was acknowledged. */
struct world {
    struct store_kit kit;
    struct dice dice;
    struct kiln_batch *batches[BATCHES];
    bool uncertain[BATCHES]; /* refused, but perhaps on disk */
    uint32_t n;
};

static uint32_t roll(struct world *w, uint32_t sides)
{
    return (uint32_t)dice_roll(&w->dice, sides);
}

/* A batch of which no profile is like one of another batch. */
static struct kiln_batch *new_batch(struct world *w)
{
    struct random_opts opts = {.seed = dice_roll(&w->dice, UINT32_MAX), .samples = 8};
    struct kiln_batch *batch = random_batch(&opts);

    for (uint32_t p = 0; p < batch->n_profiles; p++) {
        batch->profiles[p].id[0] = (uint8_t)(1 + w->n);
        batch->profiles[p].id[1] = (uint8_t)p;
        batch->profiles[p].time_ns = 1000 + 100 * roll(w, 10);
    }
    place_times(batch, w->kit.now_ns);
    return batch;
}

/* ---- in ---- */

static void deliver(struct world *w, uint32_t i)
{
    struct kit_outcome outcome = kit_append_to(&w->kit, "anonymous", w->batches[i]);

    w->uncertain[i] = outcome.code < 0 && (w->uncertain[i] || i + 1 == w->n);
}

static void deliver_new(struct world *w)
{
    if (w->n == BATCHES)
        return;
    w->batches[w->n] = new_batch(w);
    w->n++;
    deliver(w, w->n - 1);
}

/* Power back, everything that was refused is delivered again. */
static void recover(struct world *w)
{
    kit_cut_power(&w->kit, dice_roll(&w->dice, UINT32_MAX));
    kit_open(&w->kit);
    for (uint32_t i = 0; i < w->n; i++) {
        if (w->uncertain[i])
            deliver(w, i);
        CHECK(!w->uncertain[i]);
    }
}

/* ---- brute force ---- */

struct question {
    uint64_t start_ns, end_ns;
    struct kiln_matcher matcher;
    uint32_t n_matchers;
};

static bool in_time(const struct question *q, uint64_t time_ns)
{
    return q->end_ns == 0 || (time_ns >= q->start_ns && time_ns < q->end_ns);
}

/* Mappings with a file name are code; addresses in them become those of the file. */
static struct kiln_location moved(const struct kiln_batch *batch, uint32_t location,
                                  struct kiln_mapping *mapping)
{
    struct kiln_location l = batch->dict.locations[location];

    *mapping = batch->dict.mappings[l.mapping];
    if (mapping->filename == 0 || mapping->limit <= mapping->start)
        return l;
    if (l.address >= mapping->start && l.address < mapping->limit)
        l.address -= mapping->start - mapping->offset;
    mapping->limit -= mapping->start - mapping->offset;
    mapping->start = mapping->offset;
    return l;
}

static uint32_t copy_stack(struct kiln_remap *remap, struct kiln_builder *b,
                           const struct kiln_batch *from, uint32_t stack)
{
    struct kiln_range range = from->dict.stacks[stack];
    uint32_t frames[64];

    for (uint32_t i = 0; i < range.n; i++) {
        struct kiln_mapping m;
        uint32_t location = from->dict.frames[range.first + i];
        struct kiln_location l = moved(from, location, &m);
        struct kiln_line lines[8];

        m.filename = kiln_remap_string(remap, m.filename);
        m.attrs = kiln_remap_set(remap, m.attrs);
        l.mapping = kiln_builder_mapping(b, &m);
        l.attrs = kiln_remap_set(remap, l.attrs);
        for (uint32_t k = 0; k < l.n; k++) {
            lines[k] = from->dict.lines[l.first + k];
            lines[k].function = kiln_remap_function(remap, lines[k].function);
        }
        frames[i] = kiln_builder_location(b, &l, lines, l.n);
    }
    return kiln_builder_stack(b, frames, range.n);
}

/* Adds the observations of a profile that are in the time; whether there are any. */
static bool copy_samples(struct kiln_remap *remap, struct kiln_builder *b,
                         const struct kiln_batch *from, const struct kiln_profile *p,
                         const struct question *q)
{
    uint32_t to = kiln_builder_peek(b)->n_profiles - 1;
    bool any = false;

    for (uint32_t i = 0; i < p->n_samples; i++) {
        const struct kiln_sample *s = &from->samples[p->first_sample + i];
        const int64_t *values = kiln_sample_values(from, s);
        const uint64_t *times = kiln_sample_times(from, s);

        for (uint32_t k = 0; k < s->n; k++) {
            if (!in_time(q, times ? times[k] : p->time_ns))
                continue;
            any = true;
            kiln_builder_add_sample(b, to, copy_stack(remap, b, from, s->stack),
                                    kiln_remap_set(remap, s->attrs),
                                    kiln_remap_link(remap, s->link), values ? values + k : NULL,
                                    times ? times + k : NULL, 1);
        }
    }
    return any;
}

static bool wanted(const struct kiln_batch *batch, uint32_t resource, const struct kiln_type *type,
                   const struct question *q)
{
    static struct kiln_series_rule *rule;
    struct kiln_series series;
    struct kiln_buf key;
    bool match;

    if (!rule)
        CHECK_OK(kiln_series_rule_new(NULL, 0, &rule));
    kiln_buf_init(&key, 4096);
    kiln_series_key(rule, batch, resource, type, &key);
    CHECK_OK(kiln_series_parse(kiln_buf_str(&key), &series));
    match = kiln_series_match(&series, &q->matcher, q->n_matchers);
    kiln_buf_done(&key);
    return match;
}

static void expect_batch(struct resolved *lines, struct kiln_batch *from, const struct question *q)
{
    struct kiln_batch *batch;
    struct kiln_remap *remap;
    struct kiln_builder *b;
    struct kiln_type *types;

    CHECK_OK(kiln_types_of_batch(from, false, &types));
    CHECK_OK(kiln_builder_new(NULL, &b));
    CHECK_OK(kiln_remap_new(b, from, NULL, &remap));
    for (uint32_t r = 0; r < from->n_resources; r++) {
        kiln_remap_add_resource(remap, r);
        for (uint32_t s = 0; s < from->resources[r].n_scopes; s++) {
            const struct kiln_scope *scope = &from->scopes[from->resources[r].first_scope + s];
            struct kiln_scope to = kiln_remap_scope(remap, from->resources[r].first_scope + s);

            kiln_builder_add_scope(b, &to);
            for (uint32_t i = 0; i < scope->n_profiles; i++) {
                uint32_t p = scope->first_profile + i;
                struct kiln_profile head = kiln_remap_profile(remap, p);

                if (!wanted(from, r, &types[p], q))
                    continue;
                kiln_remap_payload(remap, p, &head);
                kiln_builder_add_profile(b, &head);
                if (!copy_samples(remap, b, from, &from->profiles[p], q) &&
                    !in_time(q, head.time_ns))
                    kiln_builder_drop_profile(b);
            }
        }
    }
    kiln_remap_free(remap);
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    resolve_add(lines, batch, 0);
    kiln_batch_unref(batch);
    kiln_free(types);
}

/* ---- out ---- */

static struct question random_question(struct world *w)
{
    static const char *const keys[] = {"service.name", "host.name", "__profile_type__"};
    static const char *const values[] = {"value1", "value2", "unknown_service", "",
                                         "wall:wall:nanoseconds:wall:nanoseconds"};
    struct question q = {0};

    if (roll(w, 2)) {
        q.start_ns = 950 + roll(w, 1000);
        q.end_ns = q.start_ns + 1 + roll(w, 400);
    }
    q.n_matchers = roll(w, 2);
    q.matcher.name = kiln_str_of(keys[roll(w, 3)]);
    q.matcher.value = kiln_str_of(values[roll(w, 5)]);
    q.matcher.op = roll(w, 2) ? KILN_MATCH_EQ : KILN_MATCH_NE;
    return q;
}

static void check(struct world *w, const struct question *q)
{
    struct kiln_selection selection = {
        .tenant = KILN_STR("anonymous"),
        .start_ns = q->start_ns,
        .end_ns = q->end_ns,
        .matchers = &q->matcher,
        .n_matchers = q->n_matchers,
    };
    struct resolved lines = {0};
    struct kiln_batch *batch;
    char *want, *got;

    CHECK_OK(w->kit.engine->ops->select(w->kit.engine, &selection, 0, &batch, NULL));
    check_invariants(batch);
    for (uint32_t i = 0; i < w->n; i++)
        expect_batch(&lines, w->batches[i], q);
    want = resolve_text(&lines);
    got = resolve_batch(batch, 0);
    CHECK_TEXT(got, want);
    kiln_free(want);
    kiln_free(got);
    kiln_batch_unref(batch);
}

static void step(struct world *w)
{
    switch (roll(w, 12)) {
    case 0:
    case 1:
        CHECK_OK(kiln_store_flush(w->kit.engine, NULL));
        break;
    case 2:
        kit_reopen(&w->kit);
        break;
    case 3:
        recover(w);
        break;
    case 4:
        CHECK_OK(kiln_store_compact(w->kit.engine, roll(w, 2), NULL));
        break;
    case 5:
    case 6:
        if (w->n)
            deliver(w, roll(w, w->n));
        break;
    case 7: /* a power cut somewhere in what comes next */
        kiln_sim_cut_at(w->kit.io, 1 + roll(w, 40));
        deliver_new(w);
        if (kiln_store_flush(w->kit.engine, NULL) == 0) /* may fail, and compaction too */
            (void)!kiln_store_compact(w->kit.engine, true, NULL);
        recover(w);
        break;
    default:
        deliver_new(w);
    }
}

static void run(uint64_t seed)
{
    struct world w = {.dice = {seed}};

    kit_init(&w.kit, NOW);
    for (int i = 0; i < 40; i++) {
        struct question q;

        step(&w);
        q = random_question(&w);
        check(&w, &q);
    }
    check(&w, &(struct question){0});
    for (uint32_t i = 0; i < w.n; i++)
        kiln_batch_unref(w.batches[i]);
    kit_done(&w.kit);
}

TEST(store, gives_back_what_brute_force_over_its_inputs_says)
{
    const char *only = getenv("KILN_TEST_SEED");

    for (uint64_t seed = 1; seed <= 40 && !only; seed++) {
        print_message("seed %d\n", (int)seed);
        run(seed);
    }
    if (only)
        run(strtoull(only, NULL, 10));
}
