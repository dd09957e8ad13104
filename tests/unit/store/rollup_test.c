/* SPDX-License-Identifier: Apache-2.0 */
#include "store/rollup.h"

#include <stdlib.h>

#include "blocks.h"
#include "core/series.h"
#include "drawn.h"
#include "random_batch.h"
#include "sim_io.h"
#include "starved.h"
#include "store/block_int.h"
#include "store/compact.h"
#include "test.h"

#define HOUR UINT64_C(3600000000000)
#define DAY  (24 * HOUR)
#define T0   (UINT64_C(20000) * DAY)

/* Everything is worth a roll-up. */
static const struct kiln_rollup_limits tiny = {.rows_min = 1,
                                               .tree_rows = 1,
                                               .node_rows = 1,
                                               .nodes_min = 100,
                                               .nodes_max = 100,
                                               .nodes_coarse = 50,
                                               .hour_ns = HOUR};

static struct kiln_rollup_limits usual;

static void set_limits(struct kiln_rollup_limits limits)
{
    if (usual.nodes_max == 0)
        usual = kiln_rollup_limits;
    kiln_rollup_limits = limits;
}

static struct kiln_block *compacted(struct kiln_io *io, const struct kiln_batch *batch)
{
    struct kiln_block_write_opts opts = {
        .tenant = KILN_STR("t"), .level = 1, .memory_bytes = BLOCK_MEMORY};
    struct kiln_err err = {0};
    struct kiln_block_id id;
    struct kiln_block *block = NULL;

    if (block_write(io, batch, &opts, &id, &err) < 0 ||
        kiln_block_open(io, block_path(&id), &block, &err) < 0 ||
        kiln_block_verify(block, &err) < 0)
        fail_msg("%s: %s", err.where, err.text);
    return block;
}

/* ---- what a roll-up says, as text ---- */

struct reading {
    struct kiln_budget budget;
    struct kiln_rollup *u;
    const struct kiln_batch *batch; /* that has the names */
    const struct kiln_rollup_name *names;
    const struct kiln_rollup_group *groups;
    uint32_t n_names, n_groups;
    struct kiln_buf text;
};

static bool reading_open(struct reading *r, struct kiln_block *block,
                         const struct kiln_batch *batch, uint32_t service)
{
    *r = (struct reading){.budget = {.limit = (size_t)64 << 20}, .batch = batch};
    kiln_buf_init(&r->text, 1 << 20);
    CHECK_OK(kiln_rollup_open(block, service, &r->budget, &r->u, NULL));
    if (!r->u)
        return false;
    CHECK_OK(kiln_rollup_names(r->u, &r->names, &r->n_names, NULL));
    r->groups = kiln_rollup_groups(r->u, &r->n_groups);
    return true;
}

static void reading_close(struct reading *r)
{
    kiln_rollup_free(r->u);
    CHECK_EQ(r->budget.used, 0);
    kiln_buf_done(&r->text);
}

static struct kiln_str name_of(const struct reading *r, uint32_t name)
{
    const struct kiln_dict *d = &r->batch->dict;

    for (uint32_t i = 0; i < d->n_strings; i++) {
        if (kiln_rollup_hash(d->strings[i]) == r->names[name].hash)
            return d->strings[i];
    }
    return r->names[name].hash == kiln_rollup_hash(KILN_STR("lib.so+0x1234"))
               ? KILN_STR("lib.so+0x1234")
               : KILN_STR("?");
}

static void say_span(struct reading *r, const struct kiln_rollup_span *s)
{
    kiln_buf_printf(&r->text, "%s %llu: %lld, %llu+%llu profiles, %llu rows\n",
                    s->end_ns - s->start_ns == HOUR ? "hour" : "day",
                    (unsigned long long)((s->start_ns - T0) / HOUR), (long long)s->total,
                    (unsigned long long)s->n_profiles, (unsigned long long)s->n_continued,
                    (unsigned long long)s->n_rows);
}

static void say_functions(struct reading *r, uint32_t group, enum kiln_rollup_level level,
                          uint32_t span)
{
    int64_t *self = calloc(r->n_names, sizeof(*self)), *total = calloc(r->n_names, sizeof(*total));
    bool wanted[KILN_ROLLUP_SPANS_MAX] = {false};

    wanted[span] = true;
    CHECK_OK(kiln_rollup_functions(r->u, group, level, wanted, self, total, NULL));
    for (uint32_t i = 0; i < r->n_names; i++) {
        if (total[i])
            kiln_buf_printf(&r->text, "  %.*s %lld %lld\n", KILN_STR_ARG(name_of(r, i)),
                            (long long)self[i], (long long)total[i]);
    }
    free(self);
    free(total);
}

