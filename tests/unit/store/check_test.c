/* SPDX-License-Identifier: Apache-2.0 */
#include "store/check.h"

#include <errno.h>

#include "base/clock.h"
#include "drawn.h"
#include "store_kit.h"
#include "test.h"

#define NOW (UINT64_C(1700000000) * KILN_NS_PER_S)

static void put(struct store_kit *kit, const char *stacks, uint64_t time_ns)
{
    struct kiln_drawn p = {.stacks = stacks, .time_ns = time_ns, .resource = "service.name=shop"};

    kit_put(kit, kiln_test_batch(&p, 1));
}

/* A store with a block, symbols, and three records in its log. */
static void begin(struct store_kit *kit)
{
    struct kiln_symbol_frame frame = {.name = KILN_STR("main")};
    struct kiln_symbol symbol = {.address = 1, .frames = &frame, .n = 1};

    kit_init(kit, NOW);
    put(kit, "main 1\n", NOW);
    CHECK_OK(kiln_store_flush(kit->engine, NULL));
    for (uint64_t i = 1; i <= 3; i++)
        put(kit, "main 2\n", NOW + i);
    CHECK_OK(kit->engine->ops->put_symbols(kit->engine, KILN_STR("anonymous"), KILN_STR("id"),
                                           &symbol, 1, NULL));
}

struct first {
    const char *folder;
    char path[200];
};

static int note_first(void *context, const char *name)
{
    struct first *first = context;

    if (!first->path[0] && !strstr(name, "covered"))
        snprintf(first->path, sizeof(first->path), "%s/%.120s", first->folder, name);
    return 0;
}

static const char *first_in(struct store_kit *kit, const char *folder)
{
    static struct first first;

    first = (struct first){.folder = folder};
    CHECK_OK(kit->io->list(kit->io, folder, note_first, &first));
    CHECK(first.path[0] != '\0');
    return first.path;
}

static void note_step(void *context, uint32_t done, uint32_t all)
{
    *(uint32_t *)context = done;
    CHECK(done <= all);
}

TEST(check, a_healthy_store_is_well_and_stays_as_it_is)
{
    struct kiln_store_check check;
    struct store_kit kit;
    uint32_t steps = 0;
    struct kiln_store_check_opts opts = {.progress = note_step, .context = &steps};
    uint64_t operations;

    begin(&kit);
    operations = kiln_sim_operations(kit.io);
    CHECK_OK(kiln_store_check(kit.io, &opts, &check, NULL));
    CHECK_EQ(kiln_sim_operations(kit.io), operations);
    CHECK_EQ(check.n_damages, 0);
    CHECK_EQ(check.blocks, 1);
    CHECK_EQ(check.profiles, 1);
    CHECK_EQ(check.records, 3);
    CHECK_EQ(check.symbols, 1);
    CHECK_EQ(steps, 3);
    kiln_store_check_done(&check);
    kit_done(&kit);
}

/* The damages a flipped bit makes; all of them name the file. */
static uint64_t damages_of(const char *folder, uint64_t offset)
{
    struct kiln_store_check check;
    struct store_kit kit;
    char path[200];
    uint64_t n;

    begin(&kit);
    snprintf(path, sizeof(path), "%s", first_in(&kit, folder));
    CHECK(kiln_sim_flip(kit.io, path, offset, 2));
    CHECK_OK(kiln_store_check(kit.io, NULL, &check, NULL));
    n = check.n_damages;
    for (uint32_t i = 0; i < check.n_told; i++)
        CHECK_TEXT(check.damages[i].path, path);
    kiln_store_check_done(&check);
    kit_done(&kit);
    return n;
}

TEST(check, every_damage_is_named_with_its_file)
{
    CHECK_EQ(damages_of("blocks/anonymous", 60), 1);
    CHECK_EQ(damages_of("blocks/anonymous", 3), 1);
    CHECK_EQ(damages_of("symbols/anonymous", 50), 1);
    CHECK_EQ(damages_of("wal", 100), 1);
}

TEST(check, what_is_no_store_or_a_newer_one_is_refused)
{
    struct kiln_io *io = kiln_sim_new();
    struct kiln_store_check check;
    struct kiln_err err = {0};

    CHECK_EQ(kiln_store_check(io, NULL, &check, &err), -ENOENT);
    CHECK_OK(kiln_io_put(io, "store.json", "{\"version\":2}", 13));
    err = (struct kiln_err){0};
    CHECK_EQ(kiln_store_check(io, NULL, &check, &err), KILN_E_UNSUPPORTED);
    CHECK_TEXT(err.text, "the store has format 2, this Kiln reads up to 1");
    kiln_sim_free(io);
}
