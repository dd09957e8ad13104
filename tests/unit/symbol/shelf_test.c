/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/shelf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/metric.h"
#include "folder.h"
#include "symbol/shelf_int.h"
#include "test.h"

#define ID "0123456789abcdef0123456789abcdef01234567"

static char folder[64];
static const struct kiln_shelf_key plain = {{ID, sizeof(ID) - 1}, false};
static const struct kiln_shelf_key debug = {{ID, sizeof(ID) - 1}, true};

static void begin(void)
{
    (void)snprintf(folder, sizeof(folder), "%s", "/tmp/kiln-shelf-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
}

static void end(void)
{
    char path[512];
    DIR *dir = opendir(folder);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        (void)snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        (void)unlink(path);
    }
    closedir(dir);
    CHECK_OK(rmdir(folder));
}

static struct kiln_shelf *open_shelf(uint64_t max_bytes)
{
    const struct kiln_shelf_opts opts = {.directory = folder, .max_bytes = max_bytes};
    struct kiln_shelf *shelf = NULL;

    CHECK_OK(kiln_shelf_open(&opts, &shelf, NULL));
    return shelf;
}

static const char *path_of(const char *id)
{
    static char path[512];

    (void)snprintf(path, sizeof(path), "%s/%s.shelf", folder, id);
    return path;
}

/* "inner@a.c:3 < outer@b.c:40" */
static void put_line(struct kiln_shelf *shelf, const struct kiln_shelf_key *key, uint64_t address,
                     uint32_t line)
{
    const struct kiln_name_frame frames[] = {
        {.function = KILN_STR("inner"),
         .file = KILN_STR("a.c"),
         .line = line,
         .column = 7,
         .start_line = 1},
        {.function = KILN_STR("kiln::outer"),
         .system_name = KILN_STR("_ZN4kiln5outerEv"),
         .file = KILN_STR("b.c"),
         .line = line ? 40 : 0},
    };
    const struct kiln_name name = {.frames = frames, .n = 2};

    CHECK_OK(kiln_shelf_put(shelf, key, &address, &name, 1));
}

static void put_name(struct kiln_shelf *shelf, const struct kiln_shelf_key *key, uint64_t address,
                     const char *function)
{
    const struct kiln_name_frame frame = {.function = kiln_str_of(function)};
    const struct kiln_name name = {.frames = &frame, .n = *function != '\0', .begin = 0x40};

    CHECK_OK(kiln_shelf_put(shelf, key, &address, &name, 1));
}

/* What the innermost function is called; "": there is none; NULL: not known. */
static const char *get(struct kiln_shelf *shelf, const struct kiln_shelf_key *key, uint64_t address)
{
    static char text[256];
    struct kiln_name name;

    if (kiln_shelf_get(shelf, key, address, &name) == 0)
        return NULL;
    (void)snprintf(text, sizeof(text), "%.*s", KILN_STR_ARG(kiln_name_function(&name)));
    return text;
}

static struct kiln_shelf *again(struct kiln_shelf *shelf)
{
    kiln_shelf_close(shelf);
    return open_shelf(0);
}

TEST(shelf, names_are_there_after_a_restart_with_all_they_had_and_nothing_else)
{
    struct kiln_shelf *shelf;
    struct kiln_name name;

    begin();
    shelf = open_shelf(0);
    put_line(shelf, &plain, 0x1234, 3);
    put_name(shelf, &plain, 0x50, "");
    CHECK_EQ(kiln_shelf_get(shelf, &plain, 0x1234, &name), 0);
    shelf = again(shelf);
    CHECK_EQ(kiln_shelf_get(shelf, &plain, 0x1234, &name), 1);
    CHECK_EQ(name.n, 2);
    CHECK(!name.shallow);
    CHECK_STR(name.frames[0].function, "inner");
    CHECK_EQ(name.frames[0].system_name.len, 0);
    CHECK_STR(name.frames[0].file, "a.c");
    CHECK_EQ(name.frames[0].line, 3);
    CHECK_EQ(name.frames[0].column, 7);
    CHECK_EQ(name.frames[0].start_line, 1);
    CHECK_STR(name.frames[1].function, "kiln::outer");
    CHECK_STR(name.frames[1].system_name, "_ZN4kiln5outerEv");
    CHECK_EQ(name.frames[1].line, 40);
    CHECK_EQ(kiln_shelf_get(shelf, &plain, 0x50, &name), 0);
    CHECK_EQ(kiln_shelf_get(shelf, &plain, 0x1235, &name), 0);
    kiln_shelf_close(shelf);
    end();
}