static void say_tree(struct reading *r, uint32_t group, uint32_t tree)
{
    struct kiln_rollup_nodes nodes = {0};
    uint32_t ends[64], depth = 0;

    CHECK_OK(kiln_rollup_tree(r->u, group, tree, &nodes, NULL));
    kiln_buf_printf(&r->text, "  tree, off by %lld\n",
                    (long long)r->groups[group].trees[tree].error_bound);
    for (uint32_t i = 0; i < nodes.n; i++) {
        struct kiln_str name = i ? name_of(r, nodes.names[i]) : KILN_STR("total");

        while (depth && ends[depth - 1] <= i)
            depth--;
        kiln_buf_printf(&r->text, "  %*s%.*s %lld", 2 * (int)depth, "", KILN_STR_ARG(name),
                        (long long)nodes.self[i]);
        if (nodes.folded[i])
            kiln_buf_printf(&r->text, " and %lld", (long long)nodes.folded[i]);
        kiln_buf_puts(&r->text, "\n");
        ends[depth++] = nodes.ends[i];
    }
    kiln_rollup_nodes_done(r->u, &nodes);
}

/* All of a service; lives until the next call. */
static const char *rollup_text(struct kiln_block *block, const struct kiln_batch *batch,
                               uint32_t service)
{
    static char text[1 << 14];
    struct reading r;

    if (!reading_open(&r, block, batch, service)) {
        reading_close(&r);
        return "none";
    }
    for (uint32_t g = 0; g < r.n_groups; g++) {
        const struct kiln_rollup_group *group = &r.groups[g];

        kiln_buf_puts(&r.text, "group");
        for (uint32_t i = 0; i < group->n_series; i++)
            kiln_buf_printf(&r.text, " %u", group->series[i]);
        kiln_buf_puts(&r.text, "\n");
        for (uint32_t i = 0; i < group->n_spans; i++) {
            bool is_hour = i < group->n_hours;

            say_span(&r, &group->spans[i]);
            say_functions(&r, g, is_hour ? KILN_ROLLUP_HOURS : KILN_ROLLUP_DAYS,
                          is_hour ? i : i - group->n_hours);
            for (uint32_t t = 0; t < group->spans[i].n_trees; t++)
                say_tree(&r, g, group->spans[i].first_tree + t);
        }
    }
    kiln_buf_putc(&r.text, 0);
    CHECK_OK(r.text.error);
    snprintf(text, sizeof(text), "%s", r.text.ptr);
    reading_close(&r);
    return text;
}

/* Drawn profiles in a block of level 1; what its first service's roll-ups say. */
static const char *drawn_text(const struct kiln_drawn *profiles, uint32_t n)
{
    struct kiln_batch *batch = kiln_test_batch(profiles, n);
    struct kiln_io *io = kiln_sim_new();
    struct kiln_block *block = compacted(io, batch);
    const char *text = rollup_text(block, batch, 0);

    kiln_block_unref(block);
    kiln_sim_free(io);
    kiln_batch_unref(batch);
    set_limits(usual);
    return text;
}

TEST(rollup, hours_and_days_are_added_up)
{
    set_limits(tiny);
    CHECK_TEXT(drawn_text(
                   (struct kiln_drawn[]){
                       {.stacks = "main;parse;read 3\nmain;write 2\nmain;parse>inner 5\n",
                        .resource = "service.name=shop",
                        .time_ns = T0 + HOUR + 5},
                       {.stacks = "main;parse 10\n- 1\n", .time_ns = T0 + 2 * HOUR},
                   },
                   2),
               "group 0\n"
               "hour 1: 10, 1+0 profiles, 3 rows\n"
               "  parse 0 8\n  inner 5 5\n  main 0 10\n  read 3 3\n  write 2 2\n"
               "  tree, off by 0\n"
               "  total 0\n    main 0\n      parse 0\n        inner 5\n        read 3\n"
               "      write 2\n"
               "hour 2: 11, 1+0 profiles, 2 rows\n"
               "  parse 10 10\n  main 0 10\n"
               "  tree, off by 0\n"
               "  total 1\n    main 0\n      parse 10\n"
               "day 0: 21, 2+0 profiles, 5 rows\n"
               "  parse 10 18\n  inner 5 5\n  main 0 20\n  read 3 3\n  write 2 2\n"
               "  tree, off by 0\n"
               "  total 1\n    main 0\n      parse 10\n        inner 5\n        read 3\n"
               "      write 2\n");
}

