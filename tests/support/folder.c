/* SPDX-License-Identifier: Apache-2.0 */
#include "folder.h"

#include <dirent.h>
#include <ftw.h>
#include <stdlib.h>

#include "test.h"

void folder_make(char ret_path[FOLDER_NAME])
{
    snprintf(ret_path, FOLDER_NAME, "/tmp/kiln-test-XXXXXX");
    CHECK(mkdtemp(ret_path) != NULL);
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