TEST(shelf, what_is_put_later_is_added_and_counts)
{
    struct kiln_shelf *shelf;

    begin();
    shelf = open_shelf(0);
    for (uint64_t i = 0; i < 3000; i++)
        put_line(shelf, &plain, i * 3, (uint32_t)(i % 50) + 1);
    shelf = again(shelf);
    put_name(shelf, &plain, 1, "one");
    shelf = again(shelf);
    put_name(shelf, &plain, 1, "another");
    shelf = again(shelf);
    CHECK_TEXT(get(shelf, &plain, 1), "another");
    for (uint64_t i = 0; i < 3000; i++)
        CHECK_TEXT(get(shelf, &plain, i * 3), "inner");
    kiln_shelf_close(shelf);
    end();
}

TEST(shelf, shallow_answers_and_keys_that_are_no_build_id_are_not_kept)
{
    const struct kiln_name_frame frame = {.function = KILN_STR("f")};
    const struct kiln_name shallow = {.frames = &frame, .n = 1, .shallow = true};
    const struct kiln_shelf_key path = {KILN_STR("/usr/bin/../lib/libc.so.6"), false};
    const uint64_t address = 1;
    struct kiln_shelf *shelf;

    begin();
    shelf = open_shelf(0);
    CHECK_OK(kiln_shelf_put(shelf, &plain, &address, &shallow, 1));
    put_name(shelf, &path, 1, "f");
    CHECK(!kiln_shelf_takes(path.build_id));
    CHECK(!kiln_shelf_takes(KILN_STR("abcd")));
    CHECK(!kiln_shelf_takes(KILN_STR("0123456789ABCDEF")));
    shelf = again(shelf);
    CHECK(!get(shelf, &plain, 1));
    CHECK(!get(shelf, &path, 1));
    kiln_shelf_close(shelf);
    end();
}

TEST(shelf, names_without_lines_are_no_answer_once_there_is_a_debug_file)
{
    struct kiln_shelf *shelf;

    begin();
    shelf = open_shelf(0);
    put_name(shelf, &plain, 1, "f");
    put_line(shelf, &plain, 2, 3);
    put_name(shelf, &debug, 3, "asm");
    shelf = again(shelf);
    CHECK_TEXT(get(shelf, &plain, 1), "f");
    CHECK(!get(shelf, &debug, 1));
    CHECK_TEXT(get(shelf, &debug, 2), "inner");
    CHECK_TEXT(get(shelf, &debug, 3), "asm");
    put_line(shelf, &debug, 1, 9);
    put_name(shelf, &plain, 1, "f");
    shelf = again(shelf);
    CHECK_TEXT(get(shelf, &debug, 1), "inner");
    kiln_shelf_close(shelf);
    end();
}

TEST(shelf, names_without_lines_are_looked_for_again_after_a_day)
{
    const uint64_t day_ns = 24 * 3600 * KILN_NS_PER_S;
    uint64_t now = kiln_clock_unix_ns();
    struct kiln_shelf *shelf;

    begin();
    kiln_clock_set(now);
    shelf = open_shelf(0);
    put_name(shelf, &plain, 1, "f");
    put_line(shelf, &plain, 2, 3);
    shelf = again(shelf);
    kiln_clock_set(now + day_ns - 120 * KILN_NS_PER_S);
    CHECK_TEXT(get(shelf, &plain, 1), "f");
    kiln_clock_set(now + day_ns + 60 * KILN_NS_PER_S);
    CHECK(!get(shelf, &plain, 1));
    CHECK_TEXT(get(shelf, &plain, 2), "inner");
    kiln_clock_set(0);
    kiln_shelf_close(shelf);
    end();
}

/* ---- files ---- */

static void overwrite(const char *path, off_t at, const void *data, size_t n)
{
    int fd = open(path, O_RDWR | O_CREAT, 0600);

    CHECK(fd >= 0);
    CHECK_EQ(pwrite(fd, data, n, at), (ssize_t)n);
    close(fd);
}

