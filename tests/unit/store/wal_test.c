/* SPDX-License-Identifier: Apache-2.0 */
#include "store/wal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "log_writer.h"
#include "test.h"

static char folder[64];
static struct kiln_log_writer writer;
static struct kiln_log_read back;

static struct kiln_io *start(void)
{
    struct kiln_io *io = NULL;

    snprintf(folder, sizeof(folder), "/tmp/kiln-wal-XXXXXX");
    CHECK(mkdtemp(folder));
    CHECK_OK(kiln_io_open(folder, false, &io));
    return io;
}

static int remove_segment(void *context, const char *name)
{
    struct kiln_io *io = context;
    char path[300];

    snprintf(path, sizeof(path), "wal/%s", name);
    return io->unlink(io, path);
}

static void stop(struct kiln_io *io)
{
    io->list(io, "wal", remove_segment, io);
    io->rmdir(io, "wal");
    io->unlink(io, "LOCK");
    kiln_io_close(io);
    CHECK_OK(rmdir(folder));
}

TEST(wal, what_was_appended_is_replayed_in_order)
{
    struct kiln_io *io = start();
    struct kiln_wal *wal;

    CHECK_OK(kiln_log_open(io, 0, &back, &wal));
    CHECK_EQ(back.n, 0);
    kiln_log_writer_init(&writer, wal);
    CHECK_OK(kiln_log_writer_append(&writer, 1));
    CHECK_OK(kiln_log_writer_append(&writer, 700));
    CHECK_EQ(kiln_wal_durable(wal), 701);
    kiln_wal_close(wal);
    CHECK_OK(kiln_log_open(io, 0, &back, &wal));
    CHECK_EQ(back.n, 701);
    CHECK(!kiln_log_compare(&writer, &back));
    CHECK_EQ(kiln_wal_durable(wal), 701);
    kiln_wal_close(wal);
    kiln_log_writer_done(&writer);
    stop(io);
}
