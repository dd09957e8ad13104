/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/exporters/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "folder.h"
#include "test.h"

static const struct kiln_spooled head = {
    .compression = KILN_ZSTD, .json = true, .profiles = 3, .samples = 70, .made_ns = 5};

/* A spool in a folder of its own, at first not there. */
struct fixture {
    char top[FOLDER_NAME], dir[FOLDER_NAME + 16];
    struct kiln_spool *spool;
    struct kiln_buf file;
    uint32_t dropped;
    uint64_t dropped_samples;
};

static void start(struct fixture *f, uint64_t bytes_max)
{
    struct kiln_err err = {0};

    *f = (struct fixture){0};
    folder_make(f->top);
    snprintf(f->dir, sizeof(f->dir), "%s/a/spool", f->top);
    kiln_buf_init(&f->file, 1 << 20);
    CHECK_OK(kiln_spool_open(f->dir, bytes_max, &f->spool, &err));
}

static void reopen(struct fixture *f, uint64_t bytes_max)
{
    struct kiln_err err = {0};

    kiln_spool_close(f->spool);
    CHECK_OK(kiln_spool_open(f->dir, bytes_max, &f->spool, &err));
}

static void finish(struct fixture *f)
{
    kiln_spool_close(f->spool);
    kiln_buf_done(&f->file);
    folder_remove(f->top);
    CHECK_EQ(kiln_mem_live(), 0);
}

static void on_drop(void *context, const struct kiln_spooled *gone)
{
    struct fixture *f = context;

    f->dropped++;
    f->dropped_samples += gone->samples;
}

static int put(struct fixture *f, const char *body)
{
    const struct kiln_spool_drops drops = {on_drop, f};

    return kiln_spool_put(f->spool, &head, kiln_str_of(body), &drops);
}

/* Every body, oldest first, with a space behind each. */
static const char *bodies(struct fixture *f)
{
    static char text[256];
    size_t n = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < kiln_spool_files(f->spool); i++) {
        struct kiln_spooled got;
        struct kiln_str body;
        int r = kiln_spool_get(f->spool, i, &f->file, &got, &body);

        if (r < 0)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "(%d) ", r);
        else
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%.*s ", KILN_STR_ARG(body));
    }
    return text;
}

/* The name of the only file of a request, in a static buffer. */
static const char *only_file(const struct fixture *f)
{
    static char path[512];

    CHECK_EQ(folder_list(f->dir, ".otlp", path, sizeof(path)), 1);
    return path;
}

TEST(spool, gives_back_what_was_put_oldest_first_also_after_a_restart)
{
    struct kiln_spooled got;
    struct kiln_str body;
    struct fixture f;

    start(&f, 1000);
    CHECK_OK(put(&f, "one"));
    CHECK_OK(put(&f, "two"));
    CHECK_OK(put(&f, "three"));
    CHECK_TEXT(bodies(&f), "one two three ");
    reopen(&f, 1000);
    CHECK_EQ(kiln_spool_files(f.spool), 3);
    CHECK_EQ(kiln_spool_bytes(f.spool), 3 * 48 + 11);
    CHECK_TEXT(bodies(&f), "one two three ");
    CHECK_OK(kiln_spool_get(f.spool, 1, &f.file, &got, &body));
    CHECK_EQ(got.compression, KILN_ZSTD);
    CHECK(got.json);
    CHECK_EQ(got.profiles, 3);
    CHECK_EQ(got.samples, 70);
    CHECK_EQ(got.made_ns, 5);
    finish(&f);
}

TEST(spool, keeps_the_order_when_the_clock_goes_back)
{
    struct fixture f;

    start(&f, 1000);
    kiln_clock_set(2000);
    CHECK_OK(put(&f, "a"));
    kiln_clock_set(1000);
    CHECK_OK(put(&f, "b"));
    CHECK_OK(put(&f, "c"));
    kiln_clock_set(0);
    reopen(&f, 1000);
    CHECK_TEXT(bodies(&f), "a b c ");
    finish(&f);
}