TEST(shelf, a_damaged_file_is_removed_and_made_anew)
{
    static const off_t places[] = {0, 8, 12, 16, 40, 70, 200};
    struct kiln_shelf *shelf;

    begin();
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        shelf = open_shelf(0);
        put_name(shelf, &plain, 1, "f");
        kiln_shelf_close(shelf);
        overwrite(path_of(ID), places[i], "\xff\xfe", 2);
        shelf = open_shelf(0);
        CHECK(!get(shelf, &plain, 1));
        CHECK_EQ(access(path_of(ID), F_OK), -1);
        put_name(shelf, &plain, 1, "f");
        shelf = again(shelf);
        CHECK_TEXT(get(shelf, &plain, 1), "f");
        kiln_shelf_close(shelf);
    }
    end();
}

TEST(shelf, a_file_that_was_cut_or_is_empty_is_none)
{
    struct kiln_shelf *shelf = NULL;

    begin();
    for (off_t size = 0; size < 300; size += 37) {
        shelf = open_shelf(0);
        put_line(shelf, &plain, 1, 5);
        kiln_shelf_close(shelf);
        CHECK_OK(truncate(path_of(ID), size));
        shelf = open_shelf(0);
        CHECK(!get(shelf, &plain, 1));
        kiln_shelf_close(shelf);
    }
    end();
}

TEST(shelf, a_file_of_another_build_id_is_none)
{
    struct kiln_shelf *shelf;
    char other[512];

    begin();
    shelf = open_shelf(0);
    put_name(shelf, &plain, 1, "f");
    kiln_shelf_close(shelf);
    (void)snprintf(other, sizeof(other), "%s", path_of("ffff456789abcdef"));
    CHECK_OK(rename(path_of(ID), other));
    shelf = open_shelf(0);
    CHECK(!get(shelf, &(struct kiln_shelf_key){KILN_STR("ffff456789abcdef"), false}, 1));
    kiln_shelf_close(shelf);
    end();
}

/* ---- room ---- */

static uint64_t bytes_in_folder(uint32_t *ret_files)
{
    char path[512];
    struct stat st;
    uint64_t bytes = 0;
    DIR *dir = opendir(folder);
    const struct dirent *entry;

    *ret_files = 0;
    while ((entry = readdir(dir))) {
        (void)snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
            bytes += (uint64_t)st.st_size;
            ++*ret_files;
        }
    }
    closedir(dir);
    return bytes;
}

/* About 40 KB. */
static void put_many(struct kiln_shelf *shelf, struct kiln_str id)
{
    const struct kiln_shelf_key key = {id, false};
    char function[64];

    for (uint64_t i = 0; i < 400; i++) {
        (void)snprintf(function, sizeof(function), "a_function_with_the_number_%u", (unsigned)i);
        put_name(shelf, &key, i, function);
    }
}

TEST(shelf, stays_within_its_size_and_keeps_what_was_used_last)
{
    const uint64_t most = 1 << 20;
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    struct kiln_shelf *shelf;
    char id[41];
    uint32_t files;

    begin();
    shelf = open_shelf(most);
    put_many(shelf, plain.build_id);
    put_many(shelf, KILN_STR("00000000000000000000000000000000000000aa"));
    kiln_shelf_flush(shelf);
    CHECK_OK(utimensat(AT_FDCWD, path_of("00000000000000000000000000000000000000aa"), old, 0));
    for (unsigned i = 0; i < 60; i++) {
        (void)snprintf(id, sizeof(id), "%040x", i);
        put_many(shelf, (struct kiln_str){id, 40});
        kiln_shelf_flush(shelf);
        CHECK_OK(utimensat(AT_FDCWD, path_of(ID),
                           (struct timespec[2]){{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}},
                           0));
    }
    kiln_shelf_close(shelf);
    CHECK(bytes_in_folder(&files) <= most);
    CHECK(files > 10);
    CHECK_OK(access(path_of(ID), F_OK));
    CHECK_EQ(access(path_of("00000000000000000000000000000000000000aa"), F_OK), -1);
    end();
}

