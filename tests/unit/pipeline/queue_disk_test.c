/* SPDX-License-Identifier: Apache-2.0 */
/* Queues on disk: what they outlive, and what they do where there is no room. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "folder.h"
#include "pipeline/exporters/journal.h"
#include "queue_kit.h"
#include "test.h"

TEST(queue_disk, outlives_the_process)
{
    char folder[FOLDER_NAME];
    struct fixture f = {.fake.hold = true, .opts = {.storage = folder, .size = 100}};

    folder_make(folder);
    start(&f);
    for (int i = 0; i < 40; i++)
        send(&f, "main;read 1\nmain;write 2\n");
    wait_until_ended(&f, 40);
    CHECK_EQ(f.outcome.code, 0);
    CHECK_EQ(queued(&f), 80);
    finish(&f.fake, take_held(&f.fake)); /* one of them is sent */
    CHECK_EQ(sent(&f), 2);
    stop_on_disk(&f, 0);

    f = (struct fixture){.fake.hold = true, .opts = {.storage = folder, .size = 100}};
    start(&f);
    CHECK_EQ(queued(&f), 78);
    check_conservation(&f);
    f.fake.hold = false;
    finish(&f.fake, take_held(&f.fake));
    finish(&f.fake, take_held(&f.fake));
    wait_until_sent(&f, 78);
    CHECK_EQ(f.fake.samples, 78);
    stop_on_disk(&f, PATIENCE_NS);

    f = (struct fixture){.opts = {.storage = folder, .size = 100}};
    start(&f);
    CHECK_EQ(queued(&f), 0);
    stop_on_disk(&f, 0);
    folder_remove(folder);
}

/* A child that is killed as soon as enough was acknowledged: none of that is lost. */
TEST(queue_disk, loses_nothing_to_kill_9)
{
    char folder[FOLDER_NAME];
    _Atomic int *acknowledged =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct fixture f = {.opts = {.storage = folder, .size = 100000}};
    int status, n;
    pid_t child;

    folder_make(folder);
    child = fork();
    if (child == 0) {
        struct fixture in = {.fake.hold = true, .opts = {.storage = folder, .size = 100000}};

        start(&in);
        for (;;) {
            send(&in, "main 1\n");
            *acknowledged = in.ended;
        }
    }
    while (*acknowledged < 50)
        sched_yield();
    CHECK_OK(kill(child, SIGKILL));
    CHECK_EQ(waitpid(child, &status, 0), child);
    n = *acknowledged;
    start(&f);
    wait_until_sent(&f,
                    value(&f, KILN_COUNTER, "kiln_exporter_accepted_profile_samples_total", NULL));
    CHECK(sent(&f) >= n);
    stop_on_disk(&f, PATIENCE_NS);
    munmap((void *)acknowledged, 4096);
    folder_remove(folder);
}

/* Turns a byte of the middle of the only file over, or cuts its end off. */
static void harm(const char *folder, bool cut)
{
    char path[512];
    size_t n;
    char *bytes;
    FILE *file;

    snprintf(path, sizeof(path), "%s/0000000000000001.log", folder);
    bytes = kiln_test_read(path, &n);
    CHECK(bytes && n > 200);
    bytes[n / 2] ^= 1;
    file = fopen(path, "wb");
    CHECK(file);
    if (cut)
        bytes[n / 2] ^= 1;
    CHECK_EQ(fwrite(bytes, 1, cut ? n - 3 : n, file), cut ? n - 3 : n);
    fclose(file);
    free(bytes);
}

TEST(queue_disk, sets_damaged_files_aside_and_sends_the_rest)
{
    for (int cut = 0; cut < 2; cut++) {
        char folder[FOLDER_NAME];
        struct fixture f = {.fake.hold = true, .opts = {.storage = folder, .size = 100}};
        char path[512];

        folder_make(folder);
        start(&f);
        for (int i = 0; i < 9; i++)
            send(&f, "main 1\n");
        wait_until_ended(&f, 9);
        stop_on_disk(&f, 0);
        harm(folder, cut);
        f = (struct fixture){.opts = {.storage = folder, .size = 100}};
        start(&f);
        wait_until_sent(&f, 8);
        /* A torn end is no damage. */
        CHECK_EQ(queue_counter(&f, "kiln_exporter_damaged_files_total"), cut ? 0 : 1);
        snprintf(path, sizeof(path), "%s/0000000000000001.damaged", folder);
        CHECK_EQ(access(path, F_OK), cut ? -1 : 0);
        stop_on_disk(&f, PATIENCE_NS);
        folder_remove(folder);
    }
}

