/* SPDX-License-Identifier: Apache-2.0 */
/* A root of its own in a folder, with files in it that say where they are. */
#include "symbol/debugfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folder.h"
#include "test.h"

static char folder[FOLDER_NAME];
static int root;

static void begin(void)
{
    folder_make(folder);
    root = open(folder, O_PATH | O_DIRECTORY);
    CHECK(root >= 0);
}

static void end(void)
{
    close(root);
    folder_remove(folder);
}

/* Makes a file, with the directories that it is in, and this content. */
static void put(const char *path, const char *content)
{
    char full[512];
    int fd;

    snprintf(full, sizeof(full), "%s%s", folder, path);
    for (char *at = full + strlen(folder) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        (void)mkdir(full, 0755);
        *at = '/';
    }
    fd = open(full, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    CHECK(fd >= 0);
    CHECK_EQ(write(fd, content, strlen(content)), (ssize_t)strlen(content));
    close(fd);
}

static void put_elf(const char *path)
{
    char content[512];

    snprintf(content, sizeof(content), "\177ELF%s", path);
    put(path, content);
}

/* Where what is found says that it is; "": nothing is. */
static const char *find_in(struct kiln_debugfile where, struct kiln_wanted wanted)
{
    static char text[512];
    ssize_t n;
    int fd;

    where.root = root;
    if (kiln_debugfile_open(&where, &wanted, &fd) < 0)
        return "";
    n = pread(fd, text, sizeof(text) - 1, 4);
    CHECK(n > 0);
    text[n] = '\0';
    close(fd);
    return text;
}

static const char *find(struct kiln_wanted wanted)
{
    return find_in((struct kiln_debugfile){.program = "/usr/bin/app"}, wanted);
}

#define CHECK_FOUND(found, wanted) CHECK_STR(kiln_str_of(found), wanted)

static const struct kiln_wanted by_id = {
    .kind = KILN_WANTED_DEBUG, .build_id = {0xab, 0xcd, 0xef}, .build_id_len = 3};
static const struct kiln_wanted by_link = {
    .kind = KILN_WANTED_DEBUG, .name = {"app.debug", 9}, .has_crc = true};

TEST(debugfile, a_build_id_is_a_path)
{
    begin();
    CHECK_FOUND(find(by_id), "");
    put_elf("/usr/lib/debug/.build-id/ab/cdef.debug");
    CHECK_FOUND(find(by_id), "/usr/lib/debug/.build-id/ab/cdef.debug");
    end();
}

TEST(debugfile, a_debug_link_is_looked_for_beside_the_program_and_where_debug_files_are)
{
    static const char *const places[] = {"/usr/lib/debug/bin/app.debug",
                                         "/usr/lib/debug/usr/bin/app.debug",
                                         "/usr/bin/.debug/app.debug", "/usr/bin/app.debug"};

    begin();
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        put_elf(places[i]);
        CHECK_FOUND(find(by_link), places[i]);
    }
    end();
}

TEST(debugfile, a_program_outside_of_usr_may_have_its_debug_file_there)
{
    begin();
    put_elf("/usr/lib/debug/usr/lib/app.debug");
    CHECK_FOUND(find_in((struct kiln_debugfile){.program = "/lib/libapp.so"}, by_link),
                "/usr/lib/debug/usr/lib/app.debug");
    end();
}

TEST(debugfile, what_was_not_it_is_passed_over)
{
    struct kiln_wanted wanted = by_link;

    begin();
    put_elf("/usr/bin/app.debug");
    put("/usr/bin/.debug/app.debug", "no ELF file");
    put_elf("/usr/lib/debug/usr/bin/app.debug");
    CHECK_FOUND(find(wanted), "/usr/bin/app.debug");
    wanted.attempt = 1;
    CHECK_FOUND(find(wanted), "/usr/lib/debug/usr/bin/app.debug");
    wanted.attempt = 2;
    CHECK_FOUND(find(wanted), "");
    end();
}

TEST(debugfile, the_program_is_not_its_own_debug_file)
{
    struct kiln_wanted wanted = by_link;

    wanted.name = KILN_STR("app");
    begin();
    put_elf("/usr/bin/app");
    CHECK_FOUND(find(wanted), "");
    end();
}

