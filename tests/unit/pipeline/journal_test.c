/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a queue that were cut off or damaged anywhere: what is whole comes back. */
#include "pipeline/exporters/journal.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "folder.h"
#include "test.h"

enum { REQUESTS = 3 };

static const char *const bodies[REQUESTS] = {"the first", "the second one", "and the third"};

struct found {
    uint32_t n;
    char said[REQUESTS * 32];
    struct kiln_journal_place places[REQUESTS];
};

static int find(void *context, const struct kiln_spooled *head, size_t body_bytes,
                const struct kiln_journal_place *place)
{
    struct found *found = context;

    CHECK(found->n < REQUESTS);
    CHECK_EQ(head->samples, body_bytes);
    found->places[found->n++] = *place;
    return 0;
}

static struct kiln_journal *open_journal(const char *folder, struct found *found)
{
    const struct kiln_journal_opts opts = {
        .dir = folder, .no_sync = true, .found = find, .context = found};
    struct kiln_journal *journal;
    struct kiln_buf body;

    *found = (struct found){0};
    CHECK_OK(kiln_journal_open(&opts, &journal, NULL));
    kiln_buf_init(&body, 4096);
    for (uint32_t i = 0; i < found->n; i++) {
        CHECK_OK(kiln_journal_read(journal, &found->places[i], &body));
        kiln_buf_putc(&body, ',');
    }
    CHECK(body.len < sizeof(found->said));
    memcpy(found->said, body.ptr ? body.ptr : "", body.len);
    kiln_buf_done(&body);
    return journal;
}

struct put {
    struct kiln_journal_put put; /* first */
    _Atomic bool stored;
};

static void stored(struct kiln_journal_put *put, int code)
{
    CHECK_EQ(code, 0);
    atomic_store(&((struct put *)put)->stored, true);
}

static struct kiln_journal_place put(struct kiln_journal *journal, const char *text)
{
    struct kiln_export_item item = {.head.samples = strlen(text)};
    struct kiln_export_item *items = &item;
    struct kiln_journal_place place = {0};
    struct put request = {
        .put = {.items = &items, .places = &place, .n = 1, .stored = stored},
    };

    item.body = (char *)(uintptr_t)text;
    item.len = strlen(text);
    kiln_journal_put(journal, &request.put);
    while (!atomic_load(&request.stored))
        sched_yield();
    return place;
}

/* The only file of a folder with REQUESTS in it; the caller frees it. */
static char *make_file(char folder[FOLDER_NAME], char path[128], size_t *ret_n)
{
    struct found found;
    struct kiln_journal *journal;

    folder_make(folder);
    journal = open_journal(folder, &found);
    CHECK_EQ(found.n, 0);
    for (int i = 0; i < REQUESTS; i++)
        put(journal, bodies[i]);
    kiln_journal_close(journal);
    CHECK_EQ(folder_list(folder, ".log", path, 128), 1);
    return kiln_test_read(path, ret_n);
}

/* Puts these bytes into the file and removes all others. */
static void lay(const char *folder, const char *path, const char *bytes, size_t n)
{
    char other[128];
    FILE *file;

    while (folder_list(folder, ".log", other, sizeof(other)) ||
           folder_list(folder, ".damaged", other, sizeof(other)))
        CHECK_OK(unlink(other));
    file = fopen(path, "wb");
    CHECK(file);
    CHECK_EQ(fwrite(bytes, 1, n, file), n);
    CHECK_OK(fclose(file));
}

TEST(journal, wherever_a_file_is_cut_off_all_before_it_comes_back)
{
    char folder[FOLDER_NAME], path[128];
    size_t n;
    char *bytes = make_file(folder, path, &n);
    uint32_t before = 0;

    for (size_t cut = 0; cut <= n; cut++) {
        struct found found, again;
        struct kiln_journal *journal;

        lay(folder, path, bytes, cut);
        journal = open_journal(folder, &found);
        CHECK(found.n >= before && found.n <= before + 1);
        CHECK_EQ(kiln_journal_damaged(journal), 0);
        kiln_journal_close(journal);
        before = found.n;
        journal = open_journal(folder, &again); /* it is not the last file any more */
        CHECK_TEXT(again.said, found.said);
        CHECK_EQ(kiln_journal_damaged(journal), 0);
        kiln_journal_close(journal);
    }
    CHECK_EQ(before, REQUESTS);
    free(bytes);
    folder_remove(folder);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(journal, wherever_a_byte_is_wrong_all_other_requests_come_back)
{
    char folder[FOLDER_NAME], path[128], aside[128];
    size_t n;
    char *bytes = make_file(folder, path, &n);

    for (size_t at = 0; at < n; at++) {
        struct found found, again;
        struct kiln_journal *journal;

        bytes[at] ^= 0x40;
        lay(folder, path, bytes, n);
        bytes[at] ^= 0x40;
        journal = open_journal(folder, &found);
        CHECK(found.n >= REQUESTS - 1);
        CHECK_EQ(kiln_journal_damaged(journal), 1);
        CHECK_EQ(folder_list(folder, ".damaged", aside, sizeof(aside)), 1);
        kiln_journal_close(journal);
        journal = open_journal(folder, &again);
        CHECK_TEXT(again.said, found.said);
        CHECK_EQ(kiln_journal_damaged(journal), 0);
        kiln_journal_close(journal);
    }
    free(bytes);
    folder_remove(folder);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(journal, what_is_done_with_does_not_come_back)
{
    char folder[FOLDER_NAME];
    struct found found;
    struct kiln_journal *journal;
    struct kiln_journal_place places[REQUESTS];

    folder_make(folder);
    journal = open_journal(folder, &found);
    for (int i = 0; i < REQUESTS; i++)
        places[i] = put(journal, bodies[i]);
    kiln_journal_done(journal, &places[1]);
    kiln_journal_close(journal);
    journal = open_journal(folder, &found);
    CHECK_TEXT(found.said, "the first,and the third,");
    kiln_journal_close(journal);
    journal = open_journal(folder, &found); /* where that was said, is gone */
    CHECK_TEXT(found.said, "the first,and the third,");
    kiln_journal_close(journal);
    folder_remove(folder);
    CHECK_EQ(kiln_mem_live(), 0);
}

static off_t bytes_of(const char *path)
{
    struct stat file;

    CHECK_OK(stat(path, &file));
    return file.st_size;
}

/* Ends as if it were killed, once what is done with stands in the file: nothing more is put. */
static void work_and_die(const char *folder)
{
    struct kiln_journal_place places[REQUESTS];
    struct found found;
    struct kiln_journal *journal = open_journal(folder, &found);
    char path[128];
    off_t before;

    for (int i = 0; i < REQUESTS; i++)
        places[i] = put(journal, bodies[i]);
    CHECK_EQ(folder_list(folder, ".log", path, sizeof(path)), 1);
    before = bytes_of(path);
    kiln_journal_done(journal, &places[0]);
    kiln_journal_done(journal, &places[2]);
    while (bytes_of(path) == before)
        usleep(1000);
    kill(getpid(), SIGKILL);
}

TEST(journal, what_is_done_with_is_noted_though_nothing_follows)
{
    char folder[FOLDER_NAME];
    struct kiln_journal *journal;
    struct found found;
    pid_t child;
    int status;

    folder_make(folder);
    child = fork();
    CHECK(child >= 0);
    if (child == 0)
        work_and_die(folder);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    journal = open_journal(folder, &found);
    CHECK_TEXT(found.said, "the second one,");
    kiln_journal_close(journal);
    folder_remove(folder);
    CHECK_EQ(kiln_mem_live(), 0);
}