TEST(spool, removes_from_anywhere)
{
    struct fixture f;

    start(&f, 1000);
    for (char c[2] = "a"; c[0] <= 'e'; c[0]++)
        CHECK_OK(put(&f, c));
    kiln_spool_remove(f.spool, 2);
    CHECK_TEXT(bodies(&f), "a b d e ");
    kiln_spool_remove(f.spool, 0);
    kiln_spool_remove(f.spool, 2);
    CHECK_TEXT(bodies(&f), "b d ");
    CHECK_OK(put(&f, "f"));
    reopen(&f, 1000);
    CHECK_TEXT(bodies(&f), "b d f ");
    while (kiln_spool_files(f.spool))
        kiln_spool_remove(f.spool, 0);
    CHECK_EQ(kiln_spool_bytes(f.spool), 0);
    CHECK_OK(put(&f, "g"));
    CHECK_TEXT(bodies(&f), "g ");
    finish(&f);
}

TEST(spool, lets_the_oldest_go_when_it_is_full_and_says_so)
{
    struct fixture f;

    start(&f, 3 * 49);
    for (char c[2] = "a"; c[0] <= 'e'; c[0]++)
        CHECK_OK(put(&f, c));
    CHECK_TEXT(bodies(&f), "c d e ");
    CHECK_EQ(f.dropped, 2);
    CHECK_EQ(f.dropped_samples, 140);
    CHECK_EQ(kiln_spool_bytes(f.spool), 3 * 49);
    CHECK_EQ(kiln_spool_put(f.spool, &head, (struct kiln_str){f.dir, 3 * 49}, NULL), KILN_E_LIMIT);
    CHECK_TEXT(bodies(&f), "c d e ");
    finish(&f);
}

TEST(spool, many_come_and_go)
{
    struct fixture f;

    start(&f, 10 * 49);
    for (int i = 0; i < 500; i++) {
        CHECK_OK(put(&f, "x"));
        if (i % 3 == 0)
            kiln_spool_remove(f.spool, 0);
    }
    CHECK_EQ(kiln_spool_files(f.spool), 10);
    CHECK_TEXT(bodies(&f), "x x x x x x x x x x ");
    finish(&f);
}

TEST(spool, knows_a_torn_file_wherever_it_is_torn)
{
    struct kiln_spooled got;
    struct kiln_str body;
    struct kiln_buf file;

    kiln_buf_init(&file, 1 << 16);
    kiln_spooled_encode(&head, KILN_STR("body"), &file);
    CHECK_EQ(file.len, 52);
    CHECK_OK(kiln_spooled_decode(kiln_buf_str(&file), &got, &body));
    CHECK_STR(body, "body");
    for (size_t n = 0; n < file.len; n++)
        CHECK(kiln_spooled_decode((struct kiln_str){file.ptr, n}, &got, &body) < 0);
    for (size_t n = 0; n < file.len; n++) {
        file.ptr[n] ^= 4;
        CHECK(kiln_spooled_decode(kiln_buf_str(&file), &got, &body) < 0);
        file.ptr[n] ^= 4;
    }
    kiln_buf_done(&file);
}

TEST(spool, reads_a_file_that_was_cut_short_as_torn_and_one_that_is_gone_as_gone)
{
    struct kiln_spooled got;
    struct kiln_str body;
    struct fixture f;

    start(&f, 1000);
    CHECK_OK(put(&f, "whole"));
    CHECK_OK(truncate(only_file(&f), 50));
    CHECK_EQ(kiln_spool_get(f.spool, 0, &f.file, &got, &body), KILN_E_TRUNCATED);
    CHECK_OK(unlink(only_file(&f)));
    CHECK_EQ(kiln_spool_get(f.spool, 0, &f.file, &got, &body), -ENOENT);
    kiln_spool_remove(f.spool, 0);
    CHECK_EQ(kiln_spool_files(f.spool), 0);
    finish(&f);
}

TEST(spool, is_for_its_owner_alone)
{
    struct stat about;
    struct fixture f;

    start(&f, 1000);
    CHECK_OK(put(&f, "x"));
    CHECK_OK(stat(f.dir, &about));
    CHECK_EQ(about.st_mode & 0777, 0700);
    CHECK_OK(stat(only_file(&f), &about));
    CHECK_EQ(about.st_mode & 0777, 0600);
    CHECK_OK(chmod(f.dir, 0755));
    reopen(&f, 1000);
    CHECK_OK(stat(f.dir, &about));
    CHECK_EQ(about.st_mode & 0777, 0700);
    finish(&f);
}