TEST(rollup, a_sample_counts_in_the_hour_of_its_timestamp)
{
    set_limits(tiny);
    CHECK_TEXT(
        drawn_text(
            &(struct kiln_drawn){.stacks = "main 5@1728003599999999999 6@1728003600000000000\n",
                                 .resource = "service.name=shop",
                                 .time_ns = UINT64_C(1728003590000000000)},
            1),
        "group 0\n"
        "hour 0: 5, 1+0 profiles, 1 rows\n  main 5 5\n"
        "  tree, off by 0\n  total 0\n    main 5\n"
        "hour 1: 6, 0+1 profiles, 1 rows\n  main 6 6\n"
        "  tree, off by 0\n  total 0\n    main 6\n"
        "day 0: 11, 1+1 profiles, 2 rows\n  main 11 11\n"
        "  tree, off by 0\n  total 0\n    main 11\n");
}

TEST(rollup, a_pruned_tree_says_how_far_it_is_off)
{
    struct kiln_rollup_limits limits = tiny;

    limits.nodes_min = limits.nodes_max = 4;
    set_limits(limits);
    CHECK_TEXT(drawn_text(&(struct kiln_drawn){.stacks = "a;b;c 5\na;b;d 2\na;e 4\na 1\nf 3\n",
                                               .resource = "service.name=shop",
                                               .time_ns = T0 + 5},
                          1),
               "group 0\n"
               "day 0: 15, 1+0 profiles, 5 rows\n"
               "  a 1 12\n  b 0 7\n  c 5 5\n  d 2 2\n  e 4 4\n  f 3 3\n"
               "  tree, off by 4\n"
               "  total 0 and 3\n    a 1 and 4\n      b 0 and 2\n        c 5\n");
}

TEST(rollup, a_function_that_recurses_counts_once)
{
    set_limits(tiny);
    CHECK_TEXT(drawn_text(&(struct kiln_drawn){.stacks = "a;b;a 5\na;b;a;b 2\n",
                                               .resource = "service.name=shop",
                                               .time_ns = T0},
                          1),
               "group 0\n"
               "day 0: 7, 1+0 profiles, 2 rows\n"
               "  a 5 7\n  b 2 7\n"
               "  tree, off by 0\n"
               "  total 0\n    a 0\n      b 0\n        a 5\n          b 2\n");
}

TEST(rollup, what_has_negative_values_has_none)
{
    set_limits(tiny);
    CHECK_TEXT(drawn_text(&(struct kiln_drawn){.stacks = "a;b 5\na -2\n",
                                               .resource = "service.name=shop",
                                               .time_ns = T0},
                          1),
               "none");
}

TEST(rollup, what_is_too_large_to_be_added_up_has_none)
{
    set_limits(tiny);
    CHECK_TEXT(drawn_text(&(struct kiln_drawn){.stacks = "a;b 9223372036854775807\na 1\n",
                                               .resource = "service.name=shop",
                                               .time_ns = T0},
                          1),
               "none");
}

TEST(rollup, a_small_group_has_none)
{
    if (usual.nodes_max)
        set_limits(usual);
    else
        usual = kiln_rollup_limits;
    CHECK_TEXT(drawn_text(&(struct kiln_drawn){.stacks = "a;b 5\na 2\n",
                                               .resource = "service.name=shop",
                                               .time_ns = T0},
                          1),
               "none");
}

TEST(rollup, a_fresh_block_has_none)
{
    struct kiln_batch *batch = kiln_test_batch(
        &(struct kiln_drawn){.stacks = "a 5\n", .resource = "service.name=x", .time_ns = T0}, 1);
    struct kiln_io *io = kiln_sim_new();
    struct kiln_block *block;

    set_limits(tiny);
    block = block_of(io, batch);
    CHECK_TEXT(rollup_text(block, batch, 0), "none");
    set_limits(usual);
    kiln_block_unref(block);
    kiln_sim_free(io);
    kiln_batch_unref(batch);
}

/* ---- against brute force ---- */