TEST(shelf, a_full_disk_only_means_that_nothing_is_kept)
{
    const struct kiln_shelf_opts opts = {.directory = folder};
    struct rlimit before, small;
    struct kiln_shelf *shelf = NULL;
    uint32_t files;

    begin();
    CHECK_OK(kiln_shelf_open(&opts, &shelf, NULL));
    CHECK_OK(getrlimit(RLIMIT_FSIZE, &before));
    small = (struct rlimit){1000, before.rlim_max};
    (void)signal(SIGXFSZ, SIG_IGN);
    CHECK_OK(setrlimit(RLIMIT_FSIZE, &small));
    put_many(shelf, plain.build_id);
    kiln_shelf_flush(shelf);
    put_many(shelf, plain.build_id);
    kiln_shelf_flush(shelf);
    CHECK_OK(setrlimit(RLIMIT_FSIZE, &before));
    CHECK(!get(shelf, &plain, 1));
    CHECK_EQ(kiln_shelf_bytes(shelf), 0);
    kiln_shelf_close(shelf);
    CHECK_EQ(bytes_in_folder(&files), 0);
    CHECK_EQ(files, 1);
    end();
}

TEST(shelf, a_directory_that_others_may_write_to_is_refused)
{
    const struct kiln_shelf_opts opts = {.directory = folder};
    struct kiln_shelf *shelf = NULL;
    struct kiln_err err = {0};

    begin();
    CHECK_OK(chmod(folder, 0777));
    CHECK_EQ(kiln_shelf_open(&opts, &shelf, &err), -EPERM);
    CHECK_TEXT(err.where, folder);
    end();
    err = (struct kiln_err){0};
    CHECK(kiln_shelf_open(&(struct kiln_shelf_opts){.directory = "/proc/kiln/symbols"}, &shelf,
                          &err) < 0);
}

TEST(shelf, makes_the_folders_above_it)
{
    char deep[128];
    struct kiln_shelf *shelf = NULL;
    struct stat st;

    begin();
    (void)snprintf(deep, sizeof(deep), "%s/kiln/symbols", folder);
    CHECK_OK(kiln_shelf_open(&(struct kiln_shelf_opts){.directory = deep}, &shelf, NULL));
    kiln_shelf_close(shelf);
    CHECK_OK(stat(deep, &st));
    CHECK_EQ(st.st_mode & 0777, 0700);
    (void)snprintf(deep, sizeof(deep), "%s/kiln/symbols/lock", folder);
    CHECK_OK(unlink(deep));
    *strrchr(deep, '/') = '\0';
    CHECK_OK(rmdir(deep));
    *strrchr(deep, '/') = '\0';
    CHECK_OK(rmdir(deep));
    end();
}

TEST(shelf, more_build_ids_than_are_kept_open_are_all_found)
{
    struct kiln_shelf *shelf;
    char id[41];

    begin();
    shelf = open_shelf(0);
    for (unsigned i = 0; i < 700; i++) {
        (void)snprintf(id, sizeof(id), "%040x", i);
        put_name(shelf, &(struct kiln_shelf_key){{id, 40}, false}, i, "f");
    }
    shelf = again(shelf);
    for (unsigned i = 0; i < 700; i++) {
        (void)snprintf(id, sizeof(id), "%040x", i);
        CHECK_TEXT(get(shelf, &(struct kiln_shelf_key){{id, 40}, false}, i), "f");
    }
    kiln_shelf_close(shelf);
    end();
}

/* ---- several processes ---- */

/* Puts addresses that are `who` modulo 4 and reads those of all; what is there must be right. */
static int work(unsigned who)
{
    struct kiln_shelf *shelf = open_shelf(0);
    char function[32], wanted[32];

    for (uint64_t i = 0; i < 2000; i++) {
        uint64_t asked = i * 7919 % 2000;
        const char *found = get(shelf, &plain, asked);

        (void)snprintf(wanted, sizeof(wanted), "f%u", (unsigned)asked);
        if (found && strcmp(found, wanted) != 0)
            return 1;
        if (i % 4 != who)
            continue;
        (void)snprintf(function, sizeof(function), "f%u", (unsigned)i);
        put_name(shelf, &plain, i, function);
        if (i % 16 == who)
            kiln_shelf_flush(shelf);
    }
    while (kiln_shelf_bytes(shelf) > 0)
        kiln_shelf_flush(shelf);
    kiln_shelf_close(shelf);
    return 0;
}

