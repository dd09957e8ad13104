/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block is drawn as "tenant: service from-to size, service from-to size", times in days; fates
 * are read back one letter a block: k(eep), r(ewrite), d(rop).
 */
#include "base/clock.h"
#include "store/retain.h"
#include "test.h"

#define DAY (24 * 3600 * KILN_NS_PER_S)

enum { BLOCKS_MAX = 8, PARTS_MAX = 4 };

struct drawn {
    struct kiln_block_info infos[BLOCKS_MAX];
    struct kiln_retain_part parts[BLOCKS_MAX][PARTS_MAX];
    struct kiln_retain_block blocks[BLOCKS_MAX];
    char names[BLOCKS_MAX][PARTS_MAX + 1][16];
    uint32_t n;
};

static uint64_t days(double d)
{
    return (uint64_t)(d * 86400) * KILN_NS_PER_S;
}

static const char *draw_part(struct drawn *d, const char *text)
{
    struct kiln_retain_block *block = &d->blocks[d->n];
    struct kiln_retain_part *part = &d->parts[d->n][block->n_parts];
    struct kiln_block_info *info = &d->infos[d->n];
    char *name = d->names[d->n][block->n_parts + 1];
    double from, to;
    unsigned bytes;
    int used = 0;

    CHECK_EQ(sscanf(text, " %15s %lf-%lf %u%n", name, &from, &to, &bytes, &used), 4);
    *part = (struct kiln_retain_part){kiln_str_of(name), days(from), days(to), bytes, 0};
    info->bytes += bytes;
    if (block->n_parts == 0 || part->min_ns < info->min_ns)
        info->min_ns = part->min_ns;
    info->max_ns = part->max_ns > info->max_ns ? part->max_ns : info->max_ns;
    block->n_parts++;
    return text + used;
}

static void draw(struct drawn *d, const char *const *texts)
{
    *d = (struct drawn){0};
    for (; texts[d->n]; d->n++) {
        char *tenant = d->names[d->n][0];
        const char *at = strchr(texts[d->n], ':');

        snprintf(tenant, sizeof(d->names[0][0]), "%.*s", (int)(at - texts[d->n]), texts[d->n]);
        d->infos[d->n].tenant = kiln_str_of(tenant);
        d->infos[d->n].id.bytes[15] = (uint8_t)d->n;
        d->blocks[d->n] =
            (struct kiln_retain_block){.info = &d->infos[d->n], .parts = d->parts[d->n]};
        do {
            at = draw_part(d, at + 1);
        } while (*at == ',');
    }
}

#define BLOCKS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const char *fates(const char *const *texts, const struct kiln_retain_opts *opts)
{
    static char letters[BLOCKS_MAX + 1];
    struct drawn d;

    draw(&d, texts);
    CHECK_OK(kiln_retain_decide(opts, d.blocks, d.n));
    for (uint32_t i = 0; i < d.n; i++)
        letters[i] = "krd"[d.blocks[i].fate];
    letters[d.n] = '\0';
    return letters;
}

TEST(retain, a_block_goes_when_its_last_profile_is_out)
{
    struct kiln_retain_opts opts = {.now_ns = days(100)};

    CHECK_TEXT(fates(BLOCKS("a: x 80-85.9 10", "a: x 80-86.1 10", "a: x 99-100 10"), &opts), "dkk");
    opts.retention.age_ns = DAY;
    CHECK_TEXT(fates(BLOCKS("a: x 97-98 10", "a: x 98-99.5 10", "a: x 99-100 10"), &opts), "dkk");
}

TEST(retain, a_clock_before_the_age_keeps_all)
{
    struct kiln_retain_opts opts = {.now_ns = days(3)};

    CHECK_TEXT(fates(BLOCKS("a: x 0-1 10"), &opts), "k");
}