TEST(queue_disk, is_bounded)
{
    char folder[FOLDER_NAME];
    struct kiln_journal_room room = {.max = 4096};
    struct fixture f = {.fake.hold = true,
                        .opts = {.storage = folder, .size = 1000, .room = &room}};
    int sent;

    folder_make(folder);
    start(&f);
    for (sent = 0; sent < 100; sent++)
        send(&f, "main 1\n");
    wait_until_ended(&f, sent);
    CHECK(failed(&f) > 50);
    /* What is written together is refused together: one by one, what is left of the room fills. */
    do {
        send(&f, "main 1\n");
        wait_until_ended(&f, ++sent);
    } while (f.outcome.code == 0 && sent < 200);
    CHECK_EQ(f.outcome.code, -ENOSPC); /* which may be tried again */
    CHECK(failed(&f) + queued(&f) == sent);
    stop_on_disk(&f, 0);
    CHECK_EQ(room.used, 0);
    folder_remove(folder);
}

/* One whose disk is full leaves its room in the queue to the next, and that may have more luck. */
TEST(queue_disk, turns_all_away_where_there_is_no_room)
{
    char folder[FOLDER_NAME];
    struct kiln_journal_room room = {.max = 64}; /* less than a request */
    struct fixture f = {.opts = {.storage = folder, .size = 2, .room = &room}};

    folder_make(folder);
    start(&f);
    for (int i = 0; i < 10; i++)
        send(&f, "main 1\n");
    wait_until_ended(&f, 10);
    CHECK_EQ(f.outcome.code, -ENOSPC);
    CHECK_EQ(failed(&f), 10);
    CHECK_EQ(queue_gauge(&f, "kiln_exporter_waiting_deliveries"), 0);
    stop_on_disk(&f, 0);
    folder_remove(folder);
}

TEST(queue_disk, goes_on_where_a_full_disk_has_room_again)
{
    char folder[FOLDER_NAME];
    struct kiln_journal_room room = {.max = 1024};
    struct fixture f = {.fake.hold = true, .opts = {.storage = folder, .size = 100, .room = &room}};
    int n = 0;

    folder_make(folder);
    start(&f);
    do {
        send(&f, "main 1\n");
        wait_until_ended(&f, ++n);
    } while (f.outcome.code == 0 && n < 100);
    CHECK_EQ(f.outcome.code, -ENOSPC);
    f.fake.hold = false;
    finish(&f.fake, take_held(&f.fake));
    finish(&f.fake, take_held(&f.fake));
    wait_until_sent(&f, n - 1);
    send(&f, "main 1\n");
    wait_until_ended(&f, n + 1);
    CHECK_EQ(f.outcome.code, 0);
    wait_until_sent(&f, n);
    CHECK(room.used <= room.max);
    stop_on_disk(&f, PATIENCE_NS);
    folder_remove(folder);
}

/* Behind one that waits for another try, the disk does not fill with what was sent. */
TEST(queue_disk, one_that_is_stuck_holds_no_more_than_its_file)
{
    char folder[FOLDER_NAME], stacks[1100];
    struct kiln_journal_room room = {.max = 512 << 10};
    struct fixture f = {.fake.hold = true,
                        .opts = {.storage = folder, .size = 100, .room = &room, .no_sync = true}};

    folder_make(folder);
    snprintf(stacks, sizeof(stacks), "main;%01000d 1\n", 0);
    start(&f);
    send(&f, stacks);
    while (f.fake.n_held < 1)
        sched_yield();
    f.fake.hold = false;
    for (int i = 1; i <= 1000; i++) {
        send(&f, stacks);
        wait_until_ended(&f, i + 1);
        CHECK_EQ(f.outcome.code, 0);
        wait_until_sent(&f, i);
    }
    CHECK_EQ(queued(&f), 1);
    finish(&f.fake, take_held(&f.fake));
    stop_on_disk(&f, PATIENCE_NS);
    folder_remove(folder);
}