TEST(debugfile, only_elf_files_are_given_and_none_from_outside)
{
    struct kiln_wanted dwo = {.kind = KILN_WANTED_DWO, .name = KILN_STR("/etc/shadow")};
    char path[512];

    begin();
    put("/etc/shadow", "root:secret");
    CHECK_FOUND(find(dwo), "");
    dwo.name = KILN_STR("../../../../../../bin/true");
    CHECK_FOUND(find(dwo), "");
    snprintf(path, sizeof(path), "%s/link", folder);
    CHECK_OK(symlink("/bin/true", path));
    dwo.name = KILN_STR("/link");
    CHECK_FOUND(find(dwo), "");
    dwo = by_link;
    dwo.name = KILN_STR("../../bin/app.debug");
    put_elf("/usr/bin/app.debug");
    CHECK_FOUND(find(dwo), "");
    end();
}

TEST(debugfile, an_alternate_is_found_from_where_the_debug_file_is)
{
    struct kiln_wanted wanted = {.kind = KILN_WANTED_ALTERNATE,
                                 .name = KILN_STR("../../.dwz/x86_64-linux-gnu/app.debug"),
                                 .build_id = {0x12, 0x34},
                                 .build_id_len = 2};

    begin();
    put_elf("/usr/lib/debug/.build-id/12/34.debug");
    CHECK_FOUND(find(wanted), "/usr/lib/debug/.build-id/12/34.debug");
    put_elf("/usr/lib/debug/.dwz/app.debug");
    CHECK_FOUND(find(wanted), "/usr/lib/debug/.dwz/app.debug");
    put_elf("/usr/lib/debug/.dwz/x86_64-linux-gnu/app.debug");
    CHECK_FOUND(find(wanted), "/usr/lib/debug/.dwz/x86_64-linux-gnu/app.debug");
    wanted.name = KILN_STR("/opt/common.dwz");
    put_elf("/opt/common.dwz");
    CHECK_FOUND(find(wanted), "/opt/common.dwz");
    end();
}

TEST(debugfile, split_units_are_where_they_were_compiled_or_beside_the_program)
{
    const struct kiln_wanted dwo = {
        .kind = KILN_WANTED_DWO, .name = KILN_STR("obj/a.dwo"), .directory = KILN_STR("/src/app")};
    const struct kiln_wanted dwp = {.kind = KILN_WANTED_DWP};

    begin();
    put_elf("/usr/bin/a.dwo");
    CHECK_FOUND(find(dwo), "/usr/bin/a.dwo");
    put_elf("/src/app/obj/a.dwo");
    CHECK_FOUND(find(dwo), "/src/app/obj/a.dwo");
    CHECK_FOUND(find(dwp), "");
    put_elf("/usr/bin/app.dwp");
    CHECK_FOUND(find(dwp), "/usr/bin/app.dwp");
    end();
}

TEST(debugfile, elsewhere_only_a_build_id_counts)
{
    struct kiln_debugfile elsewhere = {.program = "/usr/bin/app", .by_id = true};
    const struct kiln_wanted dwp = {.kind = KILN_WANTED_DWP};

    begin();
    put_elf("/usr/bin/app.debug");
    put_elf("/usr/bin/app.dwp");
    CHECK_FOUND(find_in(elsewhere, by_link), "");
    CHECK_FOUND(find_in(elsewhere, dwp), "");
    put_elf("/usr/lib/debug/.build-id/ab/cdef.debug");
    CHECK_FOUND(find_in(elsewhere, by_id), "/usr/lib/debug/.build-id/ab/cdef.debug");
    end();
}

/* Whoever may mount what he likes may put a file where debug files are. */
TEST(debugfile, what_somebody_else_owns_is_not_believed)
{
    struct kiln_debugfile where = {.program = "/usr/bin/app", .owned = true, .owner = 0};
    char full[512];

    begin();
    put_elf("/usr/lib/debug/.build-id/ab/cdef.debug");
    snprintf(full, sizeof(full), "%s/usr/lib/debug/.build-id/ab/cdef.debug", folder);
    if (chown(full, 4711, 4711) != 0) { /* we are not root: it is ours */
        where.owner = geteuid() + 1;
        CHECK_FOUND(find_in(where, by_id), "");
        where.owner = geteuid();
    } else {
        CHECK_FOUND(find_in(where, by_id), "");
        where.owner = 4711;
    }
    CHECK_FOUND(find_in(where, by_id), "/usr/lib/debug/.build-id/ab/cdef.debug");
    end();
}