enum { DEPTH = 6, NAMES = 7, OBSERVATIONS = 400 };

struct observed {
    char path[DEPTH + 1]; /* a letter for each name */
    int64_t value;
    uint64_t time_ns;
};

struct world {
    struct observed all[OBSERVATIONS];
    uint32_t n;
    struct kiln_buf text;
};

static void observe(struct world *w, struct dice *dice, uint64_t time_ns, bool timed)
{
    struct observed *o = &w->all[w->n++];
    uint32_t depth = (uint32_t)dice_roll(dice, DEPTH + 1);

    *o = (struct observed){.value = 3 * (int64_t)dice_roll(dice, 50), .time_ns = time_ns};
    if (timed)
        o->time_ns += dice_roll(dice, 3 * HOUR);
    for (uint32_t i = 0; i < depth; i++) {
        o->path[i] = (char)('a' + dice_roll(dice, NAMES));
        kiln_buf_printf(&w->text, "%s%c", i ? (dice_roll(dice, 4) ? ";" : ">") : "", o->path[i]);
    }
    kiln_buf_printf(&w->text, "%s %lld", depth ? "" : "-", (long long)o->value);
    if (timed)
        kiln_buf_printf(&w->text, "@%llu", (unsigned long long)o->time_ns);
    kiln_buf_puts(&w->text, "\n");
}

static struct kiln_batch *world_make(struct world *w, uint64_t seed)
{
    struct dice dice = {seed * 7919 + 1};
    struct kiln_drawn profiles[40];
    char *texts[40];
    uint32_t n = 0;
    struct kiln_batch *batch;

    while (w->n + 20 < OBSERVATIONS && n < 40) {
        uint64_t time_ns = T0 + dice_roll(&dice, 3) * DAY + dice_roll(&dice, 5 * HOUR);
        bool timed = dice_roll(&dice, 2);
        size_t len;

        kiln_buf_init(&w->text, 1 << 16);
        for (uint64_t i = 1 + dice_roll(&dice, 19); i > 0; i--)
            observe(w, &dice, time_ns, timed);
        kiln_buf_putc(&w->text, 0);
        kiln_buf_take(&w->text, &texts[n], &len);
        profiles[n] = (struct kiln_drawn){.stacks = texts[n], .time_ns = time_ns};
        profiles[n].resource = n ? NULL : "service.name=shop";
        n++;
    }
    batch = kiln_test_batch(profiles, n);
    for (uint32_t i = 0; i < n; i++)
        kiln_free(texts[i]);
    return batch;
}

static bool is_in(const struct observed *o, const struct kiln_rollup_span *span)
{
    return o->time_ns >= span->start_ns && o->time_ns < span->end_ns;
}

static void check_span(const struct world *w, const struct kiln_rollup_span *span)
{
    int64_t total = 0;
    uint64_t rows = 0, first = UINT64_MAX, last = 0;

    for (uint32_t i = 0; i < w->n; i++) {
        const struct observed *o = &w->all[i];

        if (!is_in(o, span))
            continue;
        total += o->value;
        rows++;
        first = o->time_ns < first ? o->time_ns : first;
        last = o->time_ns > last ? o->time_ns : last;
    }
    CHECK_EQ(span->total, total);
    CHECK_EQ(span->n_rows, rows);
    CHECK_EQ(span->first_ns, first);
    CHECK_EQ(span->last_ns, last);
}

static void check_functions(struct reading *r, const struct world *w, uint32_t span)
{
    const struct kiln_rollup_group *g = &r->groups[0];
    int64_t self[32] = {0}, total[32] = {0};
    bool wanted[KILN_ROLLUP_SPANS_MAX] = {false};
    bool is_hour = span < g->n_hours;

    wanted[is_hour ? span : span - g->n_hours] = true;
    CHECK(r->n_names <= 32);
    CHECK_OK(kiln_rollup_functions(r->u, 0, is_hour ? KILN_ROLLUP_HOURS : KILN_ROLLUP_DAYS, wanted,
                                   self, total, NULL));
    for (uint32_t i = 0; i < r->n_names; i++) {
        char name = name_of(r, i).ptr[0];

        for (uint32_t k = 0; k < w->n; k++) {
            const struct observed *o = &w->all[k];
            size_t len = strlen(o->path);

            if (!is_in(o, &g->spans[span]))
                continue;
            self[i] -= len && o->path[len - 1] == name ? o->value : 0;
            total[i] -= strchr(o->path, name) ? o->value : 0;
        }
        CHECK_EQ(self[i], 0);
        CHECK_EQ(total[i], 0);
    }
}