/* Opens a folder of such a mode, with one file in it that is not the spool's. */
static int open_among_others(struct fixture *f, mode_t mode, struct kiln_err *err)
{
    char path[256];
    int fd;

    kiln_spool_close(f->spool);
    f->spool = NULL;
    snprintf(path, sizeof(path), "%s/notes", f->dir);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    close(fd);
    CHECK_OK(chmod(f->dir, mode));
    return kiln_spool_open(f->dir, 1000, &f->spool, err);
}

TEST(spool, changes_nothing_of_a_folder_that_holds_something_else)
{
    struct kiln_err err = {0};
    struct stat about;
    struct fixture f;

    start(&f, 1000);
    CHECK_OK(open_among_others(&f, 0755, &err));
    CHECK_OK(stat(f.dir, &about));
    CHECK_EQ(about.st_mode & 0777, 0755);
    CHECK_EQ(open_among_others(&f, 01777, &err), -EPERM);
    CHECK(strstr(err.text, "others may write"));
    CHECK_OK(stat(f.dir, &about));
    CHECK_EQ(about.st_mode & 07777, 01777);
    finish(&f);
}

TEST(spool, is_not_in_a_folder_of_somebody_else)
{
    struct kiln_err err = {0};
    struct fixture f;

    if (geteuid() != 0)
        SKIP("only root gives folders away");
    start(&f, 1000);
    CHECK_OK(put(&f, "x"));
    CHECK_OK(chown(only_file(&f), 4711, 4711)); /* whoever put it there: it is not sent */
    reopen(&f, 1000);
    CHECK_EQ(kiln_spool_files(f.spool), 0);
    kiln_spool_close(f.spool);
    f.spool = NULL;
    CHECK_OK(chown(f.dir, 4711, 4711));
    CHECK_EQ(kiln_spool_open(f.dir, 1000, &f.spool, &err), -EPERM);
    CHECK(strstr(err.text, "4711"));
    finish(&f);
}

TEST(spool, is_not_shared)
{
    struct kiln_spool *other = NULL;
    struct kiln_err err = {0};
    struct fixture f;

    start(&f, 1000);
    CHECK_EQ(kiln_spool_open(f.dir, 1000, &other, &err), -EBUSY);
    CHECK(strstr(err.text, "another process"));
    finish(&f);
}

TEST(spool, forgets_what_was_not_finished_and_leaves_what_is_not_its_own)
{
    char part[512], own[512], path[512];
    struct fixture f;

    start(&f, 1000);
    CHECK_OK(put(&f, "x"));
    snprintf(part, sizeof(part), "%s/0000000000000001.part", f.dir);
    snprintf(own, sizeof(own), "%s/notes.txt", f.dir);
    CHECK_OK(kiln_file_write(part, KILN_STR("half"), NULL));
    CHECK_OK(kiln_file_write(own, KILN_STR("mine"), NULL));
    reopen(&f, 1000);
    CHECK_TEXT(bodies(&f), "x ");
    CHECK_EQ(folder_list(f.dir, ".part", path, sizeof(path)), 0);
    CHECK_OK(access(own, F_OK));
    finish(&f);
}

/* A process that is killed while it puts, at any moment, leaves only whole files. */
TEST(spool, survives_its_process_being_killed)
{
    struct fixture f;

    start(&f, 1 << 20);
    kiln_spool_close(f.spool);
    f.spool = NULL;
    for (int i = 0; i < 20; i++) {
        int told[2], status;
        char byte;
        pid_t child;

        CHECK_OK(pipe(told));
        child = fork();
        if (child == 0) {
            struct kiln_spool *spool;

            if (kiln_spool_open(f.dir, 1 << 20, &spool, NULL) < 0)
                _exit(1);
            for (int n = 0;; n++) {
                if (kiln_spool_put(spool, &head, KILN_STR("a body of some bytes"), NULL) < 0 ||
                    (n == i && write(told[1], "x", 1) < 0))
                    _exit(1);
            }
        }
        close(told[1]);
        CHECK_EQ(read(told[0], &byte, 1), 1);
        close(told[0]);
        kill(child, SIGKILL);
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFSIGNALED(status));
    }
    reopen(&f, 1 << 20);
    CHECK(kiln_spool_files(f.spool) >= 20);
    for (uint32_t i = 0; i < kiln_spool_files(f.spool); i++) {
        struct kiln_spooled got;
        struct kiln_str body;

        CHECK_OK(kiln_spool_get(f.spool, i, &f.file, &got, &body));
        CHECK_STR(body, "a body of some bytes");
    }
    finish(&f);
}
