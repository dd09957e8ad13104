/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/sidecar.h"
#include "codec/codec.h"
#include "drawn.h"
#include "inproc/out/files.h"
#include "test.h"

static char folder[64];

static void make_folder(void)
{
    snprintf(folder, sizeof(folder), "/tmp/kiln-files-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
}

/* How many files of an ending there are; the last name in alphabetical order. */
static uint32_t count(const char *ending, char last[512], bool remove)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    uint32_t n = 0;

    last[0] = '\0';
    while ((entry = readdir(dir))) {
        size_t len = strlen(entry->d_name);
        char path[512];

        if (entry->d_name[0] == '.' || len < strlen(ending) ||
            strcmp(entry->d_name + len - strlen(ending), ending) != 0)
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        n++;
        if (strcmp(path, last) > 0)
            snprintf(last, 512, "%s", path);
        if (remove)
            unlink(path);
    }
    closedir(dir);
    return n;
}

static void remove_folder(void)
{
    char last[512];

    count("", last, true);
    CHECK_EQ(rmdir(folder), 0);
}

/* A window of two kinds that began `second` seconds into 2026-03-01. */
static struct kiln_batch *window(uint64_t second)
{
    uint64_t time_ns = (1772323200 + second) * KILN_NS_PER_S;
    const struct kiln_drawn drawn[] = {
        {.stacks = "main;work 5\n",
         .type = "cpu",
         .unit = "nanoseconds",
         .period_type = "cpu",
         .period_unit = "nanoseconds",
         .period = 1,
         .time_ns = time_ns,
         .duration_ns = KILN_NS_PER_S,
         .resource = "service.name=a/b shop,git.commit=0af3,host.name=h1",
         .scope = "cpu"},
        {.stacks = "main;make 7\n",
         .type = "alloc_space",
         .unit = "bytes",
         .time_ns = time_ns,
         .duration_ns = KILN_NS_PER_S,
         .scope = "memory"},
        {.stacks = "",
         .type = "contentions",
         .unit = "count",
         .time_ns = time_ns,
         .scope = "mutex"},
    };

    return kiln_test_batch(drawn, 3);
}

static void write_window(struct kiln_in_files *files, uint64_t second)
{
    const struct kiln_sidecar_loss losses[] = {{"ring", 3}};
    struct kiln_batch *batch = window(second);
    struct kiln_err err = {0};

    CHECK_OK(kiln_in_files_write(files, batch, losses, 1, &err));
    kiln_batch_unref(batch);
}

TEST(out_files, each_kind_has_a_file_with_what_is_known_of_it)
{
    struct kiln_in_files files = {.folder = folder};
    struct kiln_sidecar sidecar;
    struct kiln_err err = {0};
    char last[512];

    make_folder();
    write_window(&files, 5);
    CHECK_EQ(files.written, 2);
    CHECK_EQ(count(".json", last, false), 2);
    CHECK_EQ(count(".pb.gz", last, false), 2);
    CHECK(strstr(last, "/kiln-a_b_shop-process_cpu-20260301T000006.000Z-"));
    kiln_sidecar_init(&sidecar);
    CHECK_EQ(kiln_sidecar_read(&sidecar, last, &err), 1);
    CHECK_STR(sidecar.service, "a/b shop");
    CHECK_EQ(sidecar.time_ns, 1772323205 * KILN_NS_PER_S);
    CHECK_EQ(sidecar.duration_ns, KILN_NS_PER_S);
    CHECK_EQ(kiln_sidecar_is(last), false);
    kiln_sidecar_done(&sidecar);
    remove_folder();
    CHECK_EQ(kiln_mem_live(), 0);
}

static mode_t mode_of(const char *path)
{
    struct stat stat_buf;

    CHECK_OK(stat(path, &stat_buf));
    return stat_buf.st_mode & 0777;
}

/* Another user may have made a file in /tmp at the name that the next one is written under. */
TEST(out_files, only_the_owner_reads_them_and_no_file_of_others_is_written)
{
    struct kiln_in_files files = {.folder = folder};
    char last[512], next[600], other[600];
    struct stat untouched;

    make_folder();
    snprintf(other, sizeof(other), "%s/other", folder);
    CHECK_OK(close(creat(other, 0666)));
    write_window(&files, 5);
    count(".pb.gz", last, false);
    CHECK_EQ(mode_of(last), 0600);
    CHECK_OK(unlink(last));
    snprintf(next, sizeof(next), "%s.tmp", last);
    CHECK_OK(link(other, next));
    files = (struct kiln_in_files){.folder = folder};
    write_window(&files, 5);
    CHECK_EQ(mode_of(last), 0600);
    CHECK_NE(access(next, F_OK), 0);
    CHECK_OK(stat(other, &untouched));
    CHECK_EQ(untouched.st_size, 0);
    remove_folder();
}

TEST(out_files, the_oldest_go_first)
{
    struct kiln_in_files files = {.folder = folder, .files_max = 4};
    char last[512];

    make_folder();
    for (uint64_t i = 0; i < 5; i++)
        write_window(&files, i);
    CHECK_EQ(count(".pb.gz", last, false), 4);
    CHECK_EQ(count(".json", last, false), 4);
    CHECK_EQ(files.removed, 6);
    CHECK(strstr(last, "T000005.000Z"));
    files.bytes_max = 1;
    write_window(&files, 9);
    CHECK_EQ(count(".pb.gz", last, false), 0);
    remove_folder();
}

TEST(out_files, files_of_others_stay)
{
    struct kiln_in_files files = {.folder = folder, .files_max = 1};
    char path[128], last[512];

    make_folder();
    snprintf(path, sizeof(path), "%s/important.pb.gz", folder);
    CHECK_EQ(close(creat(path, 0600)), 0);
    write_window(&files, 1);
    CHECK_EQ(count(".pb.gz", last, false), 2);
    CHECK_EQ(access(path, F_OK), 0);
    remove_folder();
}

TEST(out_files, a_folder_is_made_with_all_that_it_is_in)
{
    char inner[128], last[512];
    struct kiln_in_files files = {.folder = inner};

    make_folder();
    snprintf(inner, sizeof(inner), "%s/a/b", folder);
    write_window(&files, 1);
    CHECK_EQ(files.written, 2);
    snprintf(folder + strlen(folder), sizeof(folder) - strlen(folder), "/a/b");
    CHECK_EQ(count(".pb.gz", last, false), 2);
    remove_folder();
    for (int i = 0; i < 2; i++) {
        *strrchr(folder, '/') = '\0';
        CHECK_EQ(rmdir(folder), 0);
    }
}

TEST(out_files, a_folder_that_cannot_be_is_an_error_and_no_more)
{
    struct kiln_in_files files = {.folder = "/proc/self/nowhere"};
    struct kiln_batch *batch = window(1);
    struct kiln_err err = {0};

    CHECK(kiln_in_files_write(&files, batch, NULL, 0, &err) < 0);
    CHECK_TEXT(err.where, "/proc/self/nowhere");
    CHECK_EQ(files.lost, 2);
    kiln_batch_unref(batch);
    CHECK_EQ(kiln_mem_live(), 0);
}
