/* SPDX-License-Identifier: Apache-2.0 */
#include "base/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "folder.h"
#include "test.h"

#define STRICT (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

static char folder[FOLDER_NAME];
static int dir;

static void start(void)
{
    folder_make(folder);
    dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(dir >= 0);
    CHECK_OK(mkdirat(dir, "src", 0700));
    CHECK_OK(mkfifoat(dir, "pipe", 0600));
    CHECK_OK(symlinkat("/etc", dir, "out"));
    CHECK_OK(symlinkat("src", dir, "in"));
    CHECK_OK(symlinkat("a.c", dir, "src/link.c"));
    close(openat(dir, "src/a.c", O_CREAT | O_WRONLY, 0600));
}

static void stop(void)
{
    close(dir);
    folder_remove(folder);
}

/* Both ways at once: they must agree on what is opened. */
static int try(const char *path)
{
    struct stat st;
    int fd = kiln_open_beneath(dir, path, STRICT, &st);
    int at = kiln_walk_beneath(dir, path, &st);

    CHECK((fd >= 0) == (at >= 0));
    if (fd >= 0) {
        close(fd);
        close(at);
        return 0;
    }
    return fd;
}

TEST(beneath, a_regular_file_is_opened)
{
    start();
    CHECK_OK(try("src/a.c"));
    CHECK_OK(try("src//a.c"));
    CHECK_OK(try("./src/a.c"));
    stop();
}

TEST(beneath, nothing_leads_out_or_through_a_link)
{
    start();
    CHECK(try("../../etc/passwd") < 0);
    CHECK(try("src/../../etc/passwd") < 0);
    CHECK(try("/etc/passwd") < 0);
    CHECK_EQ(try("out/passwd"), -ELOOP);
    CHECK_EQ(try("in/a.c"), -ELOOP);
    CHECK_EQ(try("src/link.c"), -ELOOP);
    stop();
}

TEST(beneath, what_is_no_regular_file_is_not_there)
{
    start();
    CHECK_EQ(try("pipe"), -ENOENT);
    CHECK_EQ(try("src"), -ENOENT);
    CHECK_EQ(try("src/b.c"), -ENOENT);
    CHECK_EQ(try("src/a.c/b"), -ENOTDIR);
    CHECK(try("") < 0);
    CHECK(try("src/") < 0);
    stop();
}