TEST(shelf, processes_at_once_write_and_read_the_same_build_id)
{
    struct kiln_shelf *shelf;
    pid_t pids[4];
    int status;

    begin();
    for (unsigned i = 0; i < 4; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            _exit(work(i));
    }
    for (unsigned i = 0; i < 4; i++) {
        CHECK_EQ(waitpid(pids[i], &status, 0), pids[i]);
        CHECK_EQ(status, 0);
    }
    shelf = open_shelf(0);
    for (uint64_t i = 0; i < 2000; i++)
        CHECK(get(shelf, &plain, i));
    kiln_shelf_close(shelf);
    end();
}

TEST(shelf, what_was_written_outlives_a_writer_that_is_killed)
{
    struct kiln_shelf *shelf;
    int tell[2], status;
    char byte;
    pid_t pid;

    begin();
    for (unsigned i = 0; i < 20; i++) {
        CHECK_OK(pipe(tell));
        pid = fork();
        if (pid == 0) {
            shelf = open_shelf(0);
            put_name(shelf, &plain, i, "kept");
            kiln_shelf_flush(shelf);
            (void)!write(tell[1], "x", 1);
            for (uint64_t k = 1000;; k++) {
                put_name(shelf, &plain, k, "lost or not");
                kiln_shelf_flush(shelf);
            }
        }
        CHECK_EQ(read(tell[0], &byte, 1), 1);
        CHECK_OK(kill(pid, SIGKILL));
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        close(tell[0]);
        close(tell[1]);
        shelf = open_shelf(0);
        for (unsigned k = 0; k <= i; k++)
            CHECK_TEXT(get(shelf, &plain, k), "kept");
        kiln_shelf_close(shelf);
    }
    end();
}

TEST(shelf, without_memory_it_fails_without_a_leak)
{
    const struct kiln_shelf_opts opts = {.directory = folder};
    const struct kiln_name_frame frame = {.function = KILN_STR("f"), .line = 3};
    const struct kiln_name name = {.frames = &frame, .n = 1};
    int64_t live = kiln_mem_live();

    begin();
    for (uint64_t n = 1; n < 200; n++) {
        struct kiln_shelf *shelf = NULL;
        uint64_t address = n;
        struct kiln_name found;
        int r;

        kiln_mem_fail_at(n);
        r = kiln_shelf_open(&opts, &shelf, NULL);
        if (r == 0) {
            r = kiln_shelf_put(shelf, &plain, &address, &name, 1);
            CHECK(kiln_shelf_get(shelf, &plain, address, &found) >= 0);
        }
        kiln_shelf_close(shelf);
        CHECK(r == 0 || r == -ENOMEM);
        if (!kiln_mem_failed())
            n = 200;
        kiln_mem_fail_at(0);
        CHECK_EQ(kiln_mem_live(), live);
    }
    end();
}

/* ---- older versions ---- */

CAPTURE_TEST(shelf, names_that_kiln_0_1_kept_are_found)
{
    const char *id = "93ac61ec5a8eb1396f9fbd350e3169a558528a40"
                     "00000000"; /* of a file of root */
    const struct kiln_shelf_key libc = {kiln_str_of(id), false};
    struct kiln_shelf *shelf;
    struct kiln_name name;

    if (!folder_unpack(folder, "written-by-0.1/symbol-cache"))
        SKIP("no captures here");
    shelf = open_shelf(0);
    CHECK_EQ(kiln_shelf_get(shelf, &libc, 0x27249, &name), 1);
    CHECK_STR(kiln_name_function(&name), "__libc_start_call_main");
    CHECK_STR(name.frames[0].file, "./csu/../sysdeps/nptl/libc_start_call_main.h");
    CHECK_EQ(name.frames[0].line, 58);
    CHECK_EQ(kiln_shelf_get(shelf, &libc, 0x27304, &name), 1);
    CHECK_STR(kiln_name_function(&name), "__libc_start_main");
    CHECK_STR(name.frames[0].system_name, "__libc_start_main_impl");
    CHECK_STR(name.frames[0].file, "./csu/../csu/libc-start.c");
    CHECK_EQ(name.frames[0].line, 360);
    kiln_shelf_close(shelf);
    end();
}
