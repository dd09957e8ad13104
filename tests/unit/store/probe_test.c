/* SPDX-License-Identifier: Apache-2.0 */
/* Whether writes work, asked while nothing comes in (the rest of it: tests/cli/ready_test.py). */
#include <errno.h>

#include "base/clock.h"
#include "drawn.h"
#include "store_kit.h"
#include "test.h"

#define NOW (UINT64_C(1700000000) * KILN_NS_PER_S)

/* A kit whose store has just begun: what was tried last is remembered for two seconds. */
static struct store_kit kit;

static struct kiln_err probed(int code)
{
    struct kiln_err err = {0};

    CHECK_EQ(kiln_store_probe(kit.engine, &err), code);
    return err;
}

TEST(probe, writes_that_work_leave_nothing_behind)
{
    kit_init(&kit, NOW);
    probed(0);
    CHECK_EQ(kit.io->open(kit.io, "wal/probe", 0), -ENOENT);
    kit_reopen(&kit);
    probed(0);
    kit_done(&kit);
}

TEST(probe, a_read_only_file_system_is_found)
{
    kit_init(&kit, NOW);
    kiln_sim_fail_at(kit.io, 1, -EROFS);
    CHECK_TEXT(probed(-EROFS).text, "cannot be written: Read-only file system");
    CHECK_TEXT(probed(-EROFS).where, "wal/"); /* at once again: remembered */
    kit_done(&kit);
}

TEST(probe, a_full_disk_is_found)
{
    kit_init(&kit, NOW);
    kiln_sim_limit(kit.io, kiln_sim_used(kit.io) + 100);
    CHECK_TEXT(probed(-ENOSPC).text, "cannot be written: No space left on device");
    kiln_sim_limit(kit.io, UINT64_MAX);
    kit_done(&kit);
}

TEST(probe, a_disk_that_cannot_sync_is_found)
{
    kit_init(&kit, NOW);
    kiln_sim_fail_syncs(kit.io, 1, -EIO);
    CHECK_TEXT(probed(-EIO).where, "wal/");
    kit_done(&kit);
}

TEST(probe, blocks_that_cannot_be_written_are_told)
{
    struct kiln_drawn p = {.stacks = "a 1\n", .time_ns = NOW};
    struct kiln_err err = {0};

    kit_init(&kit, NOW);
    kit_put(&kit, kiln_test_batch(&p, 1));
    kiln_store_settle(kit.engine);
    kiln_sim_fail_at(kit.io, 1, -EIO);
    CHECK_EQ(kiln_store_flush(kit.engine, &err), -EIO);
    CHECK_TEXT(probed(-EIO).where, "blocks/");
    CHECK_OK(kiln_store_flush(kit.engine, &err));
    probed(0);
    kit_done(&kit);
}