/* What is below a path, the path itself included. */
static int64_t total_below(const struct world *w, const struct kiln_rollup_span *span,
                           const char *path)
{
    int64_t total = 0;

    for (uint32_t i = 0; i < w->n; i++) {
        if (is_in(&w->all[i], span) && strncmp(w->all[i].path, path, strlen(path)) == 0)
            total += w->all[i].value;
    }
    return total;
}

static void check_tree(struct reading *r, const struct world *w, uint32_t tree)
{
    const struct kiln_rollup_tree *t = &r->groups[0].trees[tree];
    const struct kiln_rollup_span *span = &r->groups[0].spans[t->span];
    struct kiln_rollup_nodes nodes = {0};
    uint32_t ends[DEPTH + 2], depth = 0;
    char path[DEPTH + 2] = "";

    CHECK_OK(kiln_rollup_tree(r->u, 0, tree, &nodes, NULL));
    for (uint32_t i = 0; i < nodes.n; i++) {
        int64_t total = 0, folded = 0;

        while (depth && ends[depth - 1] <= i)
            depth--;
        if (depth)
            path[depth - 1] = name_of(r, nodes.names[i]).ptr[0];
        path[depth] = '\0';
        for (uint32_t k = i; k < nodes.ends[i]; k++)
            total += nodes.self[k] + nodes.folded[k];
        CHECK_EQ(total, total_below(w, span, path));
        for (char c = 'a'; c < 'a' + NAMES; c++) {
            uint32_t k = i + 1;

            while (k < nodes.ends[i] && name_of(r, nodes.names[k]).ptr[0] != c)
                k = nodes.ends[k];
            if (k < nodes.ends[i])
                continue;
            path[depth] = c;
            path[depth + 1] = '\0';
            folded += total_below(w, span, path);
            CHECK(total_below(w, span, path) <= t->error_bound);
        }
        CHECK_EQ(nodes.folded[i], folded);
        ends[depth++] = nodes.ends[i];
    }
    kiln_rollup_nodes_done(r->u, &nodes);
}

TEST(rollup, whatever_is_rolled_up_is_what_the_samples_say)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct world *w = calloc(1, sizeof(*w));
        struct kiln_batch *batch = world_make(w, seed);
        struct kiln_io *io = kiln_sim_new();
        struct kiln_rollup_limits limits = tiny;
        struct kiln_block *block;
        struct reading r;

        limits.nodes_min = limits.nodes_max = 1 + (uint32_t)seed * 3;
        limits.nodes_coarse = limits.nodes_max / 5;
        set_limits(limits);
        block = compacted(io, batch);
        set_limits(usual);
        CHECK(reading_open(&r, block, batch, 0));
        CHECK_EQ(r.n_groups, 1);
        CHECK(r.groups[0].n_trees >= r.groups[0].n_spans);
        for (uint32_t i = 0; i < r.groups[0].n_spans; i++) {
            check_span(w, &r.groups[0].spans[i]);
            check_functions(&r, w, i);
        }
        for (uint32_t i = 0; i < r.groups[0].n_trees; i++)
            check_tree(&r, w, i);
        reading_close(&r);
        kiln_block_unref(block);
        kiln_sim_free(io);
        kiln_batch_unref(batch);
        free(w);
    }
}

/* ---- want of memory ---- */

TEST(rollup, without_memory_a_block_has_none_and_is_whole)
{
    struct world *w = calloc(1, sizeof(*w));
    struct kiln_batch *batch = world_make(w, 3), *back;
    struct kiln_block_write_opts opts = {
        .tenant = KILN_STR("t"), .level = 1, .memory_bytes = BLOCK_MEMORY};
    bool failed = true;

    set_limits(tiny);
    for (uint64_t n = 1; failed; n++) {
        struct kiln_io *io = kiln_sim_new();
        struct kiln_block *block;
        struct kiln_block_id id;
        int r;

        kiln_mem_fail_at(n);
        r = block_write(io, batch, &opts, &id, NULL);
        failed = kiln_mem_failed();
        kiln_mem_fail_at(0);
        CHECK(failed || r == 0);
        if (r == 0) {
            CHECK_OK(kiln_block_open(io, block_path(&id), &block, NULL));
            CHECK_OK(kiln_block_verify(block, NULL));
            back = block_batch(block, NULL, NULL, NULL);
            block_check_same(batch, back);
            kiln_batch_unref(back);
            kiln_block_unref(block);
        }
        kiln_sim_free(io);
    }
    set_limits(usual);
    kiln_batch_unref(batch);
    free(w);
}

