/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "host/mounts.h"
#include "host/procfs.h"
#include "starved.h"
#include "test.h"

static char dir[64], path[80];

/* The folder of a process that has these mounts. */
static int draw(const char *mountinfo)
{
    snprintf(dir, sizeof(dir), "/tmp/kiln-mounts-test-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/mountinfo", dir);
    CHECK_OK(kiln_file_write(path, kiln_str_of(mountinfo), NULL));
    return open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void erase(int folder)
{
    close(folder);
    unlink(path);
    rmdir(dir);
}

TEST(mounts, file_systems_of_others_are_told_by_their_types)
{
    int folder = draw("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
                      "23 22 0:21 / /sys/fs/fuse rw shared:1 - fusectl none rw\n"
                      "24 22 0:40 / /home rw shared:7 master:2 - nfs4 server:/home rw\n"
                      "25 22 0:41 / /mnt/my\\040files rw - fuse.sshfs me@there: rw\n"
                      "26 22 0:42 / /share rw - cifs //there/share rw\n"
                      "not a mount\n");
    struct kiln_mounts *mounts;

    CHECK_OK(kiln_mounts_new(&mounts));
    CHECK(kiln_mounts_served(mounts, folder, 5, "/home/me/bin/tool"));
    CHECK(kiln_mounts_served(mounts, folder, 5, "/mnt/my files/tool"));
    CHECK(kiln_mounts_served(mounts, folder, 5, "/share"));
    CHECK(!kiln_mounts_served(mounts, folder, 5, "/homework"));
    CHECK(!kiln_mounts_served(mounts, folder, 5, "/usr/bin/ls"));
    CHECK(!kiln_mounts_served(mounts, folder, 5, "/sys/fs/fuse/x"));
    CHECK(!kiln_mounts_served(mounts, folder, 5, ""));
    kiln_mounts_free(mounts);
    erase(folder);
}

TEST(mounts, a_root_that_is_served_has_nothing_else)
{
    int folder = draw("22 1 0:40 / / rw - fuse.fuse-overlayfs fuse-overlayfs rw\n");
    struct kiln_mounts *mounts;

    CHECK_OK(kiln_mounts_new(&mounts));
    CHECK(kiln_mounts_served(mounts, folder, 0, "/usr/bin/ls"));
    kiln_mounts_free(mounts);
    erase(folder);
}

TEST(mounts, each_root_has_its_own)
{
    int served = draw("22 1 0:40 / / rw - fuse.fuse-overlayfs fuse-overlayfs rw\n");
    struct kiln_mounts *mounts;

    CHECK_OK(kiln_mounts_new(&mounts));
    CHECK(kiln_mounts_served(mounts, served, 7, "/usr/bin/ls"));
    for (uint64_t root = 8; root < 300; root++) /* more than are kept; of processes that are gone */
        CHECK(!kiln_mounts_served(mounts, -1, root, "/usr/bin/ls"));
    CHECK(kiln_mounts_served(mounts, served, 7, "/usr/bin/ls"));
    CHECK(kiln_mounts_served(mounts, -1, 7, "/usr/bin/ls")); /* it is remembered */
    kiln_mounts_free(mounts);
    erase(served);
}

/* What it could not keep is not taken for something that answers. */
TEST(mounts, without_memory_nothing_is_known_to_answer)
{
    int folder = draw("22 1 0:40 / /home rw - nfs there:/home rw\n");
    struct kiln_starved s = {0};

    while (kiln_test_starve(&s)) {
        struct kiln_mounts *mounts;

        s.r = kiln_mounts_new(&mounts);
        if (s.r < 0)
            continue;
        CHECK(kiln_mounts_served(mounts, folder, 3, "/home/me"));
        s.r = kiln_mounts_served(mounts, folder, 4, "/usr") ? -ENOMEM : 0;
        kiln_mounts_free(mounts);
    }
    CHECK(s.n > 1);
    erase(folder);
}
