/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/preload_operators.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folder.h"
#include "test.h"

TEST(preload_operators, an_allocator_that_is_preloaded_is_known_by_its_name)
{
    CHECK(kiln_preload_has_operators("/proc/self/exe", "/usr/lib/libjemalloc.so.2"));
    CHECK(kiln_preload_has_operators("/nowhere", "liba.so:libtcmalloc_minimal.so.4"));
    CHECK(!kiln_preload_has_operators("/nowhere", "libfaketime.so.1"));
    CHECK(!kiln_preload_has_operators("/nowhere", NULL));
}

/* This program links neither of them. */
TEST(preload_operators, a_program_is_asked_what_it_needs)
{
    CHECK(!kiln_preload_has_operators("/proc/self/exe", NULL));
    CHECK(!kiln_preload_has_operators("/etc/passwd", NULL));
}

static void make_empty(const char *path)
{
    int fd = open(path, O_CREAT | O_WRONLY, 0600);

    CHECK(fd >= 0);
    close(fd);
}

TEST(preload_operators, the_variant_is_taken_where_there_is_one)
{
    char folder[FOLDER_NAME], library[PATH_MAX], path[PATH_MAX];

    folder_make(folder);
    snprintf(library, sizeof(library), "%s/libkiln.so.0", folder);
    kiln_preload_take_variant(library);
    snprintf(path, sizeof(path), "%s/libkiln.so.0", folder);
    CHECK_TEXT(library, path);

    snprintf(path, sizeof(path), "%s/new", folder);
    CHECK_OK(mkdir(path, 0700));
    snprintf(path, sizeof(path), "%s/new/libkiln.so.0", folder);
    make_empty(path);
    kiln_preload_take_variant(library);
    CHECK_TEXT(library, path);
    folder_remove(folder);
}