/* ---- compaction ---- */

static uint64_t cutoff_shop(void *context, struct kiln_str service)
{
    (void)context;
    return kiln_str_eq(service, KILN_STR("shop")) ? UINT64_MAX : 0;
}

static struct kiln_block *merged(struct kiln_io *io, struct kiln_block **blocks, uint32_t n,
                                 uint64_t (*cutoff)(void *context, struct kiln_str service))
{
    struct kiln_compact_opts opts = {.io = io,
                                     .tenant = KILN_STR("t"),
                                     .blocks = blocks,
                                     .n = n,
                                     .level = 1,
                                     .memory_bytes = BLOCK_MEMORY,
                                     .cutoff = cutoff};
    struct kiln_compact_result result;
    struct kiln_block *block;
    uint32_t bad;

    CHECK_OK(kiln_compact_blocks(&opts, &result, &bad, NULL));
    CHECK_OK(kiln_block_open(io, block_path(&result.id), &block, NULL));
    CHECK_OK(kiln_block_verify(block, NULL));
    return block;
}

TEST(rollup, a_merge_makes_them_and_leaves_out_what_goes)
{
    struct kiln_batch *batch = kiln_test_batch(
        (struct kiln_drawn[]){
            {.stacks = "a 5\n", .resource = "service.name=bank", .time_ns = T0},
            {.stacks = "b 7\n", .resource = "service.name=shop", .time_ns = T0},
        },
        2);
    struct kiln_io *io = kiln_sim_new();
    struct kiln_block *blocks[2], *both, *left;

    set_limits(tiny);
    blocks[0] = block_of(io, batch);
    blocks[1] = block_of(io, batch);
    both = merged(io, blocks, 2, NULL);
    CHECK_TEXT(rollup_text(both, batch, 0), "group 0\nday 0: 10, 2+0 profiles, 2 rows\n  a 10 10\n"
                                            "  tree, off by 0\n  total 0\n    a 10\n");
    CHECK_TEXT(rollup_text(both, batch, 1), "group 1\nday 0: 14, 2+0 profiles, 2 rows\n  b 14 14\n"
                                            "  tree, off by 0\n  total 0\n    b 14\n");
    left = merged(io, &both, 1, cutoff_shop);
    CHECK_TEXT(rollup_text(left, batch, 0), "group 0\nday 0: 10, 2+0 profiles, 2 rows\n  a 10 10\n"
                                            "  tree, off by 0\n  total 0\n    a 10\n");
    CHECK_TEXT(rollup_text(left, batch, 1), "none");
    set_limits(usual);
    kiln_block_unref(left);
    kiln_block_unref(both);
    kiln_block_unref(blocks[0]);
    kiln_block_unref(blocks[1]);
    kiln_sim_free(io);
    kiln_batch_unref(batch);
}

/* ---- bytes on disk ---- */

#define FIXTURES KILN_SOURCE_DIR "/tests/fixtures"
#define FIXTURE  "block-v1-rollups.kb"

static struct kiln_batch *fixture_batch(void)
{
    return kiln_test_batch(
        (struct kiln_drawn[]){
            {.stacks = "main;parse;read 3\nmain;lib.so+0x1234 2\n",
             .type = "cpu",
             .resource = "service.name=shop",
             .time_ns = T0 + 5},
            {.stacks = "main;parse;read 4\nmain;parse 1\n", .type = "cpu", .time_ns = T0 + HOUR},
            {.stacks = "main;parse;read 30\nmain;lib.so+0x1234 20\n",
             .type = "wall",
             .time_ns = T0 + 5},
            {.stacks = "main;parse;read 40\nmain;parse 10\n", .type = "wall", .time_ns = T0 + HOUR},
        },
        4);
}