TEST(retain, the_most_specific_rule_counts)
{
    struct kiln_retention retention = {.age_ns = 10 * DAY};
    struct kiln_retention_rule rules[] = {
        {"a", "x", 1 * DAY, 0}, {NULL, "x", 2 * DAY, 0}, {"a", NULL, 30 * DAY, 0}};
    struct kiln_str a = KILN_STR("a"), b = KILN_STR("b"), x = KILN_STR("x"), y = KILN_STR("y");

    CHECK_EQ(kiln_retain_age_ns(&retention, rules, 3, a, x), 1 * DAY);
    CHECK_EQ(kiln_retain_age_ns(&retention, rules, 3, b, x), 2 * DAY);
    CHECK_EQ(kiln_retain_age_ns(&retention, rules, 3, a, y), 30 * DAY);
    CHECK_EQ(kiln_retain_age_ns(&retention, rules, 3, b, y), 10 * DAY);
    CHECK_EQ(kiln_retain_age_ns(&(struct kiln_retention){0}, NULL, 0, b, y), 14 * DAY);
}

TEST(retain, a_block_of_which_a_quarter_is_out_is_rewritten)
{
    struct kiln_retention_rule rule = {NULL, "x", DAY, 0};
    struct kiln_retain_opts opts = {.now_ns = days(100), .rules = &rule, .n_rules = 1};

    CHECK_TEXT(fates(BLOCKS("a: x 95-96 25, y 95-96 75", "a: x 95-96 24, y 95-96 76",
                            "a: x 95-96 10", "a: y 95-96 10"),
                     &opts),
               "rkdk");
}

TEST(retain, a_mix_of_old_and_new_is_rewritten_and_what_goes_tomorrow_is_not)
{
    struct kiln_retain_opts opts = {.now_ns = days(100)};

    CHECK_TEXT(fates(BLOCKS("a: x 80-99 100", "a: x 80-86.5 100", "a: x 85-95 100"), &opts), "rkk");
}

TEST(retain, by_bytes_the_oldest_goes_first)
{
    struct kiln_retain_opts opts = {.now_ns = days(100), .retention.bytes = 25};
    const char *const *blocks = BLOCKS("a: x 98-99 10", "b: x 95-96 10", "a: x 99-100 10");

    CHECK_TEXT(fates(blocks, &opts), "kdk");
    opts.retention.bytes = 30;
    CHECK_TEXT(fates(blocks, &opts), "kkk");
    opts.retention.bytes = 5;
    CHECK_TEXT(fates(blocks, &opts), "ddd");
}

TEST(retain, a_tenant_is_bounded_by_itself)
{
    struct kiln_retention_rule rule = {"a", NULL, 0, 10};
    struct kiln_retain_opts opts = {.now_ns = days(100), .rules = &rule, .n_rules = 1};
    const char *const *blocks =
        BLOCKS("a: x 98-99 10", "b: x 95-96 10", "a: x 99-100 10", "b: x 99-100 10");

    CHECK_TEXT(fates(blocks, &opts), "dkkk");
    rule.tenant = NULL;
    CHECK_TEXT(fates(blocks, &opts), "ddkk");
}

TEST(retain, a_service_is_bounded_inside_its_blocks)
{
    struct kiln_retention_rule rule = {NULL, "x", 0, 20};
    struct kiln_retain_opts opts = {.now_ns = days(100), .rules = &rule, .n_rules = 1};

    CHECK_TEXT(fates(BLOCKS("a: x 95-96 10, y 95-96 10", "a: x 96-97 10", "a: x 97-98 10",
                            "a: y 97-98 10"),
                     &opts),
               "rkkk");
    CHECK_TEXT(fates(BLOCKS("a: x 95-96 10", "a: x 96-97 10", "a: x 97-98 11"), &opts), "ddk");
}

TEST(retain, the_disk_keeps_a_fifth_of_what_the_store_could_have)
{
    struct kiln_retain_opts opts = {.now_ns = days(100), .disk_free = 0, .disk_total = 1000};
    const char *const *blocks =
        BLOCKS("a: x 97-98 100", "a: x 95-96 100", "a: x 96-97 100", "a: x 98-99 100");

    CHECK_TEXT(fates(blocks, &opts), "kdkk");
    opts.disk_free = 100;
    CHECK_TEXT(fates(blocks, &opts), "kkkk");
    opts.retention.disk_percent = 50;
    CHECK_TEXT(fates(blocks, &opts), "kddk");
}
