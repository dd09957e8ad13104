/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that everything leaves by: windows, flushes from many threads, its end. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "inproc/out/out.h"
#include "inproc/out/prepare.h"
#include "inproc/thread/stacks.h"
#include "inproc/thread/thread.h"
#include "test.h"

static void happen(void)
{
    uint64_t pcs[] = {(uint64_t)(uintptr_t)happen + 1};
    struct kiln_in_thread *thread = kiln_in_enter();
    struct kiln_in_record record;

    CHECK(thread);
    kiln_in_record_begin(&record, KILN_IN_BLOCK);
    record.stack = kiln_in_stack_id(pcs, 1);
    record.count = record.value = 1;
    CHECK_OK(kiln_in_ring_put(thread, &record));
    kiln_in_leave(thread);
}

/* How many files a folder has, which are removed with it. */
static uint32_t empty(const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    uint32_t n = 0;

    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.') {
            n++;
            CHECK_EQ(unlinkat(dirfd(dir), entry->d_name, 0), 0);
        }
    closedir(dir);
    CHECK_EQ(rmdir(folder), 0);
    return n;
}

static void set_up(const char *folder)
{
    CHECK_OK(kiln_in_threads_init(1));
    memset(&kiln_in_settings, 0, sizeof(kiln_in_settings));
    kiln_in_settings.depth = 128;
    kiln_in_settings.samples_max = 100;
    kiln_in_settings.profiles = KILN_PROFILE_LOCK;
    kiln_in_settings.export_interval_ms = 3600 * 1000;
    snprintf(kiln_in_settings.socket, sizeof(kiln_in_settings.socket), "%s/none", folder);
    kiln_in_on = KILN_IN_ON;
}

TEST(out_thread, a_window_becomes_files_whoever_asks_and_at_the_end)
{
    struct kiln_in_out_counts counts;
    char folder[] = "/tmp/kiln-out-XXXXXX";

    CHECK(mkdtemp(folder));
    set_up(folder);
    snprintf(kiln_in_settings.out_dir, sizeof(kiln_in_settings.out_dir), "%s", folder);
    CHECK_OK(kiln_in_out_start());
    happen();
    CHECK(kiln_in_out_flush(60000) < 0); /* nobody is at the socket; files are there */
    kiln_in_out_counts(&counts);
    CHECK_EQ(counts.tries, 1);
    CHECK_EQ(counts.requests, 0);
    happen();
    kiln_in_out_stop();
    CHECK_EQ(empty(folder), 4);
    CHECK_EQ(kiln_in_out_flush(1000), 0); /* nothing runs */
}

static void *flush_often(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20; i++)
        (void)kiln_in_out_flush(50);
    return NULL;
}

TEST(out_thread, flushes_and_stops_may_meet)
{
    char folder[] = "/tmp/kiln-out-XXXXXX";
    pthread_t threads[4];

    CHECK(mkdtemp(folder));
    set_up(folder);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, flush_often, NULL), 0);
    for (int i = 0; i < 20; i++) {
        CHECK_OK(kiln_in_out_start());
        happen();
        kiln_in_out_stop();
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    empty(folder);
}