/* Made by this program where KILN_WRITE_FIXTURE says. */
static void write_fixture(const char *path)
{
    struct kiln_batch *batch = fixture_batch();
    struct kiln_io *io = kiln_sim_new();
    struct kiln_block_write_opts opts = {
        .tenant = KILN_STR("t"), .level = 1, .memory_bytes = BLOCK_MEMORY};
    struct kiln_block_id id;
    FILE *file = fopen(path, "wb");
    void *data;
    size_t len;

    set_limits(tiny);
    CHECK_OK(block_write(io, batch, &opts, &id, NULL));
    set_limits(usual);
    CHECK_OK(kiln_io_get(io, block_path(&id), 1 << 20, &data, &len));
    assert_non_null(file);
    CHECK_EQ(fwrite(data, 1, len, file), len);
    CHECK_OK(fclose(file));
    kiln_free(data);
    kiln_sim_free(io);
    kiln_batch_unref(batch);
}

TEST(rollup, those_of_format_1_can_be_read)
{
    struct kiln_batch *batch = fixture_batch();
    struct kiln_block *block;
    struct kiln_io *io;

    if (getenv("KILN_WRITE_FIXTURE"))
        write_fixture(getenv("KILN_WRITE_FIXTURE"));
    CHECK_OK(kiln_io_open(FIXTURES, true, &io));
    CHECK_OK(kiln_block_open(io, FIXTURE, &block, NULL));
    CHECK_OK(kiln_block_verify(block, NULL));
    CHECK_TEXT(rollup_text(block, batch, 0),
               "group 0\n"
               "hour 0: 5, 1+0 profiles, 2 rows\n"
               "  main 0 5\n  parse 0 3\n  read 3 3\n  lib.so+0x1234 2 2\n"
               "  tree, off by 0\n"
               "  total 0\n    main 0\n      parse 0\n        read 3\n      lib.so+0x1234 2\n"
               "hour 1: 5, 1+0 profiles, 2 rows\n"
               "  main 0 5\n  parse 1 5\n  read 4 4\n"
               "  tree, off by 0\n"
               "  total 0\n    main 0\n      parse 1\n        read 4\n"
               "day 0: 10, 2+0 profiles, 4 rows\n"
               "  main 0 10\n  parse 1 8\n  read 7 7\n  lib.so+0x1234 2 2\n"
               "  tree, off by 0\n"
               "  total 0\n    main 0\n      parse 1\n        read 7\n      lib.so+0x1234 2\n"
               "group 1\n"
               "hour 0: 50, 1+0 profiles, 2 rows\n"
               "  main 0 50\n  parse 0 30\n  read 30 30\n  lib.so+0x1234 20 20\n"
               "  tree, off by 0\n"
               "  total 0\n    main 0\n      parse 0\n        read 30\n      lib.so+0x1234 20\n"
               "hour 1: 50, 1+0 profiles, 2 rows\n"
               "  main 0 50\n  parse 10 50\n  read 40 40\n"
               "  tree, off by 0\n"
               "  total 0\n    main 0\n      parse 10\n        read 40\n"
               "day 0: 100, 2+0 profiles, 4 rows\n"
               "  main 0 100\n  parse 10 80\n  read 70 70\n  lib.so+0x1234 20 20\n"
               "  tree, off by 0\n"
               "  total 0\n    main 0\n      parse 10\n        read 70\n      lib.so+0x1234 20\n");
    kiln_block_unref(block);
    kiln_io_close(io);
    kiln_batch_unref(batch);
}

TEST(rollup, every_flipped_bit_is_found)
{
    struct kiln_io *io, *sim = kiln_sim_new();
    uint32_t found = 0, n = 0;
    void *data;
    size_t len;

    CHECK_OK(kiln_io_open(FIXTURES, true, &io));
    CHECK_OK(kiln_io_get(io, FIXTURE, 1 << 20, &data, &len));
    for (size_t i = 0; i < 8 * len; i += 5, n++) {
        struct kiln_err err = {0};
        struct kiln_block *block;
        int r;

        ((unsigned char *)data)[i / 8] ^= (unsigned char)(1u << i % 8);
        CHECK_OK(kiln_io_put(sim, "x.kb", data, len));
        ((unsigned char *)data)[i / 8] ^= (unsigned char)(1u << i % 8);
        r = kiln_block_open(sim, "x.kb", &block, &err);
        if (r == 0) {
            r = kiln_block_verify(block, &err);
            kiln_block_unref(block);
        }
        found += r < 0 && err.text[0];
    }
    CHECK_EQ(found, n);
    kiln_free(data);
    kiln_io_close(io);
    kiln_sim_free(sim);
}
