/* SPDX-License-Identifier: Apache-2.0 */
#include "folder.h"

#include <dirent.h>
#include <ftw.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

void folder_make(char ret_path[FOLDER_NAME])
{
    snprintf(ret_path, FOLDER_NAME, "/tmp/kiln-test-XXXXXX");
    CHECK(mkdtemp(ret_path) != NULL);
}

bool folder_unpack(char ret_path[FOLDER_NAME], const char *capture)
{
    char name[256], tar[] = "tar", take[] = "--no-same-owner", from[] = "-xzf", into[] = "-C";
    char *words[] = {tar, take, into, ret_path, from, NULL, NULL};
    int status;
    pid_t pid;

    snprintf(name, sizeof(name), "%s.tar.gz", capture);
    words[5] = (char *)(uintptr_t)kiln_test_data(name);
    if (!words[5])
        return false;
    folder_make(ret_path);
    CHECK_OK(posix_spawnp(&pid, "tar", NULL, NULL, words, environ));
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    return true;
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about, (void)kind, (void)place;
    return remove(path);
}

void folder_remove(const char *path)
{
    CHECK_OK(nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS));
}

uint32_t folder_list(const char *path, const char *ending, char *ret_first, size_t size)
{
    struct dirent **names;
    int n = scandir(path, &names, NULL, alphasort);
    uint32_t found = 0;

    CHECK(n >= 0);
    for (int i = 0; i < n; i++) {
        if (kiln_str_ends(kiln_str_of(names[i]->d_name), kiln_str_of(ending)) && !found++)
            snprintf(ret_first, size, "%s/%s", path, names[i]->d_name);
        free(names[i]);
    }
    free(names);
    return found;
}
